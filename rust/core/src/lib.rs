//! The planning core of lengthwise: batches from sample lengths alone.
//!
//! Pure Rust: no Python, no input or output, no threads left behind. Data flows one way:
//! lengths -> histogram -> boundaries -> plan (or packs). One concept a file.

mod error;
mod interrupt;

pub use error::{Error, Result};
pub use interrupt::Interrupt;
