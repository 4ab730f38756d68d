//! The cheapest boundaries for any cost of one sample that does not fall with its bound.

use super::constraints::{Constraints, Windows, explain};
use super::lagrangian::Lagrangian;
use super::search::{Path, Proven, Solver, broken, every, exactly};
use super::total::Total;
use super::windowed::Windowed;
use super::{Candidates, Number, Solution};
use crate::{Error, Interrupt, Result};

/// Up to this total cost, 64 bits hold every doubled cost with its charges.
pub(super) const NARROW_LIMIT: i128 = 1 << 60;
/// Candidates below which a coarse first search does not pay.
const COARSE_FROM: usize = 2048;
/// A coarse search keeps one in so many candidates, and more where boundaries would come too close together.
const COARSE_STRIDE: usize = 32;
const COARSE_PER_BOUNDARY: usize = 8;

/// The cheapest of the candidates, where one sample padded to candidate j costs `costs[j]` (or, without costs, its
/// bound: then the total is the number of padded tokens). The number of boundaries is in range.
pub(super) fn optimal(
    candidates: &Candidates,
    costs: Option<&[u64]>,
    number: Number,
    constraints: &Constraints,
    interrupt: Interrupt<'_>,
) -> Result<Solution> {
    let costs = Costs::new(candidates, costs)?;
    if !constraints.none() {
        Ok(costs.solution(&constrained(&costs, number, constraints, interrupt)?))
    } else if costs.largest_total() < NARROW_LIMIT {
        Ok(costs.solution(&free::<i64>(&costs, number, interrupt)?))
    } else {
        Ok(costs.solution(&free::<i128>(&costs, number, interrupt)?))
    }
}

/// The optimum of every number of boundaries up to `most`, which is in range, that the constraints allow.
pub(super) fn curve(
    candidates: &Candidates,
    costs: Option<&[u64]>,
    most: usize,
    constraints: &Constraints,
    interrupt: Interrupt<'_>,
) -> Result<Vec<Solution>> {
    let costs = Costs::new(candidates, costs)?;
    if !constraints.none() {
        constrained_curve(&costs, most, constraints, interrupt)
    } else if costs.largest_total() < NARROW_LIMIT {
        free_curve::<i64>(&costs, most, interrupt)
    } else {
        free_curve::<i128>(&costs, most, interrupt)
    }
}

/// What every candidate costs and holds.
struct Costs<'a> {
    candidates: &'a Candidates,
    each: Vec<u64>,
}

impl<'a> Costs<'a> {
    fn new(candidates: &'a Candidates, costs: Option<&[u64]>) -> Result<Self> {
        let bounds = candidates.bounds();
        let each: Vec<u64> = costs.map_or_else(|| bounds.iter().map(|&bound| bound.into()).collect(), <[u64]>::to_vec);
        if each.len() != bounds.len() {
            return Err(Error::invalid(format!(
                "costs has {} values, but there are {} bounds",
                each.len(),
                bounds.len()
            )));
        }
        if let Some(i) = each.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(Error::invalid(format!(
                "the cost of a sample padded to {} is {}, but to {} it is {}; a cost must not fall with the length",
                bounds[i + 1],
                each[i + 1],
                bounds[i],
                each[i]
            )));
        }
        let costs = Self { candidates, each };
        if costs.each.last() >= Some(&(1 << 62)) || costs.largest_total() >= 1 << 93 {
            return Err(Error::invalid("costs are too large: one sample is limited to 2^62, all samples to 2^93"));
        }
        Ok(costs)
    }

    /// The cost of all samples in one bucket.
    fn largest_total(&self) -> i128 {
        i128::from(self.candidates.samples()) * self.each.last().map_or(0, |&cost| i128::from(cost))
    }

    fn solution<T>(&self, found: &Proven<T>) -> Solution {
        Solution::new(self.candidates, &found.ends, self.total(&found.ends), Some(found.lower_bound))
    }

    /// The cost of the buckets that end there, from their definition.
    fn total(&self, ends: &[u32]) -> i128 {
        let below = self.candidates.below();
        let starts = std::iter::once(0).chain(ends.iter().map(|&end| end as usize));
        let bucket =
            |(start, &end): (usize, &u32)| i128::of(below[end as usize] - below[start], self.each[end as usize - 1]);
        starts.zip(ends).map(bucket).sum()
    }
}

/// Without constraints: between one bucket and all.
fn free<T: Total>(costs: &Costs<'_>, number: Number, interrupt: Interrupt<'_>) -> Result<Proven<T>> {
    let below = costs.candidates.below();
    let k = match number {
        Number::Exactly(k) => k,
        Number::Worth(overhead) => {
            let charge = T::from_i128(odd_charge(overhead, costs));
            let path = Lagrangian::new(below, &costs.each, interrupt).solve(charge)?;
            return path.map(Proven::of).ok_or_else(broken);
        }
    };
    let guess = coarse_guess::<T>(below, &costs.each, k, interrupt)?;
    let (one, all) = extremes(below, &costs.each);
    exactly(&mut Lagrangian::new(below, &costs.each, interrupt), one, all, k, guess)?.ok_or_else(broken)
}

/// The doubled charge just above `overhead`, at which no two numbers of boundaries tie; no larger than makes a difference.
fn odd_charge(overhead: u64, costs: &Costs<'_>) -> i128 {
    2 * i128::from(overhead).min(costs.largest_total()) + 1
}

