//! What a plan costs and how well it mixes.

use lengthwise_core::measure::{self, Batches};
use lengthwise_core::{Interrupt, Result};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::{Indices, Lengths, with_lengths};
use crate::enter::{LengthwiseError, enter};

type Table<'py> = (Indices<'py>, PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, u32>);

/// Run `$body` with `$batches` bound to the borrowed table, whatever the width of its indices.
macro_rules! with_batches {
    ($table:expr, $batches:ident => $body:expr) => {{
        let (starts, sizes) = ($table.1.as_slice()?, $table.2.as_slice()?);
        match &$table.0 {
            Indices::Narrow(indices) => {
                let $batches = Batches { indices: indices.as_slice()?, starts, sizes };
                $body
            }
            Indices::Wide(indices) => {
                let $batches = Batches { indices: indices.as_slice()?, starts, sizes };
                $body
            }
        }
    }};
}

/// Real tokens of every batch of the table (indices, starts, sizes).
#[pyfunction]
pub(crate) fn real_tokens<'py>(
    py: Python<'py>,
    table: Table<'py>,
    lengths: Lengths<'py>,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let tokens = with_batches!(table, batches => with_lengths!(&lengths, slice => enter(py, |interrupt| {
        measure::real_tokens(batches, slice, interrupt)
    })))?;
    Ok(tokens.into_pyarray(py))
}

/// The sum of the squared lengths of every batch of the table.
#[pyfunction]
pub(crate) fn squared_lengths<'py>(
    py: Python<'py>,
    table: Table<'py>,
    lengths: Lengths<'py>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let squares = with_batches!(table, batches => with_lengths!(&lengths, slice => enter(py, |interrupt| {
        measure::squared_lengths(batches, slice, interrupt)
    })))?;
    Ok(squares.into_pyarray(py))
}

/// Of all pairs of samples that share a batch now: (how many share one in the next table too, how many there are).
#[pyfunction]
pub(crate) fn batchmates<'py>(
    py: Python<'py>,
    now: Table<'py>,
    next: Table<'py>,
    samples: usize,
) -> PyResult<(u64, u64)> {
    let next_rows = (next.1.as_slice()?, next.2.as_slice()?);
    match (&now.0, &next.0) {
        (Indices::Narrow(now_indices), Indices::Narrow(next_indices)) => {
            let now = Batches { indices: now_indices.as_slice()?, starts: now.1.as_slice()?, sizes: now.2.as_slice()? };
            let next = Batches { indices: next_indices.as_slice()?, starts: next_rows.0, sizes: next_rows.1 };
            enter(py, |interrupt| measure::batchmates(now, next, samples, interrupt))
        }
        (Indices::Wide(now_indices), Indices::Wide(next_indices)) => {
            let now = Batches { indices: now_indices.as_slice()?, starts: now.1.as_slice()?, sizes: now.2.as_slice()? };
            let next = Batches { indices: next_indices.as_slice()?, starts: next_rows.0, sizes: next_rows.1 };
            enter(py, |interrupt| measure::batchmates(now, next, samples, interrupt))
        }
        _ => Err(LengthwiseError::new_err("indices of both tables must have one dtype")),
    }
}

/// The samples of all batches in running order.
#[pyfunction]
pub(crate) fn in_running_order<'py>(py: Python<'py>, table: Table<'py>) -> PyResult<Bound<'py, PyAny>> {
    fn run<I: numpy::Element>(
        py: Python<'_>,
        work: impl FnOnce(Interrupt<'_>) -> Result<Vec<I>> + Send,
    ) -> PyResult<Bound<'_, PyAny>> {
        Ok(enter(py, work)?.into_pyarray(py).into_any())
    }
    with_batches!(table, batches => run(py, |interrupt| measure::in_running_order(batches, interrupt)))
}
