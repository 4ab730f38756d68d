//! Which batches make a step.
//!
//! Stratified: see [`super::stratify`].
//!
//! Windowed: batches in random order, sorted by cost inside windows of R steps; each step takes what stands together. In a
//! window the largest costs of its steps exceed the means by at most (largest - smallest cost) in all, for the sum
//! telescopes: hence a relative loss of at most (largest - smallest) / (R * mean).

use super::stratify::stratified;
use super::{Method, Ranks, Table};
use crate::rng::Key;
use crate::shuffle::shuffle;

/// The batches, step after step.
pub(super) fn compose(table: Table<'_>, ranks: Ranks<'_>, method: Method, key: Key) -> Vec<u32> {
    let mut order: Vec<u32> = (0..table.sizes.len() as u32).collect();
    if method == Method::Shuffled {
        return order;
    }
    shuffle(&mut order, key.child(0));
    match method {
        Method::Shuffled => {}
        Method::Stratified | Method::Routed => order = stratified(table, &order, ranks.step()),
        Method::Windowed(steps) => {
            for window in order.chunks_mut(steps.max(1).saturating_mul(ranks.step())) {
                window.sort_by(|&a, &b| by_cost(table, a, b));
            }
            permute_groups(&mut order, ranks.world_size, key.child(1));
        }
        Method::SameShape => {
            order = together(table, &order, ranks.world_size);
            permute_groups(&mut order, ranks.world_size, key.child(1));
        }
    }
    order
}

/// By cost; equal costs (packs of one capacity) by the mean length of the samples, which attention goes by.
fn by_cost(table: Table<'_>, a: u32, b: u32) -> std::cmp::Ordering {
    let (a, b) = (a as usize, b as usize);
    table.costs[a].total_cmp(&table.costs[b]).then_with(|| {
        let left = u128::from(table.tokens[a]) * u128::from(table.sizes[b]);
        left.cmp(&(u128::from(table.tokens[b]) * u128::from(table.sizes[a])))
    })
}

/// Batches of one padded length together, in groups of one a rank; what is left of each length comes last.
fn together(table: Table<'_>, order: &[u32], world_size: usize) -> Vec<u32> {
    let mut sorted = order.to_vec();
    sorted.sort_by_key(|&batch| table.padded_lengths[batch as usize]);
    let mut left = Vec::new();
    let mut whole = Vec::with_capacity(sorted.len());
    for run in sorted.chunk_by(|&a, &b| table.padded_lengths[a as usize] == table.padded_lengths[b as usize]) {
        let (groups, rest) = run.split_at(run.len() - run.len() % world_size);
        whole.extend_from_slice(groups);
        left.extend_from_slice(rest);
    }
    whole.append(&mut left);
    whole
}

/// A uniformly random order of groups of `size`, which stay together.
fn permute_groups(order: &mut Vec<u32>, size: usize, key: Key) {
    let mut groups: Vec<u32> = (0..(order.len() / size) as u32).collect();
    shuffle(&mut groups, key);
    *order = in_order(order, size, &groups);
}

/// Groups of `size` in the given order.
pub(super) fn in_order(batches: &[u32], size: usize, groups: &[u32]) -> Vec<u32> {
    let mut ordered = Vec::with_capacity(batches.len());
    for &group in groups {
        ordered.extend_from_slice(&batches[group as usize * size..][..size]);
    }
    ordered
}
