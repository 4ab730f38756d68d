//! Whole-epoch plans of padded batches.

use std::sync::{Arc, Weak};

use lengthwise_core as core;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Lengths, with_lengths};
use crate::enter::{LengthwiseError, enter};
use crate::spare::{Spares, lend};

/// What happens to batches that do not divide by the number of ranks.
pub(crate) const REMAINDER: &[(&str, core::Remainder)] =
    &[("split", core::Remainder::Split), ("repeat", core::Remainder::Repeat), ("drop", core::Remainder::Drop)];

pub(crate) const OVERLONG: &[(&str, core::Overlong)] = &[
    ("error", core::Overlong::Error),
    ("drop", core::Overlong::Drop),
    ("truncate", core::Overlong::Truncate),
    ("split", core::Overlong::Split),
    ("alone", core::Overlong::Alone),
];

pub(crate) const PAD_TO: &[(&str, core::PadTo)] =
    &[("longest", core::PadTo::Longest), ("boundary", core::PadTo::Boundary)];

pub(crate) const LAST_BATCH: &[(&str, core::LastBatch)] =
    &[("keep", core::LastBatch::Keep), ("merge", core::LastBatch::Merge), ("drop", core::LastBatch::Drop)];

/// Everything about the epochs of one layout over one set of lengths that is the same in each.
#[pyclass(frozen, module = "lengthwise._core")]
pub(crate) struct PaddedPlanner {
    inner: core::Planner,
    spares: Spares,
}

#[pymethods]
impl PaddedPlanner {
    #[new]
    #[pyo3(signature = (lengths, *, boundaries, max_tokens, max_samples, multiple_of, samples_multiple_of, pad_to, order,
                        last_batch, longest_first, seed, world_size, accumulate, overlong, remainder, threads,
                        count_tokens))]
    #[expect(clippy::too_many_arguments, reason = "a keyword-only constructor")]
    fn new(
        py: Python<'_>,
        lengths: Lengths<'_>,
        boundaries: PyReadonlyArray1<'_, u32>,
        max_tokens: u64,
        max_samples: u32,
        multiple_of: u32,
        samples_multiple_of: u32,
        pad_to: &str,
        order: &str,
        last_batch: &str,
        longest_first: bool,
        seed: u64,
        world_size: u32,
        accumulate: u32,
        overlong: &str,
        remainder: &str,
        threads: u32,
        count_tokens: bool,
    ) -> PyResult<Self> {
        let layout = core::Padded {
            limits: core::Limits { max_tokens, max_samples, multiple_of, samples_multiple_of },
            boundaries: boundaries.as_slice()?.to_vec(),
            pad_to: choice("pad_to", pad_to, PAD_TO)?,
            order: choice(
                "order",
                order,
                &[
                    ("bucketed", core::Order::Bucketed),
                    ("shuffled", core::Order::Shuffled),
                    ("sorted", core::Order::Sorted),
                ],
            )?,
            last_batch: choice("last_batch", last_batch, LAST_BATCH)?,
            longest_first,
        };
        let settings = settings(seed, [world_size, accumulate], overlong, remainder, threads, count_tokens)?;
        let inner = with_lengths!(&lengths, slice => enter(py, |interrupt| {
            core::Planner::new(slice, layout, settings, interrupt)
        }))?;
        Ok(Self { inner, spares: Spares::new(threads) })
    }

    /// One epoch.
    fn plan<'py>(&self, py: Python<'py>, lengths: Lengths<'py>, epoch: u64) -> PyResult<PlanArrays<'py>> {
        let Spares { narrow, wide } = &self.spares;
        if self.inner.items() < u32::MAX as usize {
            let plan = with_lengths!(&lengths, slice => enter(py, |interrupt| {
                self.inner.plan(slice, epoch, narrow, interrupt)
            }))?;
            hand_over(py, plan, Arc::downgrade(narrow), self.inner.settings().count_tokens)
        } else {
            let plan = with_lengths!(&lengths, slice => enter(py, |interrupt| {
                self.inner.plan(slice, epoch, wide, interrupt)
            }))?;
            hand_over(py, plan, Arc::downgrade(wide), self.inner.settings().count_tokens)
        }
    }
}

/// What a planner decides for every layout.
pub(crate) fn settings(
    seed: u64,
    [world_size, accumulate]: [u32; 2],
    overlong: &str,
    remainder: &str,
    threads: u32,
    count_tokens: bool,
) -> PyResult<core::Settings> {
    Ok(core::Settings {
        seed,
        world_size,
        accumulate,
        overlong: choice("overlong", overlong, OVERLONG)?,
        remainder: choice("remainder", remainder, REMAINDER)?,
        threads,
        count_tokens,
    })
}

/// 32 hexadecimal digits that tell these lengths from others, whatever integers store them.
#[pyfunction]
pub(crate) fn fingerprint(py: Python<'_>, lengths: Lengths<'_>) -> PyResult<String> {
    with_lengths!(&lengths, slice => enter(py, |interrupt| core::fingerprint(slice, interrupt)))
}

type Table<'py, T> = Bound<'py, PyArray1<T>>;
/// Indices, starts, sizes, padded lengths, segments, accounts, real tokens if they are counted.
pub(crate) type PlanArrays<'py, P = Table<'py, u32>> = (
    Bound<'py, PyAny>,
    Table<'py, i64>,
    Table<'py, u32>,
    P,
    Option<Bound<'py, PyArray2<u32>>>,
    Bound<'py, PyDict>,
    Option<Table<'py, u64>>,
);

/// Plans as arrays; the `memory` of indices goes back when nobody has them.
pub(crate) fn hand_over<I: numpy::Element + core::Index>(
    py: Python<'_>,
    plan: core::Plan<I>,
    memory: Weak<core::Spare<I>>,
    count_tokens: bool,
) -> PyResult<PlanArrays<'_>> {
    let (starts, sizes, padded_lengths) = core::Batch::columns(&plan.batches);
    let real_tokens = count_tokens.then(|| PyArray1::from_iter(py, plan.batches.iter().map(|batch| batch.real_tokens)));
    let segments = match plan.segments {
        Some(segments) => {
            let rows = segments.len();
            Some(segments.into_flattened().into_pyarray(py).reshape([rows, 2])?)
        }
        None => None,
    };
    let accounts = PyDict::new(py);
    accounts.set_item("dropped", plan.accounts.dropped)?;
    accounts.set_item("truncated", plan.accounts.truncated)?;
    accounts.set_item("split", plan.accounts.split)?;
    accounts.set_item("alone", plan.accounts.alone)?;
    accounts.set_item("repeated", plan.accounts.repeated)?;
    accounts.set_item("cut_batches", plan.accounts.cut_batches)?;
    Ok((
        lend(py, plan.indices, memory)?.into_any(),
        starts.into_pyarray(py),
        sizes.into_pyarray(py),
        padded_lengths.into_pyarray(py),
        segments,
        accounts,
        real_tokens,
    ))
}

/// The choice called `value`; the message lists them all.
pub(crate) fn choice<T: Copy>(name: &str, value: &str, choices: &[(&str, T)]) -> PyResult<T> {
    if let Some(&(_, chosen)) = choices.iter().find(|(word, _)| *word == value) {
        return Ok(chosen);
    }
    let words: Vec<String> = choices.iter().map(|(word, _)| format!("{word:?}")).collect();
    Err(LengthwiseError::new_err(format!("{name} is {value:?}, but must be one of {}", words.join(", "))))
}
