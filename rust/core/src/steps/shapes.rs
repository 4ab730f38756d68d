//! Whole steps of every padded length: what makes one shape a step possible.
//!
//! Problem: the batches of a padded length are rarely a multiple of the ranks. Method: the remainder policy, length by
//! length: the largest batches are cut in two (as `ranks` does for the whole epoch), or the first run again, or the last
//! are left out. A length with too few samples to give every rank a batch keeps its batches, and shares steps with others.
//! The number of steps is then made whole by cutting the length that can spare most, or by repeating or leaving out one
//! group of the most frequent length.

use std::collections::BTreeMap;

use crate::batch::Batch;
use crate::limits::Limits;
use crate::ranks::{Remainder, cut};
use crate::{Error, Result};

/// No padded length: the batches of lengths with too few samples.
const MIXED: u32 = 0;

/// Batches made to fit, and what happened to samples on the way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shaped {
    /// The batches.
    pub batches: Vec<Batch>,
    /// Batches cut in two.
    pub cut_batches: u64,
    /// Samples used again.
    pub repeated: u64,
    /// Samples left out.
    pub dropped: u64,
}

/// Make the batches of every padded length a multiple of `world_size`, and all of them one of `world_size * accumulate`.
///
/// # Errors
/// [`Error::Invalid`]: too few samples.
pub fn of_one_shape(
    batches: &[Batch],
    world_size: usize,
    accumulate: usize,
    remainder: Remainder,
    limits: &Limits,
) -> Result<Shaped> {
    let mut shapes: BTreeMap<u32, Vec<Batch>> = BTreeMap::new();
    for batch in batches {
        shapes.entry(batch.padded_length).or_default().push(*batch);
    }
    let mut made = Shaped::default();
    let mut left = Vec::new();
    for shape in shapes.values_mut() {
        let missing = shape.len().next_multiple_of(world_size) - shape.len();
        if !made.settle(shape, missing, world_size - missing, remainder, limits) {
            left.append(shape);
        }
    }
    let missing = left.len().next_multiple_of(world_size) - left.len();
    let mut whole = made.settle(&mut left, missing, world_size - missing, remainder, limits)
        || made.lend(shapes.values_mut(), &mut left, missing, limits);
    shapes.insert(MIXED, left);
    let groups = shapes.values().map(Vec::len).sum::<usize>() / world_size;
    let missing = groups.next_multiple_of(accumulate) - groups;
    let changes = if remainder == Remainder::Drop && missing > 0 { accumulate - missing } else { missing };
    let spare = |shape: &&mut Vec<Batch>| if remainder == Remainder::Split { cuts(shape) } else { shape.len() as u64 };
    for _ in 0..changes {
        let Some(shape) = shapes.values_mut().max_by_key(spare) else { break };
        whole &= made.settle(shape, world_size, world_size, remainder, limits);
    }
    made.batches = shapes.into_values().flatten().collect();
    if !whole || (made.batches.is_empty() && !batches.is_empty()) {
        return Err(Error::invalid(format!(
            "world_size is {world_size} and accumulate is {accumulate}, but the epoch has too few samples for whole steps \
             with this remainder; use fewer ranks or another remainder"
        )));
    }
    Ok(made)
}

/// How many more batches these can be cut into.
fn cuts(shape: &[Batch]) -> u64 {
    shape.iter().map(|batch| u64::from(batch.size).saturating_sub(1)).sum()
}

impl Shaped {
    /// Cut `missing` batches off the length that can spare most, for those `left`, which cannot be cut any more.
    fn lend<'a>(
        &mut self,
        shapes: impl Iterator<Item = &'a mut Vec<Batch>>,
        left: &mut Vec<Batch>,
        missing: usize,
        limits: &Limits,
    ) -> bool {
        let Some(shape) = shapes.max_by_key(|shape| cuts(shape)) else { return false };
        let kept = shape.len();
        if !self.settle(shape, missing, 0, Remainder::Split, limits) {
            return false;
        }
        left.extend(shape.drain(kept..));
        true
    }

    /// Add `missing` batches to those of one shape, or take `surplus` away; false where that cannot be done.
    fn settle(
        &mut self,
        shape: &mut Vec<Batch>,
        missing: usize,
        surplus: usize,
        remainder: Remainder,
        limits: &Limits,
    ) -> bool {
        if missing == 0 {
            return true;
        }
        match remainder {
            Remainder::Split => {
                let samples: usize = shape.iter().map(|batch| batch.size as usize).sum();
                if samples < shape.len() + missing || !cut(shape, missing, limits, |part| part) {
                    return false;
                }
                self.cut_batches += missing as u64;
            }
            Remainder::Repeat => {
                let present = shape.len();
                if present == 0 {
                    return false;
                }
                (0..missing).for_each(|i| shape.push(shape[i % present]));
                self.repeated += shape[present..].iter().map(|batch| u64::from(batch.size)).sum::<u64>();
            }
            Remainder::Drop => {
                let kept = shape.len().saturating_sub(surplus);
                self.dropped += shape.drain(kept..).map(|batch| u64::from(batch.size)).sum::<u64>();
            }
        }
        true
    }
}
