//! All groups of an epoch cut into batches, and what becomes of the short ones at their ends.

use std::ops::Range;
use std::sync::Mutex;

use crate::batch::Batch;
use crate::parallel::run;
use crate::{Error, Result};

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
    cut: &(impl Fn(usize, Range<usize>, &mut Vec<Batch>) -> Result<usize> + Sync),
) -> Result<(Vec<Batch>, u64)> {
    let groups = starts.len() - 1;
    if last_batch == LastBatch::Merge {
        return merged(starts, cut).map(|batches| (batches, 0));
    }
    let done: Vec<Mutex<(Vec<Batch>, usize)>> = (0..groups).map(|_| Mutex::default()).collect();
    // The longest group last to start would be the last to end.
    run(threads, groups, &|task| {
        let group = groups - 1 - task;
        let mut batches = Vec::new();
        let short = cut(group, starts[group]..starts[group + 1], &mut batches)?;
        *done[group].lock().map_err(|_| Error::Interrupted)? = (batches, short);
        Ok(())
    })?;
    let (mut all, mut dropped) = (Vec::new(), 0);
    for group in done {
        let (mut batches, short) = group.into_inner().map_err(|_| Error::Interrupted)?;
        if last_batch == LastBatch::Drop {
            dropped += samples(batches.drain(batches.len() - short..));
        }
        if all.is_empty() {
            all = batches;
        } else {
            all.append(&mut batches);
        }
    }
    Ok((all, dropped))
}

/// Group after group: what is short at the end of one is the start of the next, as the next group's samples follow it.
fn merged(
    starts: &[usize],
    cut: &impl Fn(usize, Range<usize>, &mut Vec<Batch>) -> Result<usize>,
) -> Result<Vec<Batch>> {
    let mut batches = Vec::new();
    let mut start = 0;
    for (group, &stop) in starts[1..].iter().enumerate() {
        let short = cut(group, start..stop, &mut batches)?;
        start = stop;
        if group + 2 < starts.len() {
            start -= samples(batches.drain(batches.len() - short..)) as usize;
        }
    }
    Ok(batches)
}

fn samples(batches: impl Iterator<Item = Batch>) -> u64 {
    batches.map(|batch| u64::from(batch.size)).sum()
}
