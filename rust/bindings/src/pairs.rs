//! Whole-epoch plans of samples with two lengths.

use std::sync::Arc;

use lengthwise_core as core;
use numpy::{IntoPyArray, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

use crate::arrays::{Lengths, with_lengths};
use crate::enter::enter;
use crate::plan::{LAST_BATCH, PAD_TO, PlanArrays, choice, hand_over, settings};
use crate::spare::Spares;

/// Everything about the epochs of pairs of lengths that is the same in each.
#[pyclass(frozen, module = "lengthwise._core")]
pub(crate) struct PairPlanner {
    inner: core::PairPlanner,
    spares: Spares,
}

#[pymethods]
impl PairPlanner {
    /// `lengths` are both lengths of one sample after those of another.
    #[new]
    #[pyo3(signature = (lengths, *, cells, max_tokens, max_samples, multiple_of, samples_multiple_of, weights, pad_to,
                        last_batch, longest_first, seed, world_size, accumulate, overlong, remainder, threads,
                        count_tokens))]
    #[expect(clippy::too_many_arguments, reason = "a keyword-only constructor")]
    fn new(
        py: Python<'_>,
        lengths: Lengths<'_>,
        cells: Vec<[u32; 2]>,
        max_tokens: u64,
        max_samples: u32,
        multiple_of: [u32; 2],
        samples_multiple_of: u32,
        weights: [u32; 2],
        pad_to: &str,
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
        let layout = core::PaddedPairs {
            limits: core::Limits { max_tokens, max_samples, multiple_of: 1, samples_multiple_of },
            padding: core::Padding { multiple_of, weights },
            cells,
            pad_to: choice("pad_to", pad_to, PAD_TO)?,
            last_batch: choice("last_batch", last_batch, LAST_BATCH)?,
            longest_first,
        };
        let settings = settings(seed, [world_size, accumulate], overlong, remainder, threads, count_tokens)?;
        let inner = with_lengths!(&lengths, slice => enter(py, |interrupt| {
            core::PairPlanner::new(slice.as_chunks().0, layout, settings, interrupt)
        }))?;
        Ok(Self { inner, spares: Spares::new(threads) })
    }

    /// uint32[k, 2]: the bounds of the cells, the cheapest first: the first that holds a sample is its own.
    #[getter]
    fn cells<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<u32>>> {
        let cells = self.inner.cells();
        cells.as_flattened().to_vec().into_pyarray(py).reshape([cells.len(), 2])
    }

    /// One epoch; padded lengths are uint32[b, 2].
    fn plan<'py>(
        &self,
        py: Python<'py>,
        lengths: Lengths<'py>,
        epoch: u64,
    ) -> PyResult<PlanArrays<'py, Bound<'py, PyArray2<u32>>>> {
        let Spares { narrow, wide } = &self.spares;
        let (arrays, shapes) = if self.inner.samples() < u32::MAX as usize {
            let (plan, shapes) = with_lengths!(&lengths, slice => enter(py, |interrupt| {
                self.inner.plan(slice.as_chunks().0, epoch, narrow, interrupt)
            }))?;
            (hand_over(py, plan, Arc::downgrade(narrow), self.inner.settings().count_tokens)?, shapes)
        } else {
            let (plan, shapes) = with_lengths!(&lengths, slice => enter(py, |interrupt| {
                self.inner.plan(slice.as_chunks().0, epoch, wide, interrupt)
            }))?;
            (hand_over(py, plan, Arc::downgrade(wide), self.inner.settings().count_tokens)?, shapes)
        };
        let (indices, starts, sizes, _, segments, accounts, real_tokens) = arrays;
        let batches = shapes.len();
        let padded_lengths = shapes.into_flattened().into_pyarray(py).reshape([batches, 2])?;
        Ok((indices, starts, sizes, padded_lengths, segments, accounts, real_tokens))
    }
}
