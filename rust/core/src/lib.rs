//! The planning core of lengthwise: batches from sample lengths alone.
//!
//! Pure Rust: no Python, no input or output, no threads left behind. Data flows one way:
//! lengths -> histogram -> boundaries -> plan (or packs). One concept a file.

mod error;
mod histogram;
mod interrupt;
mod length;

pub use error::{Error, Result};
pub use histogram::Histogram;
pub use interrupt::Interrupt;
pub use length::{Length, MAX_LENGTH};
