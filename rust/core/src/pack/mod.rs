//! Packing: samples laid end to end in rows of a fixed capacity.
//!
//! The work is decided on the counts of the distinct sizes (`classes`), not on samples: a *recipe* says how many packs hold
//! which sizes, and only then are samples named (`emit`). So the decision takes the same time for a thousand samples as for
//! a hundred million, and fresh packs of the same quality cost no more than naming the samples anew.

mod best_fit;
mod bounds;
mod cells;
mod classes;
mod coarse;
mod columns;
mod emit;
mod first_fit;
mod in_order;
mod knapsack;
mod layout;
mod limited;
mod next_fit;
mod optimal;
mod recipe;
mod rooms;
mod solve;
mod stream;
mod stream_levels;
mod worst_fit;

#[cfg(test)]
mod tests;

pub use emit::Rows;
pub use layout::{PackedPlanner, PadPack};
pub use limited::{Limit, pack_limited};
pub use solve::{Method, PackOptions, Packer, Packs};
pub use stream::{Closed, MOST_OPEN, StreamOptions, StreamPacker};
