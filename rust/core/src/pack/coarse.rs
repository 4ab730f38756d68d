//! Few sizes for many: groups of neighbouring classes, so that the relaxation stays small.
//!
//! Rounding every sample up to the largest of its group gives contents that fit in truth; rounding down to the smallest
//! gives a bound that holds in truth. What rounding up wastes is what padding to bucket boundaries wastes, so the groups are
//! optimal buckets. Sizes and capacity are also put on a grid where the capacity is large.

use super::classes::Classes;
use crate::boundaries::{Candidates, Constraints, Number, Objective, optimal};
use crate::{Histogram, Interrupt, Result};

/// Classes up to which every class is a group of its own.
const FINE: usize = 640;

/// Room, in steps of the grid, that the knapsack's table has.
const ROOM: u32 = 2048;

/// Classes in groups, and the problem on the groups.
#[derive(Debug)]
pub(super) struct Coarse {
    /// Where each group ends among the classes; the first may start above 0 (sizes of 0 are in no group).
    pub(super) stops: Vec<usize>,
    /// Where the first group starts.
    pub(super) first: usize,
    /// Groups as classes, rounded up: packs of these are packs in truth.
    pub(super) up: Classes,
    /// Groups as classes, rounded down: bounds for these are bounds in truth.
    pub(super) down: Classes,
    /// The capacity on the grid.
    pub(super) capacity: u32,
}

/// Put `classes` into so many `groups` for packs of `capacity`; sizes of 0 stay outside: they fit anywhere.
///
/// # Errors
/// The caller's interrupt.
pub(super) fn coarse(classes: &Classes, capacity: u32, groups: usize, interrupt: Interrupt<'_>) -> Result<Coarse> {
    let first = usize::from(classes.sizes.first() == Some(&0));
    let grid = grid(capacity);
    let stops = if grid == 1 && classes.sizes.len() <= FINE {
        (first + 1..=classes.sizes.len()).collect()
    } else {
        optimal_stops(classes, first, grid, groups, interrupt)?
    };
    let empty = || Classes { sizes: Vec::new(), counts: Vec::new() };
    let mut coarse = Coarse { stops, first, up: empty(), down: empty(), capacity: capacity / grid };
    let mut start = first;
    for &stop in &coarse.stops {
        let members = &classes.sizes[start..stop];
        let count = classes.counts[start..stop].iter().sum();
        coarse.up.sizes.push(members.last().map_or(0, |size| size.div_ceil(grid)));
        coarse.up.counts.push(count);
        let down = members.first().map_or(0, |size| size / grid);
        if down > 0 {
            coarse.down.sizes.push(down);
            coarse.down.counts.push(count);
        }
        start = stop;
    }
    Ok(coarse)
}

/// The step of the grid: a divisor of the capacity where one is near.
fn grid(capacity: u32) -> u32 {
    let least = capacity.div_ceil(ROOM);
    (least..least * 2).find(|&grid| capacity.is_multiple_of(grid)).unwrap_or(least)
}

fn optimal_stops(
    classes: &Classes,
    first: usize,
    grid: u32,
    groups: usize,
    interrupt: Interrupt<'_>,
) -> Result<Vec<usize>> {
    let pairs = classes.sizes.iter().zip(&classes.counts).skip(first);
    let histogram: Histogram = pairs.map(|(&size, &count)| (size, u64::from(count))).collect();
    let mut stops = Vec::new();
    if histogram.longest().is_some_and(|longest| longest > 0) {
        let candidates = Candidates::new(&histogram, grid, &[])?;
        let groups = groups.min(candidates.bounds().len());
        let bounds =
            optimal(&candidates, Objective::Boundary, Number::Exactly(groups), &Constraints::default(), interrupt)?
                .bounds;
        stops.extend(bounds.iter().map(|&bound| classes.sizes.partition_point(|&size| size <= bound)));
    }
    stops.retain(|&stop| stop > first);
    stops.dedup();
    Ok(stops)
}
