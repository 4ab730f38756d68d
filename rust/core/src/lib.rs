//! The planning core of lengthwise: batches from sample lengths alone.
//!
//! Pure Rust: no Python, no input or output, no threads left behind. Data flows one way:
//! lengths -> histogram -> boundaries -> plan (or packs). One concept a file.

#![deny(unsafe_code)]

pub mod balance;
mod batch;
mod bins;
pub mod boundaries;
mod bucket;
mod chunks;
mod classify;
mod code;
mod counts;
mod error;
mod fill;
mod fingerprint;
mod histogram;
mod index;
mod interrupt;
mod items;
mod length;
pub mod levels;
mod limits;
mod means;
pub mod measure;
pub mod offsets;
mod order;
mod overlong;
pub mod pack;
mod pairs;
mod parallel;
pub mod plan;
mod pour;
mod ranks;
mod raw;
pub mod rng;
mod scatter;
pub mod shuffle;
mod sort;
mod spare;
pub mod steps;

pub use batch::Batch;
pub use bucket::Buckets;
pub use chunks::{Chunks, plan_chunks};
pub use error::{Error, Result};
pub use fill::LastBatch;
pub use fingerprint::fingerprint;
pub use histogram::Histogram;
pub use index::Index;
pub use interrupt::Interrupt;
pub use length::{Length, MAX_LENGTH};
pub use limits::Limits;
pub use overlong::Overlong;
pub use pairs::{PaddedPairs, Padding, PairPlanner};
pub use plan::{Accounts, Order, PadTo, Padded, Plan, Planner, Settings};
pub use ranks::Remainder;
pub use spare::Spare;
