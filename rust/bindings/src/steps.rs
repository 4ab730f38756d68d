//! Which batches run together, and on which rank.

use lengthwise_core as core;
use lengthwise_core::steps::{self, Method, Ranks, Table};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::enter::enter;
use crate::plan::choice;

/// The order in which batches run; `window` counts the steps of a window of equal cost.
#[pyfunction]
#[pyo3(signature = (sizes, padded_lengths, tokens, costs, *, world_size, accumulate, speeds, method, window,
                    longest_first, seed, epoch))]
#[expect(clippy::too_many_arguments, reason = "columns of one table, and keywords")]
pub(crate) fn arrange<'py>(
    py: Python<'py>,
    sizes: PyReadonlyArray1<'py, u32>,
    padded_lengths: PyReadonlyArray1<'py, u32>,
    tokens: PyReadonlyArray1<'py, u64>,
    costs: PyReadonlyArray1<'py, f64>,
    world_size: usize,
    accumulate: usize,
    speeds: Vec<f64>,
    method: &str,
    window: usize,
    longest_first: bool,
    seed: u64,
    epoch: u64,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let methods = [
        ("shuffled", Method::Shuffled),
        ("stratified", Method::Stratified),
        ("windowed", Method::Windowed(window)),
        ("same_shape", Method::SameShape),
        ("routed", Method::Routed),
    ];
    let method = choice("steps", method, &methods)?;
    let table = Table {
        sizes: sizes.as_slice()?,
        padded_lengths: padded_lengths.as_slice()?,
        tokens: tokens.as_slice()?,
        costs: costs.as_slice()?,
    };
    let ranks = Ranks { world_size, accumulate, speeds: &speeds };
    let order = enter(py, |_| steps::arrange(table, ranks, method, longest_first, seed, epoch))?;
    Ok(order.into_pyarray(py))
}

type Column<'py, T> = Bound<'py, PyArray1<T>>;

type Shaped<'py> = (Column<'py, i64>, Column<'py, u32>, Column<'py, u32>, u64, u64, u64);

/// Batches made whole steps of every padded length: (starts, sizes, padded lengths, cut batches, repeated, dropped).
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "columns of one table, and numbers")]
pub(crate) fn of_one_shape<'py>(
    py: Python<'py>,
    starts: PyReadonlyArray1<'py, i64>,
    sizes: PyReadonlyArray1<'py, u32>,
    padded_lengths: PyReadonlyArray1<'py, u32>,
    world_size: usize,
    accumulate: usize,
    remainder: &str,
    samples_multiple_of: u32,
) -> PyResult<Shaped<'py>> {
    let remainder = choice(
        "remainder",
        remainder,
        &[("split", core::Remainder::Split), ("repeat", core::Remainder::Repeat), ("drop", core::Remainder::Drop)],
    )?;
    let limits = core::Limits { max_tokens: u64::MAX, max_samples: u32::MAX, multiple_of: 1, samples_multiple_of };
    let (starts, sizes, padded_lengths) = (starts.as_slice()?, sizes.as_slice()?, padded_lengths.as_slice()?);
    let made = enter(py, |_| {
        let columns = starts.iter().zip(sizes).zip(padded_lengths);
        let batches: Vec<core::Batch> = columns
            .map(|((&start, &size), &padded_length)| core::Batch {
                start: start as u64,
                size,
                padded_length,
                ..core::Batch::default()
            })
            .collect();
        steps::of_one_shape(&batches, world_size, accumulate, remainder, &limits)
    })?;
    let (starts, sizes, padded_lengths) = core::Batch::columns(&made.batches);
    Ok((
        starts.into_pyarray(py),
        sizes.into_pyarray(py),
        padded_lengths.into_pyarray(py),
        made.cut_batches,
        made.repeated,
        made.dropped,
    ))
}