fn free_curve<T: Total>(costs: &Costs<'_>, most: usize, interrupt: Interrupt<'_>) -> Result<Vec<Solution>> {
    let below = costs.candidates.below();
    let (one, all) = extremes(below, &costs.each);
    let mut found: Vec<Option<Proven<T>>> = vec![None; most];
    every(&mut Lagrangian::new(below, &costs.each, interrupt), one, all, &mut found)?;
    found.into_iter().map(|found| Ok(costs.solution(&found.ok_or_else(broken)?))).collect()
}

/// Under constraints.
fn constrained(
    costs: &Costs<'_>,
    number: Number,
    constraints: &Constraints,
    interrupt: Interrupt<'_>,
) -> Result<Proven<i128>> {
    let windows = Windows::new(costs.candidates, constraints);
    let mut solver = Windowed::new(costs.candidates, &costs.each, &windows, interrupt);
    let impossible = |k, range| explain(costs.candidates, constraints, k, range);
    let k = match number {
        Number::Exactly(k) => k,
        Number::Worth(overhead) => {
            let path = solver.solve(odd_charge(overhead, costs))?;
            return path.map(Proven::of).ok_or_else(|| impossible(None, None));
        }
    };
    let (fewest, most) = fewest_and_most(costs, &mut solver)?.ok_or_else(|| impossible(Some(k), None))?;
    let range = (fewest.len(), most.len());
    if k < range.0 || k > range.1 {
        return Err(impossible(Some(k), Some(range)));
    }
    let found = exactly(&mut solver, fewest, most, k, None)?;
    proven(costs, &mut solver, k, found)?.ok_or_else(|| impossible(Some(k), Some(range)))
}

fn constrained_curve(
    costs: &Costs<'_>,
    most: usize,
    constraints: &Constraints,
    interrupt: Interrupt<'_>,
) -> Result<Vec<Solution>> {
    let windows = Windows::new(costs.candidates, constraints);
    let mut solver = Windowed::new(costs.candidates, &costs.each, &windows, interrupt);
    let impossible = |range| explain(costs.candidates, constraints, Some(most), range);
    let (few, many) = fewest_and_most(costs, &mut solver)?.ok_or_else(|| impossible(None))?;
    let range = (few.len(), many.len());
    let mut found = vec![None; most];
    every(&mut solver, few, many, &mut found)?;
    let mut curve = Vec::new();
    for (k, found) in (1..=range.1).zip(found).skip(range.0 - 1) {
        curve.extend(proven(costs, &mut solver, k, found)?.map(|found| costs.solution(&found)));
    }
    if curve.is_empty() { Err(impossible(Some(range))) } else { Ok(curve) }
}

/// A charge above all costs leaves the fewest boundaries that are possible at all, and its negative the most.
fn fewest_and_most(costs: &Costs<'_>, solver: &mut Windowed<'_>) -> Result<Option<(Path<i128>, Path<i128>)>> {
    let above_all = 2 * costs.largest_total() + 1;
    Ok(solver.solve(above_all)?.zip(solver.solve(-above_all)?))
}

/// What charges led to where it is allowed and proven, else the optimum by layers; `None` where `k` is impossible.
fn proven(
    costs: &Costs<'_>,
    solver: &mut Windowed<'_>,
    k: usize,
    found: Option<Proven<i128>>,
) -> Result<Option<Proven<i128>>> {
    let holds = |found: &Proven<i128>| solver.allows(&found.ends) && costs.total(&found.ends) == found.lower_bound;
    if found.as_ref().is_some_and(holds) {
        return Ok(found);
    }
    let layered = solver.layered(k)?;
    Ok(layered.map(|(ends, total)| Proven { ends, charge: 0, lower_bound: total / 2 }))
}

/// The charge that is right for `k` when only every so many candidates may be chosen: most of the search, at a fraction
/// of the cost.
fn coarse_guess<T: Total>(below: &[i64], costs: &[u64], k: usize, interrupt: Interrupt<'_>) -> Result<Option<i128>> {
    let stride = COARSE_STRIDE.min(costs.len() / (k * COARSE_PER_BOUNDARY));
    if costs.len() < COARSE_FROM || stride < 4 {
        return Ok(None);
    }
    // From the longest down, so that it stays a candidate.
    let mut coarse_costs: Vec<u64> = costs.iter().rev().step_by(stride).copied().collect();
    let mut coarse_below: Vec<i64> = below[1..].iter().rev().step_by(stride).copied().chain([0]).collect();
    coarse_costs.reverse();
    coarse_below.reverse();
    let (one, all) = extremes::<T>(&coarse_below, &coarse_costs);
    let found = exactly(&mut Lagrangian::new(&coarse_below, &coarse_costs, interrupt), one, all, k, None)?;
    Ok(found.map(|found| found.charge.into()))
}

/// The paths of one bucket and of a bucket for each candidate.
pub(super) fn extremes<T: Total>(below: &[i64], costs: &[u64]) -> (Path<T>, Path<T>) {
    let most = costs.len();
    let one = Path { ends: vec![most as u32], charge: T::ZERO, dual: T::of(below[most], 2 * costs[most - 1]) };
    let each = below.windows(2).zip(costs).map(|(pair, &cost)| T::of(pair[1] - pair[0], 2 * cost));
    let all = Path { ends: (1..=most as u32).collect(), charge: T::ZERO, dual: each.fold(T::ZERO, |sum, x| sum + x) };
    (one, all)
}
