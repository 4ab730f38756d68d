//! Division into parts of equal cost.

use lengthwise_core::Error;
use lengthwise_core::balance::{Limit, Rule, balance as core_balance};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::enter::{LengthwiseError, enter};

/// Indices, offsets, sums and the lower bound.
type Parts<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u64>>, u64);

/// Divide items into parts of near-equal cost; `sizes` beside `most` limits what a part holds.
#[pyfunction]
pub(crate) fn balance<'py>(
    py: Python<'py>,
    costs: PyReadonlyArray1<'py, u64>,
    parts: usize,
    equal_count: bool,
    sizes: Option<PyReadonlyArray1<'py, u64>>,
    most: u64,
) -> PyResult<Parts<'py>> {
    let costs = contiguous(&costs, "costs")?;
    let sizes = sizes.as_ref().map(|sizes| contiguous(sizes, "sizes")).transpose()?;
    let found = enter(py, |interrupt| {
        let limit = sizes.map(|sizes| Limit { sizes, most });
        core_balance(costs, parts, Rule { equal_count, limit }, interrupt)
    })?;
    Ok((found.indices.into_pyarray(py), found.offsets.into_pyarray(py), found.sums.into_pyarray(py), found.lower_bound))
}

fn contiguous<'a>(array: &'a PyReadonlyArray1<'_, u64>, name: &str) -> PyResult<&'a [u64]> {
    array
        .as_slice()
        .map_err(|_| LengthwiseError::new_err(Error::invalid(format!("{name} must be contiguous")).to_string()))
}
