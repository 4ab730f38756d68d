//! Free boundaries at a charge apiece, in one pass over the candidates.
//!
//! **Problem**: with a charge c for every boundary, D(j) = min over i < j of D(i) + (P(j) - P(i)) f(j) + c, where P
//! counts samples and f is the (nondecreasing) cost of one sample padded to candidate j.
//!
//! **Method**: for a fixed i the right-hand side is a line in f(j) with slope -P(i). Slopes fall and queries rise, so the
//! lower envelope is a queue: lines leave it at the back when a new one makes them useless, and at the front when the
//! queries have passed them (the convex-hull trick).
//!
//! **Cost**: O(m); 6 to 7 ns a candidate in the cache, 12 to 15 ns at a million.
//!
//! **When it is wrong**: a decreasing f, or candidates without samples (two lines of one slope).

use super::search::{Path, Solver};
use super::total::Total;
use crate::{Interrupt, Result};

/// Candidates between two looks at the interrupt (a few milliseconds).
const CHUNK: usize = 1 << 18;

/// The path to candidate `index` as a line: it costs `total` and holds `below` samples.
#[derive(Clone, Copy)]
struct Line<T> {
    total: T,
    below: i64,
    index: u32,
}

pub(super) struct Lagrangian<'a, T> {
    /// P, with the leading zero: strictly ascending.
    below: &'a [i64],
    /// f: nondecreasing, one shorter than `below`.
    costs: &'a [u64],
    hull: Vec<Line<T>>,
    /// For every candidate (from 1), the candidate where its bucket begins.
    from: Vec<u32>,
    interrupt: Interrupt<'a>,
}

impl<'a, T: Total> Lagrangian<'a, T> {
    pub(super) fn new(below: &'a [i64], costs: &'a [u64], interrupt: Interrupt<'a>) -> Self {
        Self { below, costs, hull: Vec::new(), from: vec![0; below.len()], interrupt }
    }

    /// Add the line of a new candidate, after taking out those that it makes useless.
    #[inline]
    fn push(hull: &mut Vec<Line<T>>, head: usize, new: Line<T>) {
        while let [.., a, b] = &hull[head..] {
            let useless = T::no_steeper(new.total - a.total, new.below - a.below, b.total - a.total, b.below - a.below);
            if !useless {
                break;
            }
            hull.pop();
        }
        hull.push(new);
    }
}

impl<T: Total> Solver<T> for Lagrangian<'_, T> {
    fn solve(&mut self, charge: T) -> Result<Option<Path<T>>> {
        let hull = &mut self.hull;
        hull.clear();
        let mut head = 0;
        let mut total = T::ZERO;
        let steps = self.costs.iter().zip(self.below).zip(&self.below[1..]).zip(&mut self.from[1..]);
        for (index, (((&cost, &before), &upto), from)) in (0..).zip(steps) {
            if (index as usize).is_multiple_of(CHUNK) {
                self.interrupt.check()?;
            }
            Self::push(hull, head, Line { total, below: before, index });
            while let [a, b, ..] = &hull[head..] {
                if b.total - a.total > T::of(b.below - a.below, 2 * cost) {
                    break;
                }
                head += 1;
            }
            let best = hull[head];
            total = best.total + T::of(upto - best.below, 2 * cost) + charge;
            *from = best.index;
        }
        Ok(Some(Path::trace(&self.from, charge, total)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lagrangian costs agree whichever arithmetic they use, and with the textbook program.
    #[test]
    fn agrees_with_the_textbook_in_both_widths() {
        let below = [0, 3, 4, 9, 11, 20, 21, 33];
        let costs = [2, 2, 5, 9, 10, 16, 17];
        for charge in (1..200).step_by(2) {
            let mut best = vec![0_i64];
            for j in 1..below.len() {
                let cheapest = (0..j).map(|i| best[i] + (below[j] - below[i]) * 2 * costs[j - 1] as i64 + charge).min();
                best.push(cheapest.unwrap());
            }
            let narrow = Lagrangian::<i64>::new(&below, &costs, Interrupt::NEVER).solve(charge).unwrap().unwrap();
            let wide = Lagrangian::<i128>::new(&below, &costs, Interrupt::NEVER).solve(charge.into()).unwrap().unwrap();
            assert_eq!(narrow.dual, best[below.len() - 1]);
            assert_eq!((wide.dual, wide.ends), (narrow.dual.into(), narrow.ends));
        }
    }
}
