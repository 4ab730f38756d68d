//! Histograms and boundaries.

use lengthwise_core::boundaries::{self, Constraints, Number, Objective, Plane, Solution};
use lengthwise_core::{Histogram, Limits};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::{Lengths, with_lengths};
use crate::enter::{LengthwiseError, enter};

/// Distinct lengths and their counts.
type Counted<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u64>>);
/// Boundaries, samples in each bucket, cost, lower bound.
type Solved<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u64>>, i128, Option<i128>);
/// The row where each stripe ends, how many cells it has, the columns where they end, cost, lower bound.
type Striped<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>, i128, i128);
/// `max_tokens`, `max_samples`, `multiple_of`, `samples_multiple_of`.
type LimitNumbers = (u64, u32, u32, u32);

#[pyfunction]
pub(crate) fn histogram<'py>(py: Python<'py>, lengths: Lengths<'py>) -> PyResult<Counted<'py>> {
    let counted = with_lengths!(&lengths, slice => enter(py, |interrupt| Histogram::of(slice, interrupt)))?;
    let (lengths, counts) = counted.into_parts();
    Ok((lengths.into_pyarray(py), counts.into_pyarray(py)))
}

/// The cheapest `k` cells in stripes of rows; rows and columns are counted from 1.
#[pyfunction]
pub(crate) fn stripes<'py>(
    py: Python<'py>,
    counts: PyReadonlyArray1<'py, u64>,
    costs: PyReadonlyArray1<'py, u64>,
    width: usize,
    k: usize,
) -> PyResult<Striped<'py>> {
    let plane = Plane { counts: counts.as_slice()?, costs: costs.as_slice()?, width };
    let found = enter(py, |interrupt| plane.stripes(k, interrupt))?;
    let rows = PyArray1::from_iter(py, found.stripes.iter().map(|(end, _)| *end));
    let sizes = PyArray1::from_iter(py, found.stripes.iter().map(|(_, cells)| cells.len() as u32));
    let columns: Vec<u32> = found.stripes.iter().flat_map(|(_, cells)| cells.iter().copied()).collect();
    Ok((rows, sizes, columns.into_pyarray(py), found.cost, found.lower_bound))
}

/// Cells of a grid whose bounds are moved while that saves anything: (cells, samples that none holds, cost).
#[pyfunction]
pub(crate) fn descend_cells(
    py: Python<'_>,
    counts: PyReadonlyArray1<'_, u64>,
    costs: PyReadonlyArray1<'_, u64>,
    width: usize,
    mut cells: Vec<[u32; 2]>,
) -> PyResult<(Vec<[u32; 2]>, u64, u128)> {
    let plane = Plane { counts: counts.as_slice()?, costs: costs.as_slice()?, width };
    let (unheld, cost) = enter(py, |interrupt| plane.descend(&mut cells, interrupt))?;
    Ok((cells, unheld, cost))
}

/// Where boundaries may lie; every question about boundaries is asked of it.
#[pyclass(frozen, module = "lengthwise._core")]
pub(crate) struct Candidates {
    inner: boundaries::Candidates,
    include: Vec<u32>,
    /// The sum of all lengths.
    #[pyo3(get)]
    real_tokens: u128,
}

#[pymethods]
impl Candidates {
    #[new]
    fn new(
        py: Python<'_>,
        lengths: PyReadonlyArray1<'_, u32>,
        counts: PyReadonlyArray1<'_, u64>,
        multiple_of: u32,
        mut include: Vec<u32>,
    ) -> PyResult<Self> {
        let (lengths, counts) = (lengths.as_slice()?, counts.as_slice()?);
        let (inner, real_tokens) = enter(py, |_| {
            let histogram = Histogram::from_counts(lengths, counts)?;
            Ok((boundaries::Candidates::new(&histogram, multiple_of, &include)?, histogram.tokens()))
        })?;
        include.sort_unstable();
        include.dedup();
        Ok(Self { inner, include, real_tokens })
    }

