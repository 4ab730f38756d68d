//! Boundaries for costs of any form, on a grid of few candidates.
//!
//! **Problem**: bucket costs w(i, j) without the Monge property: whole batches (a ceiling), or padding to the longest
//! sample of a random batch.
//!
//! **Method**: the textbook dynamic program, one layer a boundary; with a charge per boundary, one layer in all.
//!
//! **Cost**: O(m^2) values of w in a table, then O(m^2 k); meant for at most [`LIMIT`] candidates.
//!
//! **When it is wrong**: never on the grid; a finer grid may hold better boundaries.

use super::constraints::Windows;
use crate::{Error, Interrupt, Result};

/// The most candidates of a grid: a table of 8 MiB.
pub const LIMIT: usize = 1024;

/// The cost of every bucket that the windows allow; infinite elsewhere.
pub(super) struct Table {
    ends: usize,
    costs: Vec<f64>,
}

impl Table {
    /// `row(end, costs)` fills in the cost of the buckets (start, end] for every start below `end`.
    pub(super) fn new(
        candidates: usize,
        windows: &Windows,
        interrupt: Interrupt<'_>,
        mut row: impl FnMut(usize, &mut [f64]),
    ) -> Result<Self> {
        let ends = candidates + 1;
        if candidates > LIMIT {
            return Err(Error::invalid(format!("there are {candidates} candidates, but a grid has at most {LIMIT}")));
        }
        let mut costs = vec![f64::INFINITY; ends * ends];
        for (end, costs) in costs.chunks_exact_mut(ends).enumerate().skip(1) {
            interrupt.check()?;
            row(end, &mut costs[..end]);
            for (start, cost) in costs[..end].iter_mut().enumerate() {
                if !windows.allow(start, end) {
                    *cost = f64::INFINITY;
                }
            }
        }
        Ok(Self { ends, costs })
    }

    /// The costs of the buckets that end at `end`, by start.
    fn row(&self, end: usize) -> &[f64] {
        &self.costs[end * self.ends..][..end]
    }

    /// The cheapest paths of 1 to `most` edges: for each number its ends and cost, where there is one.
    pub(super) fn every(&self, most: usize, interrupt: Interrupt<'_>) -> Result<Vec<Option<Found>>> {
        let mut totals = vec![f64::INFINITY; self.ends];
        totals[0] = 0.0;
        let (mut layers, mut found) = (Vec::new(), Vec::new());
        for _ in 0..most {
            interrupt.check()?;
            let (next, from): (Vec<f64>, Vec<u32>) =
                (0..self.ends).map(|end| cheapest(&totals[..end], self.row(end))).unzip();
            totals = next;
            layers.push(from);
            found.push(self.trace(&layers, totals[self.ends - 1]));
        }
        Ok(found)
    }

    /// The cheapest path when each edge is charged `charge`; its cost is without the charges.
    pub(super) fn worth(&self, charge: f64) -> Option<Found> {
        let mut totals = vec![0.0];
        let mut from = vec![0];
        for end in 1..self.ends {
            let (total, start) = cheapest(&totals, self.row(end));
            totals.push(total + charge);
            from.push(start);
        }
        let mut ends = Vec::new();
        let mut end = self.ends as u32 - 1;
        while end > 0 && totals[end as usize].is_finite() {
            ends.push(end);
            end = from[end as usize];
        }
        ends.reverse();
        let cost = totals[self.ends - 1] - charge * ends.len() as f64;
        cost.is_finite().then_some(Found { ends, cost })
    }

    fn trace(&self, layers: &[Vec<u32>], cost: f64) -> Option<Found> {
        if cost.is_infinite() {
            return None;
        }
        let mut ends = vec![self.ends as u32 - 1];
        for layer in layers[1..].iter().rev() {
            ends.push(layer[ends[ends.len() - 1] as usize]);
        }
        ends.reverse();
        Some(Found { ends, cost })
    }
}

/// A path on the grid.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) ends: Vec<u32>,
    pub(super) cost: f64,
}

/// The least sum of a total and a cost, and where; the first of equal ones.
fn cheapest(totals: &[f64], costs: &[f64]) -> (f64, u32) {
    let mut best = (f64::INFINITY, 0);
    for (start, (total, cost)) in (0..).zip(totals.iter().zip(costs)) {
        if total + cost < best.0 {
            best = (total + cost, start);
        }
    }
    best
}
