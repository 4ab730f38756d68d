//! All groups of an epoch cut into batches, and what becomes of the short ones at their ends.

use std::ops::Range;

use crate::batch::{Batch, Cutter, sum};
use crate::limits::Limits;
use crate::parallel::results;
use crate::pour::Visitor;
use crate::raw::room;
use crate::{Index, Result};

/// What to do with the last batch of a bucket when it is short: when it is not full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastBatch {
    /// Run it as it is.
    Keep,
    /// Give its samples to the next longer bucket.
    Merge,
    /// Leave its samples out.
    Drop,
}

/// Cut group g, at positions `starts[g]..starts[g + 1]`, into batches by `cut`, which says how many of the last ones are
/// short; there are `most` of them at most. Returns the batches of all groups, and how many samples were left out.
pub(crate) fn fill_groups(
    starts: &[usize],
    last_batch: LastBatch,
    threads: usize,
    most: usize,
    cut: &(impl Fn(usize, Range<usize>, &mut Vec<Batch>) -> usize + Sync),
) -> Result<(Vec<Batch>, u64)> {
    if threads == 1 || last_batch == LastBatch::Merge {
        return Ok(fill_in_turn(most, starts, last_batch, cut));
    }
    let groups = starts.len() - 1;
    // The longest group last to start would be the last to end.
    let done = results(threads, groups, &|task| {
        let group = groups - 1 - task;
        let cut = |_, positions: Range<usize>, batches: &mut Vec<Batch>| cut(group, positions, batches);
        Ok(fill_in_turn(0, &starts[group..group + 2], last_batch, &cut))
    })?;
    Ok(joined(done.into_iter().rev()))
}

/// All batches in one table, and how many samples were left out.
fn joined(mut tables: impl Iterator<Item = (Vec<Batch>, u64)>) -> (Vec<Batch>, u64) {
    let (mut all, mut dropped) = tables.next().unwrap_or_default();
    for (mut batches, own) in tables {
        all.append(&mut batches);
        dropped += own;
    }
    (all, dropped)
}

/// The same, group after group.
pub(crate) fn fill_in_turn(
    most: usize,
    starts: &[usize],
    last_batch: LastBatch,
    cut: &impl Fn(usize, Range<usize>, &mut Vec<Batch>) -> usize,
) -> (Vec<Batch>, u64) {
    let (mut batches, mut start, mut dropped) = (room(most), starts[0], 0);
    for (group, &stop) in starts[1..].iter().enumerate() {
        let short = cut(group, start..stop, &mut batches);
        start = stop;
        let last = batches.len() - short..;
        match last_batch {
            LastBatch::Drop => dropped += samples(batches.drain(last)),
            // What is short at the end of one is the start of the next, as the next group's samples follow it.
            LastBatch::Merge if group + 2 < starts.len() => start -= samples(batches.drain(last)) as usize,
            LastBatch::Keep | LastBatch::Merge => {}
        }
    }
    (batches, dropped)
}

/// Fills batches padded to their longest sample, from samples as they are shuffled.
pub(crate) struct FillLongest<'a> {
    cutter: Cutter<'a>,
    bounds: &'a [u32],
    last_batch: LastBatch,
    dropped: u64,
}

impl<'a> FillLongest<'a> {
    /// `bounds` are those of the groups; what comes in a group after them is over-long, and none of this one's business.
    pub(crate) fn new(cutter: Cutter<'a>, bounds: &'a [u32], last_batch: LastBatch) -> Self {
        Self { cutter, bounds, last_batch, dropped: 0 }
    }

    /// The batches of all, and how many samples were left out.
    pub(crate) fn joined(fillers: Vec<Self>) -> (Vec<Batch>, u64) {
        joined(fillers.into_iter().map(|filler| (filler.cutter.batches, filler.dropped)))
    }
}

impl Visitor for FillLongest<'_> {
    fn visit<I: Index>(&mut self, group: usize, _: &[I], tokens: &[u32]) -> usize {
        self.bounds.get(group).map_or(tokens.len(), |&bound| self.cutter.fill(tokens, bound))
    }

    fn end<I: Index>(&mut self, group: usize, _: &[I], tokens: &[u32]) -> usize {
        if self.last_batch == LastBatch::Merge && group + 1 < self.bounds.len() {
            return 0;
        }
        let short = self.cutter.end(tokens);
        if self.last_batch == LastBatch::Drop {
            let batches = &mut self.cutter.batches;
            self.dropped += samples(batches.drain(batches.len() - short..));
        }
        tokens.len()
    }
}

/// Fills batches of fixed shapes from samples as they are shuffled, and counts their tokens, which takes a read that
/// `fill_groups` does without.
pub(crate) struct FillFixed<'a> {
    limits: &'a Limits,
    bounds: &'a [u32],
    last_batch: LastBatch,
    batches: Vec<Batch>,
    /// Position of the first sample that is in no batch yet.
    start: usize,
    dropped: u64,
}

impl<'a> FillFixed<'a> {
    /// From the position `start` on, with room for `most` batches. `bounds` are those of the groups.
    pub(crate) fn new(limits: &'a Limits, bounds: &'a [u32], last_batch: LastBatch, most: usize, start: usize) -> Self {
        Self { limits, bounds, last_batch, batches: room(most), start, dropped: 0 }
    }

    /// The batches of all, and how many samples were left out.
    pub(crate) fn joined(fillers: Vec<Self>) -> (Vec<Batch>, u64) {
        joined(fillers.into_iter().map(|filler| (filler.batches, filler.dropped)))
    }

    fn close(&mut self, tokens: &[u32], padded_length: u32) {
        self.batches.push(Batch { real_tokens: sum(tokens), padded_length, ..Batch::at(self.start, tokens.len()) });
        self.start += tokens.len();
    }
}

impl Visitor for FillFixed<'_> {
    fn visit<I: Index>(&mut self, group: usize, _: &[I], tokens: &[u32]) -> usize {
        let Some(&bound) = self.bounds.get(group) else { return tokens.len() };
        let padded_length = self.limits.padded(bound);
        let batches = tokens.chunks_exact(self.limits.rows(padded_length) as usize);
        let done = tokens.len() - batches.remainder().len();
        batches.for_each(|tokens| self.close(tokens, padded_length));
        done
    }

    fn end<I: Index>(&mut self, group: usize, _: &[I], tokens: &[u32]) -> usize {
        let Some(&bound) = self.bounds.get(group) else { return tokens.len() };
        match self.last_batch {
            LastBatch::Merge if group + 1 < self.bounds.len() => return 0,
            LastBatch::Keep | LastBatch::Merge => {
                let mut rest = tokens;
                while !rest.is_empty() {
                    let (now, later) = rest.split_at(self.limits.round_rows(rest.len() as u32) as usize);
                    self.close(now, self.limits.padded(bound));
                    rest = later;
                }
            }
            LastBatch::Drop => {
                self.dropped += tokens.len() as u64;
                self.start += tokens.len();
            }
        }
        tokens.len()
    }
}

fn samples(batches: impl Iterator<Item = Batch>) -> u64 {
    batches.map(|batch| u64::from(batch.size)).sum()
}
