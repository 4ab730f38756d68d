//! Filling batches: a run of samples in a given order is cut into batches that keep the limits.
//!
//! Samples are taken as they come (the order is already random, or sorted), so that what is in a batch depends on chance
//! alone. `rows` samples of one padded length fill a batch; when the padded length is that of the longest sample, a batch
//! is closed by the first sample that would push `samples * longest` past the budget.
//! Cost: one sequential pass, 0.5 to 1 ns a sample; with fixed padded lengths nothing is read and only batches cost.

use std::ops::Range;

use crate::limits::Limits;
use crate::raw::{Work, room, widest, zeros};

/// One batch: `size` samples from position `start` of the plan's indices, padded to `padded_length`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Batch {
    /// Position of its first sample in the plan's indices.
    pub start: u64,
    /// Tokens of its samples without padding, where the settings ask for them; else 0.
    pub real_tokens: u64,
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

    /// Several samples from position `start` on.
    pub(crate) fn at(start: usize, size: usize) -> Self {
        Self { start: start as u64, size: size as u32, ..Self::default() }
    }

    /// Where its samples are in the plan's indices.
    #[must_use]
    pub fn positions(&self) -> Range<usize> {
        self.start as usize..self.start as usize + self.size as usize
    }

    /// A table of batches as its columns: starts, sizes and padded lengths.
    #[must_use]
    pub fn columns(table: &[Self]) -> (Vec<i64>, Vec<u32>, Vec<u32>) {
        let (mut starts, mut sizes, mut padded_lengths) = (zeros(table.len()), zeros(table.len()), zeros(table.len()));
        let places = starts.iter_mut().zip(&mut sizes).zip(&mut padded_lengths);
        for (batch, ((start, size), padded_length)) in table.iter().zip(places) {
            (*start, *size, *padded_length) = (batch.start as i64, batch.size, batch.padded_length);
        }
        (starts, sizes, padded_lengths)
    }
}

/// How many batches groups have at most that start at `starts` and whose samples are no longer than `bounds`: as many samples
/// as would fit at that length fill none. Room for all of them at once saves copies, 0.1 ns a sample.
pub(crate) fn most_batches(starts: &[usize], bounds: &[u32], limits: &Limits) -> usize {
    let groups = starts.windows(2).zip(bounds);
    groups.map(|(group, &bound)| (group[1] - group[0]) / limits.rows(limits.padded(bound)) as usize + 2).sum()
}

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
        batches.push(Batch { padded_length, ..Batch::at(next, rows as usize) });
        next += rows as usize;
    }
    let filled = batches.len();
    while next < positions.end {
        let size = limits.round_rows((positions.end - next) as u32) as usize;
        batches.push(Batch { padded_length, ..Batch::at(next, size) });
        next += size;
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
        let left = positions.end - next;
        let size = if rows <= left { rows } else { limits.round_rows(left as u32) as usize };
        short += usize::from(size < rows);
        batches.push(Batch { padded_length, ..Batch::at(next, size) });
        next += size;
    }
    short
}

/// Cuts samples that come in parts into batches padded to their longest sample.
#[derive(Debug)]
pub(crate) struct Cutter<'a> {
    limits: &'a Limits,
    pub(crate) batches: Vec<Batch>,
    /// Whether to count real tokens.
    count: bool,
    /// Position of the first sample of the open batch, how many it has, the longest of them, and how many of it fit.
    start: usize,
    size: usize,
    longest: u32,
    rows: usize,
}

/// Samples looked at side by side.
const WIDTH: usize = 8;

impl<'a> Cutter<'a> {
    /// From the position `start` on, with room for `most` batches, whose real tokens are to be counted or not.
    pub(crate) fn new(limits: &'a Limits, count: bool, most: usize, start: usize) -> Self {
        Self { limits, batches: room(most), count, start, size: 0, longest: 0, rows: 0 }
    }

