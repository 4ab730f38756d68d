//! Lengths of lists in Arrow and from the levels of Parquet pages.

use lengthwise_core::levels::{self, Page};
use lengthwise_core::offsets;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::arrow::{Array, Lists, Seen, Stream};
use crate::enter::enter;

/// The rows that are null, if any, the bits that some length has, and those that all have.
type Filled<'py> = (Option<Bound<'py, PyArray1<i64>>>, u32, u32);

/// Lengths of the lists in a pyarrow array, of a type named as in Arrow's C interface, into `out`.
#[pyfunction]
#[expect(unsafe_code, reason = "the caller has asked pyarrow for the type")]
pub(crate) fn fill_from_array<'py>(
    py: Python<'py>,
    mut out: PyReadwriteArray1<'_, u32>,
    array: &Bound<'_, PyAny>,
    format: &str,
) -> PyResult<Filled<'py>> {
    let array = Array::export(array)?;
    let out = out.as_slice_mut()?;
    // SAFETY: see above.
    Ok(filled(py, enter(py, |_| unsafe { array.lengths(Lists::of(format)?, out) })?))
}

/// The same of the chunks in an `arrow_array_stream` of pyarrow.
#[pyfunction]
#[expect(unsafe_code, reason = "the caller has asked pyarrow for the type")]
pub(crate) fn fill_from_stream<'py>(
    py: Python<'py>,
    mut out: PyReadwriteArray1<'_, u32>,
    stream: &Bound<'_, PyCapsule>,
    format: &str,
) -> PyResult<Filled<'py>> {
    let stream = Stream::take(stream)?;
    let out = out.as_slice_mut()?;
    // SAFETY: see above.
    Ok(filled(py, enter(py, |interrupt| unsafe { stream.lengths(Lists::of(format)?, out, interrupt) })?))
}

fn filled(py: Python<'_>, (nulls, bits): Seen) -> Filled<'_> {
    ((!nulls.is_empty()).then(|| nulls.into_pyarray(py)), bits.any, bits.all)
}

/// Lengths in another width, checked, into `out`.
#[pyfunction]
pub(crate) fn fill_from_lengths(
    py: Python<'_>,
    mut out: PyReadwriteArray1<'_, u32>,
    lengths: PyReadonlyArray1<'_, i64>,
) -> PyResult<()> {
    let (out, lengths) = (out.as_slice_mut()?, lengths.as_slice()?);
    enter(py, |_| offsets::narrow(lengths, out)).map(drop)
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
    let mut rows = Vec::new();
    enter(py, |_| offsets::unset(bitmap, start, count, |row| rows.push(row as i64)))?;
    Ok(rows.into_pyarray(py))
}

#[pyfunction]
pub(crate) fn fill_from_levels(
    py: Python<'_>,
    mut out: PyReadwriteArray1<'_, u32>,
    done: usize,
    repetition: PyReadonlyArray1<'_, u8>,
    definition: PyReadonlyArray1<'_, u8>,
    entries: usize,
    levels: (u32, u32, u32, u32, u32),
) -> PyResult<usize> {
    let (max_repetition, max_definition, depth, element, outermost) = levels;
    let (repetition, definition) = (repetition.as_slice()?, definition.as_slice()?);
    let page = Page { repetition, definition, entries, max_repetition, max_definition, depth, element, outermost };
    let out = out.as_slice_mut()?;
    enter(py, |interrupt| levels::fill(out, done, &page, interrupt))
}
