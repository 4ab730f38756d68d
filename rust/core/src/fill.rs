//! All groups of an epoch cut into batches, and what becomes of the short ones at their ends.

use std::ops::Range;

use crate::batch::{Batch, Cutter};
use crate::parallel::results;
use crate::pour::Visitor;
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
/// short. Returns the batches of all groups, and how many samples were left out.
pub(crate) fn fill_groups(
    starts: &[usize],
    last_batch: LastBatch,
    threads: usize,
    cut: &(impl Fn(usize, Range<usize>, &mut Vec<Batch>) -> usize + Sync),
) -> Result<(Vec<Batch>, u64)> {
    let groups = starts.len() - 1;
    if last_batch == LastBatch::Merge {
        return Ok((merged(starts, cut), 0));
    }
    // The longest group last to start would be the last to end.
    let done = results(threads, groups, &|task| {
        let group = groups - 1 - task;
        let mut batches = Vec::new();
        let short = cut(group, starts[group]..starts[group + 1], &mut batches);
        Ok((batches, short))
    })?;
    let (mut all, mut dropped) = (Vec::new(), 0);
    for (mut batches, short) in done.into_iter().rev() {
        if last_batch == LastBatch::Drop {
            dropped += samples(batches.drain(batches.len() - short..));
        }
        append(&mut all, batches);
    }
    Ok((all, dropped))
}

/// Group after group: what is short at the end of one is the start of the next, as the next group's samples follow it.
fn merged(starts: &[usize], cut: &impl Fn(usize, Range<usize>, &mut Vec<Batch>) -> usize) -> Vec<Batch> {
    let mut batches = Vec::new();
    let mut start = 0;
    for (group, &stop) in starts[1..].iter().enumerate() {
        let short = cut(group, start..stop, &mut batches);
        start = stop;
        if group + 2 < starts.len() {
            start -= samples(batches.drain(batches.len() - short..)) as usize;
        }
    }
    batches
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
        let (mut all, mut dropped) = (Vec::new(), 0);
        for filler in fillers {
            append(&mut all, filler.cutter.batches);
            dropped += filler.dropped;
        }
        (all, dropped)
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

fn append(all: &mut Vec<Batch>, mut batches: Vec<Batch>) {
    if all.is_empty() {
        *all = batches;
    } else {
        all.append(&mut batches);
    }
}

fn samples(batches: impl Iterator<Item = Batch>) -> u64 {
    batches.map(|batch| u64::from(batch.size)).sum()
}
