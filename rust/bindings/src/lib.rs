//! `lengthwise._core`: the planning core for Python.
//!
//! Every function here does three things: borrow the arrays, run the core behind the one door ([`enter`]), hand arrays
//! back. Nothing is computed here.

#![allow(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]

mod arrays;
mod arrow;
mod balance;
mod boundaries;
mod chunks;
mod enter;
mod levels;
mod measure;
mod pack;
mod pairs;
mod plan;
mod spare;
mod steps;
mod stream;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    use super::{Bound, PyModule, PyResult};
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::balance::balance;
    #[pymodule_export]
    use crate::boundaries::{Candidates, descend_cells, histogram, stripes};
    #[pymodule_export]
    use crate::chunks::plan_chunks;
    #[pymodule_export]
    use crate::enter::LengthwiseError;
    #[pymodule_export]
    use crate::levels::{fill_from_array, fill_from_lengths, fill_from_levels, fill_from_stream, unset_bits};
    #[pymodule_export]
    use crate::measure::{batchmates, in_running_order, real_tokens, squared_lengths};
    #[pymodule_export]
    use crate::pack::{PackedPlanner, Packer, pack_limited};
    #[pymodule_export]
    use crate::pairs::PairPlanner;
    #[pymodule_export]
    use crate::plan::{PaddedPlanner, fingerprint};
    #[pymodule_export]
    use crate::steps::{arrange, of_one_shape};
    #[pymodule_export]
    use crate::stream::StreamPacker;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
