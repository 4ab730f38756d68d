//! Filling batches: a run of samples in a given order is cut into batches that keep the limits.
//!
//! Samples are taken as they come (the order is already random, or sorted), so that what is in a batch depends on chance
//! alone. `rows` samples of one padded length fill a batch; when the padded length is that of the longest sample, a batch
//! is closed by the first sample that would push `samples * longest` past the budget.
//! Cost: one sequential pass, 1 ns a sample; with fixed padded lengths nothing is read and only batches cost.

use std::ops::Range;

use crate::limits::Limits;
use crate::{Index, Interrupt, Result};

/// One batch: `size` samples from position `start` of the plan's indices, padded to `padded_length`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Batch {
    /// Position of its first sample in the plan's indices.
    pub start: u64,
    /// How many samples.
    pub size: u32,
    /// What each of them occupies, in tokens.
    pub padded_length: u32,
}

impl Batch {
    /// Padded tokens: what the batch costs.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        u64::from(self.size) * u64::from(self.padded_length)
    }
}

/// Batches between two looks at the interrupt.
const PAUSE: usize = 1 << 12;

/// Cut `positions` into batches of one padded length; how many of the last ones are short.
pub(crate) fn fill_fixed(
    batches: &mut Vec<Batch>,
    positions: Range<usize>,
    padded_length: u32,
    limits: &Limits,
) -> usize {
    let rows = limits.rows(padded_length);
    let full = positions.len() / rows as usize;
    batches.reserve(full + 2);
    let mut next = positions.start;
    for _ in 0..full {
        batches.push(Batch { start: next as u64, size: rows, padded_length });
        next += rows as usize;
    }
    let filled = batches.len();
    while next < positions.end {
        let size = limits.round_rows((positions.end - next) as u32);
        batches.push(Batch { start: next as u64, size, padded_length });
        next += size as usize;
    }
    batches.len() - filled
}

/// Cut `positions`, where lengths never rise, into batches padded to their longest sample; how many of the last are short.
///
/// Taking as many of the longest as fit makes the fewest batches that any partition can have.
pub(crate) fn fill_sorted(
    batches: &mut Vec<Batch>,
    positions: Range<usize>,
    length: impl Fn(usize) -> u32,
    limits: &Limits,
) -> usize {
    let (mut next, mut short) = (positions.start, 0);
    while next < positions.end {
        let padded_length = limits.padded(length(next));
        let rows = limits.rows(padded_length) as usize;
        let size =
            if rows <= positions.end - next { rows as u32 } else { limits.round_rows((positions.end - next) as u32) };
        short += usize::from((size as usize) < rows);
        batches.push(Batch { start: next as u64, size, padded_length });
        next += size as usize;
    }
    short
}

/// Cut the samples of `lengths`, which start at position `start`, into batches padded to their longest sample; how many of
/// the last ones are short: closed by the end of the samples though more would fit.
///
/// # Errors
/// Interrupted.
pub(crate) fn fill_longest(
    batches: &mut Vec<Batch>,
    start: usize,
    lengths: &[impl Tokens],
    limits: &Limits,
    interrupt: Interrupt<'_>,
) -> Result<usize> {
    let (mut rest, mut next, mut short) = (lengths, start, 0);
    while !rest.is_empty() {
        if batches.len() % PAUSE == 0 {
            interrupt.check()?;
        }
        let (size, longest) = fill_one(rest, limits);
        let kept = limits.round_rows(size);
        let longest = if kept < size { longest_of(&rest[..kept as usize]) } else { longest };
        let padded_length = limits.padded(longest);
        batches.push(Batch { start: next as u64, size: kept, padded_length });
        short += usize::from(size as usize == rest.len() && kept < limits.rows(padded_length));
        next += kept as usize;
        rest = &rest[kept as usize..];
    }
    Ok(short)
}

/// How many of the first `lengths` fit one batch, and the longest of them.
#[inline]
fn fill_one(lengths: &[impl Tokens], limits: &Limits) -> (u32, u32) {
    let (mut longest, mut rows) = (0, u32::MAX);
    let mut size = 0;
    for length in lengths {
        let length = length.tokens();
        if length > longest || size == 0 {
            let fewer = limits.rows(limits.padded(length));
            if fewer <= size {
                break;
            }
            (longest, rows) = (length, fewer);
        }
        size += 1;
        if size == rows {
            break;
        }
    }
    (size, longest)
}

fn longest_of(lengths: &[impl Tokens]) -> u32 {
    lengths.iter().map(Tokens::tokens).max().unwrap_or(0)
}

/// Anything that knows how many tokens it stands for.
pub(crate) trait Tokens {
    /// How many.
    fn tokens(&self) -> u32;
}

/// A sample and its tokens.
impl<I: Index> Tokens for [I; 2] {
    #[inline]
    fn tokens(&self) -> u32 {
        self[1].position() as u32
    }
}