    /// The bounds and the samples at each.
    fn arrays<'py>(&self, py: Python<'py>) -> Counted<'py> {
        let counts = self.inner.below().windows(2).map(|pair| (pair[1] - pair[0]) as u64);
        (PyArray1::from_slice(py, self.inner.bounds()), PyArray1::from_iter(py, counts))
    }

    /// The best `k` boundaries, or as many as are worth `overhead` each.
    #[pyo3(signature = (objective, costs, limits, *, k, overhead, min_count, max_ratio))]
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn solve<'py>(
        &self,
        py: Python<'py>,
        objective: &str,
        costs: Option<PyReadonlyArray1<'py, u64>>,
        limits: LimitNumbers,
        k: Option<usize>,
        overhead: u64,
        min_count: u64,
        max_ratio: f64,
    ) -> PyResult<Solved<'py>> {
        let (costs, limits) = (costs.as_ref().map(PyReadonlyArray1::as_slice).transpose()?, limits_of(limits));
        let objective = objective_called(objective, costs, &limits)?;
        let number = k.map_or(Number::Worth(overhead), Number::Exactly);
        let constraints = Constraints { min_count, max_ratio, include: self.include.clone() };
        let solution =
            enter(py, |interrupt| boundaries::optimal(&self.inner, objective, number, &constraints, interrupt))?;
        Ok(solved(py, solution))
    }

    /// Boundaries for batches padded to their longest sample, nearly as good as the best ones and found much sooner.
    fn descend<'py>(
        &self,
        py: Python<'py>,
        limits: LimitNumbers,
        k: Option<usize>,
        overhead: u64,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let (limits, number) = (limits_of(limits), k.map_or(Number::Worth(overhead), Number::Exactly));
        Ok(enter(py, |interrupt| boundaries::descend(&self.inner, &limits, number, interrupt))?.into_pyarray(py))
    }

    /// The best boundaries of every number up to `most` that the constraints allow.
    #[pyo3(signature = (objective, costs, limits, *, most, min_count, max_ratio))]
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn curve<'py>(
        &self,
        py: Python<'py>,
        objective: &str,
        costs: Option<PyReadonlyArray1<'py, u64>>,
        limits: LimitNumbers,
        most: usize,
        min_count: u64,
        max_ratio: f64,
    ) -> PyResult<Vec<Solved<'py>>> {
        let (costs, limits) = (costs.as_ref().map(PyReadonlyArray1::as_slice).transpose()?, limits_of(limits));
        let objective = objective_called(objective, costs, &limits)?;
        let constraints = Constraints { min_count, max_ratio, include: self.include.clone() };
        let curve = enter(py, |interrupt| boundaries::curve(&self.inner, objective, most, &constraints, interrupt))?;
        Ok(curve.into_iter().map(|solution| solved(py, solution)).collect())
    }
}

fn objective_called<'a>(name: &str, costs: Option<&'a [u64]>, limits: &'a Limits) -> PyResult<Objective<'a>> {
    match (name, costs) {
        ("boundary", None) => Ok(Objective::Boundary),
        ("cost", Some(costs)) => Ok(Objective::Costs(costs)),
        ("steps", None) => Ok(Objective::Batches(limits)),
        ("longest", None) => Ok(Objective::Longest(limits)),
        _ => Err(LengthwiseError::new_err(format!("objective is {name:?}, but must be a known name"))),
    }
}

fn limits_of((max_tokens, max_samples, multiple_of, samples_multiple_of): LimitNumbers) -> Limits {
    Limits { max_tokens, max_samples, multiple_of, samples_multiple_of }
}

fn solved(py: Python<'_>, solution: Solution) -> Solved<'_> {
    let Solution { bounds, counts, cost, lower_bound } = solution;
    (bounds.into_pyarray(py), counts.into_pyarray(py), cost, lower_bound)
}
