//! How few packs could possibly do: numbers that no packing can beat.
//!
//! - total: the units divided by the capacity, and the samples divided by their cap;
//! - L2 of Martello and Toth (Discrete Applied Mathematics 28, 1990): for a threshold a, samples above capacity - a stand
//!   alone, samples above half the capacity share a pack with none of their kind, and only those of at least a can fill up
//!   what is left beside the latter. The best threshold is one of the sizes.
//!
//! Cost: O(distinct sizes x log). Tight when small samples abound; `columns` gives the bound that stays tight without them.

use super::classes::Classes;

/// A lower bound on the packs of `capacity` units and at most `max_samples` samples that `classes` need.
pub(crate) fn lower_bound(classes: &Classes, capacity: u32, max_samples: u32) -> u64 {
    let by_samples = classes.samples().div_ceil(u64::from(max_samples));
    by_samples.max(martello_toth(classes, capacity))
}

/// The bound L2; at least the total divided by the capacity.
fn martello_toth(classes: &Classes, capacity: u32) -> u64 {
    let (mut counts, mut units) = (vec![0_u64], vec![0_u64]);
    let (mut count_below, mut units_below) = (0, 0);
    for (&size, &count) in classes.sizes.iter().zip(&classes.counts) {
        count_below += u64::from(count);
        units_below += u64::from(size) * u64::from(count);
        counts.push(count_below);
        units.push(units_below);
    }
    // The number of classes up to a size: where the sums up to it stand.
    let up_to = |size: u32| classes.sizes.partition_point(|&other| other <= size);
    let half = up_to(capacity / 2);
    let thresholds = std::iter::once(0).chain(classes.sizes[..half].iter().copied());
    thresholds
        .map(|threshold| {
            let alone = up_to(capacity - threshold).max(half);
            let first = classes.sizes.partition_point(|&size| size < threshold);
            let large = counts[alone] - counts[half];
            let beside = large * u64::from(capacity) - (units[alone] - units[half]);
            let small = units[half] - units[first];
            let more = small.saturating_sub(beside).div_ceil(u64::from(capacity));
            counts[counts.len() - 1] - counts[alone] + large + more
        })
        .max()
        .unwrap_or(0)
}
