//! Packs: samples laid end to end in rows of a fixed capacity.
#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands extracted arguments over by value")]

use lengthwise_core::Overlong;
use lengthwise_core::pack::{Method, PackOptions, Packer as Decided, Packs};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

use crate::arrays::{Lengths, with_lengths};
use crate::enter::enter;
use crate::plan::choice;

const METHODS: &[(&str, Method)] =
    &[("best_fit", Method::BestFit), ("first_fit", Method::FirstFit), ("next_fit", Method::NextFit)];

const OVERLONG: &[(&str, Overlong)] = &[
    ("error", Overlong::Error),
    ("drop", Overlong::Drop),
    ("truncate", Overlong::Truncate),
    ("split", Overlong::Split),
];

/// A packing that has been decided, ready to name samples as often as is wanted.
#[pyclass(frozen, module = "lengthwise._core")]
pub(crate) struct Packer {
    inner: Decided,
}

#[pymethods]
impl Packer {
    #[new]
    #[pyo3(signature = (lengths, *, capacity, method, max_samples, multiple_of, overlong))]
    fn new(
        py: Python<'_>,
        lengths: Lengths<'_>,
        capacity: u32,
        method: &str,
        max_samples: u32,
        multiple_of: u32,
        overlong: &str,
    ) -> PyResult<Self> {
        let options = PackOptions {
            capacity,
            method: choice("method", method, METHODS)?,
            max_samples,
            multiple_of,
            overlong: choice("overlong", overlong, OVERLONG)?,
        };
        let inner = with_lengths!(&lengths, slice => enter(py, |interrupt| Decided::new(slice, options, interrupt)))?;
        Ok(Self { inner })
    }

    /// The packs: (indices, offsets, segments or None, dropped).
    fn packs<'py>(&self, py: Python<'py>, lengths: Lengths<'py>) -> PyResult<PackArrays<'py>> {
        let packs = with_lengths!(&lengths, slice => enter(py, |interrupt| self.inner.packs_of(slice, interrupt)))?;
        hand_over(py, packs)
    }

    fn __len__(&self) -> usize {
        self.inner.packs() as usize
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
