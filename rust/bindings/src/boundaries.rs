//! Histograms and boundaries.

use lengthwise_core::boundaries::{self, Solution};
use lengthwise_core::{Histogram, Interrupt};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::{Lengths, with_lengths};
use crate::enter::enter;

/// Distinct lengths and their counts.
type Counted<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u64>>);
/// Boundaries, samples in each bucket, cost, lower bound.
type Solved<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u64>>, i128, i128);

#[pyfunction]
pub(crate) fn histogram<'py>(py: Python<'py>, lengths: Lengths<'py>) -> PyResult<Counted<'py>> {
    let counted = with_lengths!(&lengths, slice => enter(py, |interrupt| Histogram::of(slice, interrupt)))?;
    let (lengths, counts) = counted.into_parts();
    Ok((lengths.into_pyarray(py), counts.into_pyarray(py)))
}

/// Where boundaries may lie; every question about boundaries is asked of it.
#[pyclass(frozen, module = "lengthwise._core")]
pub(crate) struct Candidates {
    inner: boundaries::Candidates,
}

#[pymethods]
impl Candidates {
    #[new]
    fn new(
        py: Python<'_>,
        lengths: PyReadonlyArray1<'_, u32>,
        counts: PyReadonlyArray1<'_, u64>,
        multiple_of: u32,
        include: Vec<u32>,
    ) -> PyResult<Self> {
        let (lengths, counts) = (lengths.as_slice()?, counts.as_slice()?);
        let inner = enter(py, |_| {
            boundaries::Candidates::new(&Histogram::from_counts(lengths, counts)?, multiple_of, &include)
        })?;
        Ok(Self { inner })
    }

    #[getter]
    fn bounds<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, self.inner.bounds())
    }

    fn solve<'py>(
        &self,
        py: Python<'py>,
        k: usize,
        costs: Option<PyReadonlyArray1<'py, u64>>,
    ) -> PyResult<Solved<'py>> {
        let costs = costs.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        let work = |interrupt: Interrupt<'_>| boundaries::optimal(&self.inner, costs, k, interrupt);
        Ok(solved(py, enter(py, work)?))
    }
}

fn solved(py: Python<'_>, solution: Solution) -> Solved<'_> {
    let Solution { bounds, counts, cost, lower_bound } = solution;
    (bounds.into_pyarray(py), counts.into_pyarray(py), cost, lower_bound)
}
