//! The same number of batches for every rank.
//!
//! Problem: an epoch rarely has a multiple of `world_size` batches, and a rank that runs out early hangs the others.
//! Method: with `split`, the largest batches are cut in two until the number fits: limits are hereditary, every sample is
//! kept exactly once, and at most `world_size - 1` cuts are made. Always possible when there are at least as many samples
//! as batches wanted. Cost: O(batches + ranks * log ranks).

use std::collections::BinaryHeap;

use crate::batch::Batch;
use crate::limits::Limits;
use crate::plan::{Accounts, Settings};
use crate::rng::{Key, Stream};
use crate::shuffle::shuffle;
use crate::{Error, Result};

/// What to do with batches that do not divide by the number of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remainder {
    /// Cut some batches in two: no sample is lost or repeated.
    Split,
    /// Run the first batches of the epoch again at its end.
    Repeat,
    /// Leave the last batches of the epoch out.
    Drop,
}

/// Put the batches of an epoch in a random order and make their number whole steps: what that cuts, repeats and drops is
/// counted. `part` gives a part of a batch, from its position and size.
///
/// # Errors
/// [`Error::Invalid`] when there are too few samples, or nothing would be left.
pub(crate) fn settle(
    batches: &mut Vec<Batch>,
    settings: &Settings,
    epoch: u64,
    limits: &Limits,
    accounts: &mut Accounts,
    part: impl Fn(Batch) -> Batch,
) -> Result<()> {
    if batches.is_empty() {
        return Err(Error::invalid(
            "last_batch is \"drop\", but the epoch has no full batch, and nothing would be left; choose \"keep\" or a \
             smaller budget",
        ));
    }
    let shuffle = |batches: &mut Vec<Batch>| shuffle(batches, Key::new(settings.seed, epoch, Stream::Batches));
    match settings.remainder {
        Remainder::Split => {
            accounts.cut_batches = split(batches, settings, limits, part)?;
            shuffle(batches);
        }
        Remainder::Repeat => {
            shuffle(batches);
            accounts.repeated += repeat(batches, settings.step());
        }
        Remainder::Drop => {
            shuffle(batches);
            accounts.dropped += drop(batches, settings)?;
        }
    }
    Ok(())
}

/// Cut the largest batches in two until their number is whole steps.
fn split(batches: &mut Vec<Batch>, settings: &Settings, limits: &Limits, part: impl Fn(Batch) -> Batch) -> Result<u64> {
    let missing = batches.len().next_multiple_of(settings.step()) - batches.len();
    if !cut(batches, missing, limits, part) {
        return Err(Error::invalid(format!(
            "{}, but the epoch has too few samples to give every rank {}; choose remainder=\"repeat\" or fewer ranks",
            settings.ranks(),
            if settings.accumulate == 1 { "a batch" } else { "its batches" }
        )));
    }
    Ok(missing as u64)
}

/// Cut the largest batches in two until there are `missing` more, each of which `part` makes from its position and size; false where they have too few samples.
pub(crate) fn cut(batches: &mut Vec<Batch>, missing: usize, limits: &Limits, part: impl Fn(Batch) -> Batch) -> bool {
    if missing == 0 {
        return true;
    }
    // Only the `missing` largest can be needed; ties go to the earlier batch, so that the choice is reproducible.
    let mut order: Vec<usize> = (0..batches.len()).collect();
    let largest_first = |&i: &usize| (std::cmp::Reverse(batches[i].size), i);
    if order.len() > missing {
        order.select_nth_unstable_by_key(missing - 1, largest_first);
        order.truncate(missing);
    }
    let mut heap: BinaryHeap<(u32, std::cmp::Reverse<usize>)> =
        order.into_iter().map(|i| (batches[i].size, std::cmp::Reverse(i))).collect();
    for _ in 0..missing {
        let Some((size, std::cmp::Reverse(i))) = heap.pop().filter(|&(size, _)| size > 1) else {
            return false;
        };
        let kept = limits.round_rows(size.div_ceil(2));
        let whole = batches[i];
        let head = Batch { size: kept, ..whole };
        let tail = Batch { start: whole.start + u64::from(kept), size: size - kept, ..whole };
        batches[i] = part(head);
        heap.push((head.size, std::cmp::Reverse(i)));
        heap.push((tail.size, std::cmp::Reverse(batches.len())));
        batches.push(part(tail));
    }
    true
}

/// Append copies of the first batches until `step` divides their number; the samples that this repeats.
fn repeat(batches: &mut Vec<Batch>, step: usize) -> u64 {
    let total = batches.len();
    let missing = total.next_multiple_of(step) - total;
    (0..missing).for_each(|i| batches.push(batches[i % total]));
    batches[total..].iter().map(|batch| u64::from(batch.size)).sum()
}

/// Leave the last batches out so that their number is whole steps; the samples that this drops.
fn drop(batches: &mut Vec<Batch>, settings: &Settings) -> Result<u64> {
    let kept = batches.len() - batches.len() % settings.step();
    if kept == 0 {
        return Err(Error::invalid(format!(
            "{}, but the epoch has only {} batches and remainder=\"drop\" leaves none; choose remainder=\"split\" or \
             \"repeat\"",
            settings.ranks(),
            batches.len()
        )));
    }
    Ok(batches.drain(kept..).map(|batch| u64::from(batch.size)).sum())
}
