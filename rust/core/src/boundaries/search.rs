//! Exactly k boundaries, by the charge at which the free optimum has k of them.
//!
//! **Problem**: the cheapest path with exactly k edges in a graph whose costs have the Monge property: bucket costs
//! w(i, j) = (P(j) - P(i)) f(j) do, since for i < i' <= j < j'
//! w(i,j) + w(i',j') - w(i,j') - w(i',j) = (P(i') - P(i)) (f(j) - f(j')) <= 0.
//!
//! **Method**: the optimum C(k) is then convex in k, so the free optimum at a charge c per boundary has k of them where
//! c lies between C(k-1) - C(k) and C(k) - C(k+1). Costs are doubled and charges odd: then no two k tie at a charge.
//! Every solution narrows a bracket (fewer than k, more than k). The next charge supposes C(k) = a + b/k near the last
//! solution, a few times; after misses it is the slope of the chord between both ends, which is certain to fall inside or
//! to show that all k between are on the chord. In that case k edges are spliced from the two paths (Aggarwal, Schieber
//! and Tokuyama, "Finding a minimum-weight k-link path in graphs with the concave Monge property", 1994).
//!
//! **Proof of optimality**: at any charge c, the free optimum minus c k is a lower bound on C(k) (weak duality). It is
//! taken from the program's own total, not from the path, and handed on with the path.
//!
//! **Cost**: 2 to 14 free solutions, each O(m), as a rule; each narrows the bracket, so at most O(m) of them.

use std::cmp::Ordering;

use super::total::Total;
use crate::{Error, Result};

/// Brackets of no more than so many numbers are closed by their chord, which is sure of progress.
const TIGHT: usize = 4;
/// So many solutions follow guesses, which are near at once or not at all: then chords are faster.
const GUESSES: usize = 4;

/// The free problem: as many boundaries as are worth their charge.
pub(super) trait Solver<T> {
    /// The cheapest path at a (doubled) charge per boundary; `None` if there is no path at all.
    fn solve(&mut self, charge: T) -> Result<Option<Path<T>>>;
}

/// An optimal path at a charge.
#[derive(Clone)]
pub(super) struct Path<T> {
    /// The candidates, counted from 1, where its buckets end.
    pub(super) ends: Vec<u32>,
    pub(super) charge: T,
    /// Its doubled cost and all its charges.
    pub(super) dual: T,
}

