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

/// Cut positions `start..stop` into batches of one padded length; all but the last ones are full.
pub(crate) fn fill_fixed(batches: &mut Vec<Batch>, start: u64, stop: u64, padded_length: u32, limits: &Limits) {
    let rows = limits.rows(padded_length);
    let full = (stop - start) / u64::from(rows);
    batches.reserve(full as usize + 2);
    let mut next = start;
    for _ in 0..full {
        batches.push(Batch { start: next, size: rows, padded_length });
        next += u64::from(rows);
    }
    while next < stop {
        let size = limits.round_rows((stop - next) as u32);
        batches.push(Batch { start: next, size, padded_length });
        next += u64::from(size);
    }
}

/// Cut `lengths`, which start at position `start`, into batches padded to their longest sample.
pub(crate) fn fill_longest(
    batches: &mut Vec<Batch>,
    start: u64,
    lengths: impl Fn(usize) -> u32,
    count: usize,
    limits: &Limits,
) {
    let mut first = 0;
    while first < count {
        let (size, longest) = fill_one(&lengths, first, count, limits);
        batches.push(Batch { start: start + first as u64, size, padded_length: limits.padded(longest) });
        first += size as usize;
    }
}

/// How many samples from `first` on make one batch, and the longest of them.
#[inline]
fn fill_one(lengths: &impl Fn(usize) -> u32, first: usize, count: usize, limits: &Limits) -> (u32, u32) {
    let mut longest = lengths(first);
    let mut rows = limits.rows(limits.padded(longest));
    let mut size = 1;
    while size < rows && first + (size as usize) < count {
        let length = lengths(first + size as usize);
        if length > longest {
            let fewer = limits.rows(limits.padded(length));
            if fewer <= size {
                break;
            }
            (longest, rows) = (length, fewer);
        }
        size += 1;
    }
    let rounded = limits.round_rows(size);
    if rounded < size {
        longest = (first..first + rounded as usize).map(lengths).max().unwrap_or(longest);
    }
    (rounded, longest)
}
