//! Boundaries that cost little when batches are padded to their longest sample, in a millisecond.
//!
//! **Problem**: [`longest`] costs thousands of operations a bucket, so that the exact program over all buckets of a grid
//! takes tens of milliseconds: more than a planner should take to start.
//!
//! **Method**: descent from the boundaries that pad least to their bounds. Every boundary may move by up to [`REACH`]
//! strides either way, all of them at once: the best moves are the cheapest path through a layer of places for each
//! boundary. Moves repeat while the cost falls; then the stride halves, down to one cell of the grid. Only the buckets
//! that are met are costed, each once.
//!
//! **Cost**: about 150 buckets a boundary; 1 to 2 ms for 8 boundaries, 3 for 32.
//!
//! **When it is wrong**: it may end in a local optimum. On five sets of real lengths (one of them under three budgets) and
//! 4 to 32 boundaries costs are within 0.06 % of the exact program's on a grid of 512.

use std::collections::HashMap;

use super::longest::{Bucket, Cells};
use super::objective::{check, coarsen};
use super::{Candidates, Constraints, Number, monge};
use crate::{Interrupt, Limits, Result};

/// How many strides a boundary may move at a time.
const REACH: usize = 3;
/// The first stride is one in so many cells of the grid.
const FIRST_STRIDE: usize = 10;
/// Cells of the grid.
const GRID: usize = 256;
/// With fewer cells than this for each boundary all stay where they are: buckets so narrow have batches as long as their
/// bounds.
const ROOM: usize = 8;

/// Boundaries for [`super::Objective::Longest`] under `limits`: as many as are asked for, or as are worth what they cost
/// when all samples are padded to their bounds.
///
/// # Errors
/// As [`super::optimal`].
pub fn descend(candidates: &Candidates, limits: &Limits, number: Number, interrupt: Interrupt<'_>) -> Result<Vec<u32>> {
    check(candidates, number)?;
    limits.validate()?;
    let free = Constraints::default();
    let start = monge::optimal(candidates, None, number, &free, interrupt)?.bounds;
    let k = start.len();
    if k * ROOM > GRID {
        return Ok(start);
    }
    let grid = coarsen(candidates, None, GRID, Vec::new(), interrupt)?;
    let nearest = monge::optimal(&grid, None, Number::Exactly(k), &free, interrupt)?;
    let cell = |bound: &u32| grid.bounds().partition_point(|candidate| candidate < bound) + 1;
    let mut ends: Vec<usize> = nearest.bounds.iter().map(cell).collect();
    let costed = Cells::new(candidates, &grid, limits);
    let (mut bucket, mut known) = (Bucket::default(), HashMap::new());
    let mut cost =
        |start, end| *known.entry((start, end)).or_insert_with(|| bucket.expected_tokens(&costed, start, end));
    let (mut stride, mut least) = ((grid.bounds().len() / FIRST_STRIDE).max(1), f64::INFINITY);
    while stride > 0 {
        interrupt.check()?;
        let (moved, total) = best_moves(&ends, stride, &mut cost);
        if total < least {
            (ends, least) = (moved, total);
        } else {
            stride /= 2;
        }
    }
    Ok(ends.iter().map(|&end| grid.bounds()[end - 1]).collect())
}

/// The cheapest path with each end, but the last, at most [`REACH`] strides from where it is, and its cost.
fn best_moves(ends: &[usize], stride: usize, cost: &mut impl FnMut(usize, usize) -> f64) -> (Vec<usize>, f64) {
    let last = ends.len() - 1;
    let mut layers: Vec<Vec<Place>> = vec![vec![Place { end: 0, total: 0.0, from: 0 }]];
    for (boundary, &end) in ends.iter().enumerate() {
        let reach = if boundary == last { 0 } else { REACH };
        let moves = (0..=2 * reach).filter_map(|step| (end + step * stride).checked_sub(reach * stride));
        let before = &layers[boundary];
        let layer = moves.filter(|&moved| moved < ends[last] || boundary == last).filter_map(|end| {
            let totals = before.iter().enumerate().filter(|(_, place)| place.end < end);
            let totals = totals.map(|(from, place)| (place.total + cost(place.end, end), from));
            let (total, from) = totals.min_by(|a, b| a.0.total_cmp(&b.0))?;
            Some(Place { end, total, from })
        });
        let layer = layer.collect();
        layers.push(layer);
    }
    let total = layers[ends.len()][0].total;
    let mut at = 0;
    let mut path: Vec<usize> = Vec::with_capacity(ends.len());
    for layer in layers[1..].iter().rev() {
        path.push(layer[at].end);
        at = layer[at].from;
    }
    path.reverse();
    (path, total)
}

/// Where a boundary may lie: what the buckets up to there cost, and where the boundary before it then lies in its layer.
struct Place {
    end: usize,
    total: f64,
    from: usize,
}