    /// Close all batches that the samples of `tokens` fill: those of the open batch, and what comes after it. No new sample is
    /// longer than `bound`. How many samples are in batches that are closed now: they need not come again.
    pub(crate) fn fill(&mut self, tokens: &[u32], bound: u32) -> usize {
        let mut fill = Fill { open: self, tokens, bound, done: 0 };
        widest(&mut fill);
        fill.done
    }

    /// Close the open batch, whose samples are all of `tokens`; how many batches that makes, all of them short.
    pub(crate) fn end(&mut self, tokens: &[u32]) -> usize {
        let (mut rest, mut short) = (tokens, 0);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(self.limits.round_rows(rest.len() as u32) as usize);
            self.close(now, longest_of(now));
            (rest, short) = (later, short + 1);
        }
        short
    }

    #[inline]
    fn close(&mut self, tokens: &[u32], longest: u32) {
        let real_tokens = if self.count { sum(tokens) } else { 0 };
        let padded_length = self.limits.padded(longest);
        self.batches.push(Batch { real_tokens, padded_length, ..Batch::at(self.start, tokens.len()) });
        self.start += tokens.len();
        self.size = 0;
    }
}

/// All tokens of some samples.
#[inline]
pub(crate) fn sum(tokens: &[u32]) -> u64 {
    tokens.iter().map(|&tokens| u64::from(tokens)).sum()
}

struct Fill<'a, 'l> {
    open: &'a mut Cutter<'l>,
    tokens: &'a [u32],
    bound: u32,
    done: usize,
}

impl Work for &mut Fill<'_, '_> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn run(self) {
        let limits = self.open.limits;
        // So many samples fit a batch whatever they are.
        let least = limits.rows(limits.padded(self.bound)) as usize;
        let mut rest = self.tokens;
        while extend(self.open, rest, least) {
            let kept = limits.round_rows(self.open.size as u32) as usize;
            let (now, later) = rest.split_at(kept);
            let longest = if kept < self.open.size { longest_of(now) } else { self.open.longest };
            self.open.close(now, longest);
            rest = later;
        }
        self.done = self.tokens.len() - rest.len();
    }
}

/// Add samples to the open batch, whose first ones `tokens` are, and say whether it is full.
#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
fn extend(open: &mut Cutter<'_>, tokens: &[u32], least: usize) -> bool {
    let limits = open.limits;
    let rows_of = |longest| limits.rows(limits.padded(longest)) as usize;
    let (mut size, mut longest, mut rows) = (open.size, open.longest, open.rows);
    if size == 0 {
        (size, longest) = (least.min(tokens.len()), longest_of(&tokens[..least.min(tokens.len())]));
        rows = rows_of(longest);
    }
    let full = 'full: loop {
        let next = &tokens[size..];
        if size == rows || next.is_empty() {
            break size == rows && size > 0;
        }
        // Most often none of the next samples that still fit is longer than what is there.
        let fit = (rows - size).min(WIDTH);
        if let Some(next) = next.first_chunk::<WIDTH>() {
            let tokens = |way: usize| if way < fit { next[way] } else { 0 };
            if (0..WIDTH).map(tokens).fold(0, u32::max) <= longest {
                size += fit;
                continue;
            }
        }
        for &sample in next.iter().take(fit) {
            if sample > longest {
                let fewer = rows_of(sample);
                if fewer <= size {
                    break 'full true;
                }
                (longest, rows) = (sample, fewer);
            }
            size += 1;
            if size == rows {
                break;
            }
        }
    };
    (open.size, open.longest, open.rows) = (size, longest, rows);
    full
}

/// The longest of `tokens`, 0 of none.
#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
fn longest_of(tokens: &[u32]) -> u32 {
    let Some(last) = tokens.last_chunk::<WIDTH>() else {
        return tokens.iter().copied().fold(0, u32::max);
    };
    // The last ones are looked at twice rather than one by one.
    let mut longest = *last;
    for samples in tokens.chunks_exact(WIDTH) {
        (0..WIDTH).for_each(|way| longest[way] = longest[way].max(samples[way]));
    }
    longest.into_iter().fold(0, u32::max)
}