impl<T: Total> Path<T> {
    /// Read a path from the predecessors of all candidates.
    pub(super) fn trace(from: &[u32], charge: T, dual: T) -> Self {
        let mut ends = Vec::new();
        let mut end = from.len() as u32 - 1;
        while end > 0 {
            ends.push(end);
            end = from[end as usize];
        }
        ends.reverse();
        Self { ends, charge, dual }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The doubled cost of the path itself.
    fn cost(&self) -> i128 {
        self.dual.into() - self.charge.into() * self.ends.len() as i128
    }

    /// What no path of `k` edges can be below.
    pub(super) fn lower_bound(&self, k: usize) -> i128 {
        (self.dual.into() - self.charge.into() * k as i128).div_euclid(2)
    }
}

/// A path of the number of edges asked for, and what none of that number can be below.
#[derive(Clone)]
pub(super) struct Proven<T> {
    pub(super) ends: Vec<u32>,
    pub(super) charge: T,
    pub(super) lower_bound: i128,
}

impl<T: Total> Proven<T> {
    pub(super) fn of(path: Path<T>) -> Self {
        let lower_bound = path.lower_bound(path.len());
        Self { ends: path.ends, charge: path.charge, lower_bound }
    }
}

/// The cheapest path of `k` edges between two optimal ones of fewer and of more; `None` where costs are not Monge and
/// no charge leads to it.
pub(super) fn exactly<T: Total, S: Solver<T>>(
    solver: &mut S,
    mut fewer: Path<T>,
    mut more: Path<T>,
    k: usize,
    mut guess: Option<i128>,
) -> Result<Option<Proven<T>>> {
    if guess.is_none() && fewer.len() < k && k < more.len() {
        guess = rescale(chord(&fewer, &more), fewer.len() * more.len(), k, &fewer);
    }
    let (mut side, mut streak, mut misses, mut solutions) = (Ordering::Equal, 0, 0, 0);
    // The number falls as the charge rises: charges that led to fewer or more than k bracket all that can still help.
    let (mut low, mut high) = (i128::MIN, i128::MAX);
    loop {
        if let Some(hit) = [&fewer, &more].into_iter().find(|path| path.len() == k) {
            return Ok(Some(Proven::of(hit.clone())));
        }
        let chord = chord(&fewer, &more);
        let loose = solutions < GUESSES && more.len() - fewer.len() > TIGHT;
        let charge = guess.filter(|&guess| loose && low < guess && guess < high).unwrap_or(chord) | 1;
        let path = solve(solver, charge)?;
        let found = path.len();
        solutions += 1;
        streak = if found.cmp(&k) == side { streak + 1 } else { 1 };
        side = found.cmp(&k);
        if found <= k {
            high = high.min(charge);
        }
        if found >= k {
            low = low.max(charge);
        }
        guess = next_charge(charge, found, k, streak, &fewer);
        if found > fewer.len() && found < more.len() {
            misses = 0;
            if found <= k {
                fewer = path;
            } else {
                more = path;
            }
        } else if charge == chord | 1 {
            let proof = solve(solver, chord)?;
            return Ok(splice(&fewer, &more, k, &proof));
        } else {
            misses += 1;
            guess = guess.filter(|_| misses == 1);
        }
    }
}

/// The next charge to try after `charge` led to `found`, the `streak`-th time in a row on one side of k: first the one
/// for k itself, then the one as far beyond k, to close the bracket from the other side too, then the chord.
fn next_charge<T: Total>(charge: i128, found: usize, k: usize, streak: usize, fewer: &Path<T>) -> Option<i128> {
    match streak {
        1 => rescale(charge, found * found, k, fewer),
        2 => rescale(charge, found * found, (2 * k).saturating_sub(found).max(1), fewer),
        _ => None,
    }
}

/// The charge for `k` where costs follow a + b/k, and `slope` is right for the square root of `product`.
fn rescale<T: Total>(slope: i128, product: usize, k: usize, fewer: &Path<T>) -> Option<i128> {
    let guess = slope as f64 * product as f64 / (k as f64 * k as f64);
    (slope > 0).then(|| (guess as i128).clamp(1, fewer.cost().max(1)))
}

/// The cheapest paths of every number of edges between two optimal ones: `curve[k - 1]` for k edges, as far as it goes.
pub(super) fn every<T: Total, S: Solver<T>>(
    solver: &mut S,
    fewer: Path<T>,
    more: Path<T>,
    curve: &mut [Option<Proven<T>>],
) -> Result<()> {
    let mut open = vec![(fewer, more)];
    while let Some((fewer, more)) = open.pop() {
        for path in [&fewer, &more] {
            if let Some(slot) = curve.get_mut(path.len() - 1) {
                slot.get_or_insert_with(|| Proven::of(path.clone()));
            }
        }
        if more.len() <= fewer.len() + 1 || fewer.len() >= curve.len() {
            continue;
        }
        let chord = chord(&fewer, &more);
        let path = solve(solver, chord | 1)?;
        if path.len() > fewer.len() && path.len() < more.len() {
            open.push((path.clone(), more));
            open.push((fewer, path));
            continue;
        }
        let proof = solve(solver, chord)?;
        for k in fewer.len() + 1..=curve.len().min(more.len() - 1) {
            curve[k - 1] = splice(&fewer, &more, k, &proof);
        }
    }
    Ok(())
}

fn solve<T: Total, S: Solver<T>>(solver: &mut S, charge: i128) -> Result<Path<T>> {
    solver.solve(T::from_i128(charge))?.ok_or_else(broken)
}

/// The mean saving of one more boundary between two paths, rounded down.
fn chord<T: Total>(fewer: &Path<T>, more: &Path<T>) -> i128 {
    (fewer.cost() - more.cost()).div_euclid((more.len() - fewer.len()) as i128)
}

/// A path of k edges between two of the same total at the charge of `proof`: the first edges of one, then the last of the
/// other, where an edge of the one spans an edge of the other.
fn splice<T: Total>(fewer: &Path<T>, more: &Path<T>, k: usize, proof: &Path<T>) -> Option<Proven<T>> {
    let (a, b) = (&fewer.ends, &more.ends);
    let start = |path: &[u32], edge: usize| if edge == 0 { 0 } else { path[edge - 1] };
    let ends = (0..a.len()).find_map(|x| {
        let y = (x + b.len()).checked_sub(k).filter(|&y| y < b.len())?;
        let spans = start(a, x) <= start(b, y) && b[y] <= a[x];
        spans.then(|| [&a[..x], &b[y..]].concat())
    })?;
    Some(Proven { ends, charge: proof.charge, lower_bound: proof.lower_bound(k) })
}

/// The paths contradict convexity: costs were not Monge after all.
pub(super) fn broken() -> Error {
    Error::invalid("costs break the order that boundaries rely on (nondecreasing in length); please report this")
}
