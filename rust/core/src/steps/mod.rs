//! Which batches run together, and on which rank.
//!
//! Problem: a step is `accumulate` batches on each of `world_size` ranks. Its ranks should finish together, its samples
//! should look like all samples, and no step should tell what the next one is like. Method: batches are composed into
//! steps ([`compose`]: stratified, by windows of equal cost, of one shape, or as they come), the steps are put in a random
//! order whose neighbours do not correlate ([`sequence`]), and the batches of each step are dealt to its ranks
//! ([`deal`]). It works on the table of batches alone. Cost: O(b) for b batches, 30 ns each; by windows
//! O(b log b), 60 ns.

mod compose;
mod deal;
mod sequence;
mod shapes;
mod stratify;

pub use shapes::{Shaped, of_one_shape};

use crate::rng::{Key, Stream};
use crate::{Error, Result};

/// How batches are composed into steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// As they come: an independent draw of batches.
    Shuffled,
    /// Every step has the mean length of the epoch, as nearly as its number of batches allows.
    Stratified,
    /// The ranks of a step have batches of similar cost: windows of this many steps are sorted by cost.
    Windowed(usize),
    /// The ranks of a step have batches of one padded length.
    SameShape,
    /// Stratified, and rank r always gets the r-th shortest batches of the step.
    Routed,
}

/// What is known of every batch: one value each, in the order in which they would run.
#[derive(Debug, Clone, Copy)]
pub struct Table<'a> {
    /// Samples.
    pub sizes: &'a [u32],
    /// What each sample occupies.
    pub padded_lengths: &'a [u32],
    /// Tokens without padding.
    pub tokens: &'a [u64],
    /// What a rank pays for it, in any unit.
    pub costs: &'a [f64],
}

/// Who runs the batches.
#[derive(Debug, Clone, Copy)]
pub struct Ranks<'a> {
    /// How many there are.
    pub world_size: usize,
    /// Batches of each rank in a step.
    pub accumulate: usize,
    /// How fast each is, relative to the others; empty where all are alike.
    pub speeds: &'a [f64],
}

impl Ranks<'_> {
    /// Batches in a step.
    fn step(&self) -> usize {
        self.world_size * self.accumulate
    }
}

/// The order in which the batches of `table` run: position `(step * accumulate + i) * world_size + r` is the i-th batch of
/// rank r. With `longest_first` the step with the longest batch comes first.
///
/// # Errors
/// [`Error::Invalid`]: the batches fill no whole number of steps, columns of different lengths, speeds that are not
/// positive numbers.
pub fn arrange(
    table: Table<'_>,
    ranks: Ranks<'_>,
    method: Method,
    longest_first: bool,
    seed: u64,
    epoch: u64,
) -> Result<Vec<u32>> {
    check(table, ranks)?;
    let key = Key::new(seed, epoch, Stream::Steps);
    let mut order = compose::compose(table, ranks, method, key.child(0));
    if method != Method::Shuffled {
        sequence::uncorrelated(table, &mut order, ranks.step(), longest_first, key.child(1));
    }
    deal::deal(table, ranks, method, &mut order, key.child(2))?;
    Ok(order)
}

fn check(table: Table<'_>, ranks: Ranks<'_>) -> Result<()> {
    let batches = table.sizes.len();
    if [table.padded_lengths.len(), table.tokens.len(), table.costs.len()] != [batches; 3] {
        return Err(Error::invalid("the columns of the table of batches have different lengths"));
    }
    if ranks.step() == 0 || !batches.is_multiple_of(ranks.step()) {
        return Err(Error::invalid(format!(
            "the epoch has {batches} batches, which fill no whole number of steps of world_size={} times accumulate={}",
            ranks.world_size, ranks.accumulate
        )));
    }
    if !ranks.speeds.is_empty() && ranks.speeds.len() != ranks.world_size {
        return Err(Error::invalid(format!(
            "rank_speed has {} values, but world_size is {}; give one a rank",
            ranks.speeds.len(),
            ranks.world_size
        )));
    }
    if let Some(rank) = ranks.speeds.iter().position(|speed| !(speed.is_finite() && *speed > 0.0)) {
        return Err(Error::invalid(format!(
            "rank_speed[{rank}] is {}, but a speed must be a positive number",
            ranks.speeds[rank]
        )));
    }
    if let Some(batch) = table.costs.iter().position(|cost| !(cost.is_finite() && *cost >= 0.0)) {
        return Err(Error::invalid(format!(
            "the cost of batch {batch} is {}, but must be a number of at least 0; look at the coefficients of cost",
            table.costs[batch]
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
