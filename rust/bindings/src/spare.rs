//! Indices that give their memory back to the planner that made them.

use std::any::Any;
use std::sync::{Arc, Weak};

use lengthwise_core::{Index, Spare};
use numpy::ndarray::ArrayView1;
use numpy::{Element, PyArray1};
use pyo3::prelude::*;

/// What a planner keeps from one epoch to the next, for indices of either width.
pub(crate) struct Spares {
    pub(crate) narrow: Arc<Spare<u32>>,
    pub(crate) wide: Arc<Spare<u64>>,
}

impl Spares {
    pub(crate) fn new(threads: u32) -> Self {
        Self { narrow: Arc::new(Spare::new(threads)), wide: Arc::new(Spare::new(threads)) }
    }
}

/// What a numpy array of indices lies in.
#[pyclass(frozen, module = "lengthwise._core")]
struct Memory(#[expect(dead_code, reason = "it is dropped")] Box<dyn Any + Send + Sync>);

/// Indices, and who wants their memory.
struct Lent<I: Index> {
    indices: Vec<I>,
    owner: Weak<Spare<I>>,
}

impl<I: Index> Drop for Lent<I> {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.upgrade() {
            owner.keep(std::mem::take(&mut self.indices));
        }
    }
}

/// `indices` as a numpy array, without a copy. Their memory goes to `owner` when nobody has the array, or a view of it, any more.
#[expect(unsafe_code, reason = "numpy does not tell when it drops memory that another library has made")]
pub(crate) fn lend<I: Index + Element>(
    py: Python<'_>,
    indices: Vec<I>,
    owner: Weak<Spare<I>>,
) -> PyResult<Bound<'_, PyArray1<I>>> {
    let mut lent = Box::new(Lent { indices, owner });
    let (start, len) = (lent.indices.as_mut_ptr(), lent.indices.len());
    let memory = Bound::new(py, Memory(lent))?.into_any();
    // SAFETY: the vector's elements are neither moved, read through the vector nor freed while `memory` lives, and the array
    // holds on to it.
    Ok(unsafe { PyArray1::borrow_from_array(&ArrayView1::from_shape_ptr(len, start), memory) })
}
