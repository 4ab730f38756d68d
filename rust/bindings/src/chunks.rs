//! Pieces of long samples in consecutive steps.
#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands extracted arguments over by value")]

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

use crate::arrays::{Lengths, with_lengths};
use crate::enter::enter;

type ChunkArrays<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray2<u32>>, Bound<'py, PyArray1<i64>>, u64);

/// (indices, segments, offsets, lower bound) of steps of pieces.
#[pyfunction]
pub(crate) fn plan_chunks<'py>(
    py: Python<'py>,
    lengths: Lengths<'py>,
    max_tokens: u64,
    chunk: u32,
) -> PyResult<ChunkArrays<'py>> {
    let plan = with_lengths!(&lengths, slice => enter(py, |interrupt| {
        lengthwise_core::plan_chunks(slice, max_tokens, chunk, interrupt)
    }))?;
    let entries = plan.segments.len();
    Ok((
        plan.indices.into_pyarray(py),
        plan.segments.into_flattened().into_pyarray(py).reshape([entries, 2])?,
        plan.offsets.into_pyarray(py),
        plan.lower_bound,
    ))
}
