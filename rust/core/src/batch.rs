//! Filling batches: a run of samples in a given order is cut into batches that keep the limits.
//!
//! Samples are taken as they come (the order is already random, or sorted), so that what is in a batch depends on chance
//! alone. `rows` samples of one padded length fill a batch; when the padded length is that of the longest sample, a batch
//! is closed by the first sample that would push `samples * longest` past the budget.
//! Cost: one sequential pass, 1 ns a sample; with fixed padded lengths nothing is read and only batches cost.

use crate::limits::Limits;

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

/// Cut positions `start..stop` into batches of one padded length; how many of the last ones are short.
pub(crate) fn fill_fixed(
    batches: &mut Vec<Batch>,
    start: u64,
    stop: u64,
    padded_length: u32,
    limits: &Limits,
) -> usize {
    let rows = limits.rows(padded_length);
    let full = (stop - start) / u64::from(rows);
    batches.reserve(full as usize + 2);
    let mut next = start;
    for _ in 0..full {
        batches.push(Batch { start: next, size: rows, padded_length });
        next += u64::from(rows);
    }
    let filled = batches.len();
    while next < stop {
        let size = limits.round_rows((stop - next) as u32);
        batches.push(Batch { start: next, size, padded_length });
        next += u64::from(size);
    }
    batches.len() - filled
}

/// Cut `count` samples, which start at position `start`, into batches padded to their longest sample; how many of the last
/// ones are short: closed by the end of the samples though more would fit.
pub(crate) fn fill_longest(
    batches: &mut Vec<Batch>,
    start: u64,
    length: impl Fn(usize) -> u32,
    count: usize,
    limits: &Limits,
) -> usize {
    let (mut first, mut short) = (0, 0);
    while first < count {
        let (size, longest) = fill_one(&length, first, count, limits);
        let kept = limits.round_rows(size);
        let longest = if kept < size { (first..first + kept as usize).map(&length).max() } else { Some(longest) };
        let padded_length = limits.padded(longest.unwrap_or(1));
        batches.push(Batch { start: start + first as u64, size: kept, padded_length });
        short += usize::from(first + size as usize == count && kept < limits.rows(padded_length));
        first += kept as usize;
    }
    short
}

/// How many samples from `first` on fit one batch, and the longest of them.
#[inline]
fn fill_one(length: &impl Fn(usize) -> u32, first: usize, count: usize, limits: &Limits) -> (u32, u32) {
    let mut longest = length(first);
    let mut rows = limits.rows(limits.padded(longest));
    let mut size = 1;
    while size < rows && first + (size as usize) < count {
        let next = length(first + size as usize);
        if next > longest {
            let fewer = limits.rows(limits.padded(next));
            if fewer <= size {
                break;
            }
            (longest, rows) = (next, fewer);
        }
        size += 1;
    }
    (size, longest)
}
