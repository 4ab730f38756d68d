//! Lengths of lists from Arrow offsets and from the levels of Parquet pages.

use lengthwise_core::levels::{self, Page};
use lengthwise_core::offsets::{self, Offset};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::prelude::*;

use crate::enter::enter;

/// Offsets of lists or of large lists.
#[derive(FromPyObject)]
pub(crate) enum Offsets<'py> {
    Narrow(PyReadonlyArray1<'py, i32>),
    Wide(PyReadonlyArray1<'py, i64>),
}

#[pyfunction]
pub(crate) fn fill_from_offsets(
    py: Python<'_>,
    mut out: PyReadwriteArray1<'_, u32>,
    offsets: Offsets<'_>,
) -> PyResult<()> {
    let out = out.as_slice_mut()?;
    match offsets {
        Offsets::Narrow(offsets) => fill(py, out, offsets.as_slice()?),
        Offsets::Wide(offsets) => fill(py, out, offsets.as_slice()?),
    }
}

/// Lengths in another width, checked, into `out`.
#[pyfunction]
pub(crate) fn fill_from_lengths(
    py: Python<'_>,
    mut out: PyReadwriteArray1<'_, u32>,
    lengths: Offsets<'_>,
) -> PyResult<()> {
    let out = out.as_slice_mut()?;
    match lengths {
        Offsets::Narrow(lengths) => narrow(py, out, lengths.as_slice()?),
        Offsets::Wide(lengths) => narrow(py, out, lengths.as_slice()?),
    }
}

/// The rows that are null among `count` from bit `start` of a validity bitmap on.
#[pyfunction]
pub(crate) fn unset_bits<'py>(
    py: Python<'py>,
    bitmap: PyReadonlyArray1<'py, u8>,
    start: usize,
    count: usize,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let bitmap = bitmap.as_slice()?;
    Ok(enter(py, |_| offsets::unset(bitmap, start, count))?.into_pyarray(py))
}

fn narrow<O: Offset>(py: Python<'_>, out: &mut [u32], lengths: &[O]) -> PyResult<()> {
    enter(py, |_| offsets::narrow(lengths, out))
}

fn fill<O: Offset>(py: Python<'_>, out: &mut [u32], offsets: &[O]) -> PyResult<()> {
    enter(py, |_| offsets::lengths(offsets, out))
}

#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "a page is what it is")]
pub(crate) fn fill_from_levels(
    py: Python<'_>,
    mut out: PyReadwriteArray1<'_, u32>,
    done: usize,
    repetition: PyReadonlyArray1<'_, u8>,
    definition: PyReadonlyArray1<'_, u8>,
    entries: usize,
    max_definition: u32,
    element: u32,
) -> PyResult<usize> {
    let (repetition, definition) = (repetition.as_slice()?, definition.as_slice()?);
    let page = Page { repetition, definition, entries, max_definition, element };
    let out = out.as_slice_mut()?;
    enter(py, |interrupt| levels::fill(out, done, &page, interrupt))
}
