//! Packs: samples laid end to end in rows of a fixed capacity.
#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands extracted arguments over by value")]

use std::sync::Weak;

use lengthwise_core::Settings;
use lengthwise_core::pack::{self, Limit, Method, PackOptions, Packer as Decided, Packs, PadPack, Rows};
use lengthwise_core::rng::{Key, Stream};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::{Lengths, with_lengths};
use crate::enter::enter;
use crate::plan::{OVERLONG, PlanArrays, REMAINDER, choice, hand_over as hand_over_plan};

const METHODS: &[(&str, Method)] = &[
    ("auto", Method::Auto),
    ("best_fit", Method::BestFit),
    ("concat", Method::Concat),
    ("first_fit", Method::FirstFit),
    ("next_fit", Method::NextFit),
    ("optimal", Method::Optimal),
    ("sum_of_squares", Method::SumOfSquares),
];

/// A packing that has been decided, ready to name samples as often as is wanted.
#[pyclass(frozen, module = "lengthwise._core")]
pub(crate) struct Packer {
    inner: Decided,
}

#[pymethods]
impl Packer {
    #[new]
    #[pyo3(signature = (lengths, *, capacity, method, max_samples, multiple_of, overlong, work))]
    #[expect(clippy::too_many_arguments, reason = "a keyword-only constructor")]
    fn new(
        py: Python<'_>,
        lengths: Lengths<'_>,
        capacity: u32,
        method: &str,
        max_samples: u32,
        multiple_of: u32,
        overlong: &str,
        work: u64,
    ) -> PyResult<Self> {
        let options = PackOptions {
            capacity,
            method: choice("method", method, METHODS)?,
            max_samples,
            multiple_of,
            overlong: choice("overlong", overlong, OVERLONG)?,
            work,
        };
        let inner = with_lengths!(&lengths, slice => enter(py, |interrupt| Decided::new(slice, options, interrupt)))?;
        Ok(Self { inner })
    }

    /// Packs that were decided elsewhere; samples of one kind may take each other's places.
    #[staticmethod]
    #[pyo3(signature = (kinds, indices, offsets, *, capacity))]
    fn given(
        py: Python<'_>,
        kinds: PyReadonlyArray1<'_, u32>,
        indices: PyReadonlyArray1<'_, u32>,
        offsets: PyReadonlyArray1<'_, i64>,
        capacity: u32,
    ) -> PyResult<Self> {
        let rows = Rows { indices: indices.as_slice()?.to_vec(), offsets: offsets.as_slice()?.to_vec() };
        let kinds = kinds.as_slice()?.to_vec();
        let inner = enter(py, |interrupt| Decided::given(kinds, &rows, capacity, interrupt))?;
        Ok(Self { inner })
    }

    /// The packs: (indices, offsets, segments or None, dropped).
    fn packs<'py>(&self, py: Python<'py>, lengths: Lengths<'py>, seed: Option<u64>) -> PyResult<PackArrays<'py>> {
        let key = seed.map(|seed| Key::new(seed, 0, Stream::Packs));
        let packs = with_lengths!(&lengths, slice => enter(py, |interrupt| {
            self.inner.packs_of(slice, key, interrupt)
        }))?;
        hand_over(py, packs)
    }

    #[getter]
    fn lower_bound(&self) -> u64 {
        self.inner.lower_bound()
    }

    #[getter]
    fn real_tokens(&self) -> u64 {
        self.inner.real_tokens()
    }
}

type BoundedRows<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<i64>>, u64);

/// Several limits at once, each a uint64[n] and the most in a pack: (indices, offsets, lower bound).
#[pyfunction]
pub(crate) fn pack_limited<'py>(
    py: Python<'py>,
    limits: Vec<(PyReadonlyArray1<'py, u64>, u64)>,
    seed: Option<u64>,
) -> PyResult<BoundedRows<'py>> {
    let key = seed.map(|seed| Key::new(seed, 0, Stream::Packs));
    let slices: Vec<(&[u64], u64)> =
        limits.iter().map(|(values, most)| Ok((values.as_slice()?, *most))).collect::<PyResult<_>>()?;
    let (rows, bound) = enter(py, |interrupt| {
        let limits: Vec<Limit<'_>> = slices.iter().map(|&(values, most)| Limit { values, most }).collect();
        pack::pack_limited(&limits, key, interrupt)
    })?;
    Ok((rows.indices.into_pyarray(py), rows.offsets.into_pyarray(py), bound))
}

/// Everything about the packed epochs of one set of lengths that is the same in each.
#[pyclass(frozen, module = "lengthwise._core")]
pub(crate) struct PackedPlanner {
    inner: pack::PackedPlanner,
}

#[pymethods]
impl PackedPlanner {
    #[new]
    #[pyo3(signature = (packer, *, pad_to, seed, world_size, accumulate, remainder, count_tokens))]
    #[expect(clippy::too_many_arguments, reason = "a keyword-only constructor")]
    fn new(
        py: Python<'_>,
        packer: &Packer,
        pad_to: &str,
        seed: u64,
        world_size: u32,
        accumulate: u32,
        remainder: &str,
        count_tokens: bool,
    ) -> PyResult<Self> {
        let pad_to = choice("pad_to", pad_to, &[("capacity", PadPack::Capacity), ("fill", PadPack::Fill)])?;
        let remainder = choice("remainder", remainder, REMAINDER)?;
        let overlong = packer.inner.options().overlong;
        let settings = Settings { seed, world_size, accumulate, overlong, remainder, threads: 1, count_tokens };
        let inner = enter(py, |_| pack::PackedPlanner::new(packer.inner.clone(), pad_to, settings))?;
        Ok(Self { inner })
    }

    /// One epoch.
    fn plan<'py>(&self, py: Python<'py>, lengths: Lengths<'py>, epoch: u64) -> PyResult<PlanArrays<'py>> {
        let plan = with_lengths!(&lengths, slice => enter(py, |interrupt| self.inner.plan(slice, epoch, interrupt)))?;
        hand_over_plan(py, plan, Weak::new(), self.inner.settings().count_tokens)
    }
}

pub(crate) type PackArrays<'py> = (
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<i64>>,
    Option<Bound<'py, PyArray2<u32>>>,
    Bound<'py, PyArray1<u32>>,
);

fn hand_over(py: Python<'_>, packs: Packs) -> PyResult<PackArrays<'_>> {
    let segments = match packs.segments {
        Some(segments) => {
            let entries = segments.len();
            Some(segments.into_flattened().into_pyarray(py).reshape([entries, 2])?)
        }
        None => None,
    };
    Ok((
        packs.rows.indices.into_pyarray(py),
        packs.rows.offsets.into_pyarray(py),
        segments,
        packs.dropped.into_pyarray(py),
    ))
}
