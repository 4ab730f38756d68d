//! Buckets of two lengths: stripes along the first, each with its own boundaries along the second.
//!
//! **Problem**: samples have two lengths (source and target, audio and text) and are padded in both. General rectangles
//! are a two-dimensional assortment problem; stripes are polynomial, and easy to use.
//!
//! **Method**: at a charge per cell, the best cells of one stripe are the free optimum of [`super::lagrangian`], and the best
//! stripes a textbook dynamic program over their starts. The charge is searched for until there are k cells. Where no
//! charge gives k, the stripes of the neighbouring numbers are kept and k cells shared out among them: the cost of each
//! stripe is convex in its cells, so giving each next cell where it saves most is optimal for those stripes. Where these are
//! too many stripes, or have too few cells, neighbours are merged.
//!
//! **Proof**: at any charge c, the optimum minus c k is a lower bound, as in one dimension; but the cost need not be convex
//! in k, so that the bound may be below the cost.
//!
//! **Cost**: O(x^2 y) for each charge on a grid of x times y: about 10 ms at 128 times 128, some 10 charges.

use std::marker::PhantomData;

use super::lagrangian::Lagrangian;
use super::monge::extremes;
use super::search::{Path, Proven, Solver, broken, every};
use super::total::Total;
use crate::{Error, Interrupt, Result};

/// Most charges that are tried.
const CHARGES: usize = 40;

/// Samples and costs on a grid: row by row, x by x. Every row holds a sample.
#[derive(Debug, Clone, Copy)]
pub struct Plane<'a> {
    /// Samples of each cell of the grid.
    pub counts: &'a [u64],
    /// What one sample padded to a cell costs; it falls neither with x nor with y.
    pub costs: &'a [u64],
    /// Cells of a row.
    pub width: usize,
}

/// Stripes, the cells of each, and the proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stripes {
    /// For every stripe: the row where it ends, and the columns where its cells end, all counted from 1.
    pub stripes: Vec<(u32, Vec<u32>)>,
    /// The cost of all samples.
    pub cost: i128,
    /// What no stripes of as many cells can cost less than.
    pub lower_bound: i128,
}

impl Plane<'_> {
    /// The cheapest stripes found for `k` cells.
    ///
    /// # Errors
    /// [`Error::Invalid`]: sizes that do not match, a row without samples, falling or too large costs, k out of range;
    /// [`Error::Interrupted`].
    pub fn stripes(&self, k: usize, interrupt: Interrupt<'_>) -> Result<Stripes> {
        self.validate(k)?;
        let samples: i128 = self.counts.iter().map(|&count| i128::from(count)).sum();
        let total = samples * i128::from(self.costs.last().copied().unwrap_or_default());
        if total < super::monge::NARROW_LIMIT {
            Search::<i64>::new(self, interrupt).exactly(k, total)
        } else if total < 1 << 93 && samples < 1 << 62 {
            Search::<i128>::new(self, interrupt).exactly(k, total)
        } else {
            Err(Error::invalid(format!("costs sum to up to {total}, but the limit is 2^93")))
        }
    }

    fn validate(&self, k: usize) -> Result<()> {
        let cells = self.counts.len();
        if self.width == 0 || cells == 0 || cells != self.costs.len() || !cells.is_multiple_of(self.width) {
            return Err(Error::invalid(format!(
                "counts has {cells} cells and costs {}, but both must be rows of {}",
                self.costs.len(),
                self.width
            )));
        }
        if let Some(row) = self.counts.chunks(self.width).position(|row| row.iter().all(|&count| count == 0)) {
            return Err(Error::invalid(format!("row {row} of counts holds no sample; leave it out")));
        }
        let falls = |before: &[u64], after: &[u64]| before.iter().zip(after).any(|(before, after)| before > after);
        let rows = || self.costs.chunks(self.width);
        if rows().any(|row| !row.is_sorted()) || rows().zip(rows().skip(1)).any(|(one, next)| falls(one, next)) {
            return Err(Error::invalid("costs fall with a length, but must not"));
        }
        let occupied = self.counts.iter().filter(|&&count| count > 0).count();
        if k == 0 || k > occupied {
            return Err(Error::invalid(format!(
                "k is {k} cells, but the samples lie in {occupied}; use 1 to {occupied}"
            )));
        }
        Ok(())
    }
}

/// The samples of the rows (start, end], column by column, without empty columns.
#[derive(Default)]
struct Stripe {
    /// Cumulative samples, with the leading zero.
    below: Vec<i64>,
    costs: Vec<u64>,
    /// The columns, counted from 1.
    columns: Vec<u32>,
}

struct Search<'a, T> {
    plane: &'a Plane<'a>,
    rows: usize,
    /// `sums[row][column]`: samples in the first rows of each column.
    sums: Vec<Vec<u64>>,
    interrupt: Interrupt<'a>,
    arithmetic: PhantomData<T>,
}

/// The optimal cells of one stripe, for every number of them, and how many it has been given.
struct Share<T> {
    end: usize,
    columns: Vec<u32>,
    curve: Vec<Proven<T>>,
    cells: usize,
}

impl<T> Share<T> {
    /// The cost of a number of cells: on the curve of a stripe, the bound is the cost.
    fn cost(&self, cells: usize) -> Option<i128> {
        self.curve.get(cells - 1).map(|found| found.lower_bound)
    }

    /// What one more cell saves, if there can be one.
    fn saving(&self) -> Option<i128> {
        Some(self.cost(self.cells)? - self.cost(self.cells + 1)?)
    }

    fn stripe(&self) -> (u32, Vec<u32>) {
        let ends = &self.curve[self.cells - 1].ends;
        (self.end as u32, ends.iter().map(|&cell| self.columns[cell as usize - 1]).collect())
    }
}

/// The optimum at a charge.
#[derive(Clone)]
struct AtCharge {
    charge: i128,
    dual: i128,
    cells: usize,
    /// The rows where stripes end.
    ends: Vec<usize>,
}

impl<'a, T: Total> Search<'a, T> {
    fn new(plane: &'a Plane<'a>, interrupt: Interrupt<'a>) -> Self {
        let rows = plane.counts.len() / plane.width;
        let mut sums = vec![vec![0; plane.width]];
        for row in plane.counts.chunks(plane.width) {
            let next = sums[sums.len() - 1].iter().zip(row).map(|(sum, count)| sum + count).collect();
            sums.push(next);
        }
        Self { plane, rows, sums, interrupt, arithmetic: PhantomData }
    }

    fn stripe(&self, start: usize, end: usize, stripe: &mut Stripe) {
        stripe.below.clear();
        stripe.costs.clear();
        stripe.columns.clear();
        stripe.below.push(0);
        let mut below = 0;
        let costs = &self.plane.costs[(end - 1) * self.plane.width..];
        for (column, ((&upto, &before), &cost)) in (1..).zip(self.sums[end].iter().zip(&self.sums[start]).zip(costs)) {
            if upto > before {
                below += (upto - before) as i64;
                stripe.below.push(below);
                stripe.costs.push(cost);
                stripe.columns.push(column);
            }
        }
    }

    /// The cheapest cells of one stripe at a charge.
    fn cells(&self, stripe: &Stripe, charge: T) -> Result<Path<T>> {
        let found = Lagrangian::new(&stripe.below, &stripe.costs, self.interrupt).solve(charge)?;
        found.ok_or_else(broken)
    }

    fn solve(&self, charge: i128) -> Result<AtCharge> {
        let mut stripe = Stripe::default();
        let mut totals = vec![T::ZERO];
        let mut from = vec![0];
        for end in 1..=self.rows {
            let mut best = None;
            for (start, &total) in totals.iter().enumerate() {
                self.stripe(start, end, &mut stripe);
                let total = total + self.cells(&stripe, T::from_i128(charge))?.dual;
                best = best.into_iter().chain([(total, start)]).min();
            }
            let (total, start) = best.unwrap_or((T::ZERO, 0));
            totals.push(total);
            from.push(start);
        }
        let mut found = AtCharge { charge, dual: totals[self.rows].into(), cells: 0, ends: Vec::new() };
        let mut end = self.rows;
        while end > 0 {
            self.stripe(from[end], end, &mut stripe);
            found.cells += self.cells(&stripe, T::from_i128(charge))?.len();
            found.ends.push(end);
            end = from[end];
        }
        found.ends.reverse();
        Ok(found)
    }

    fn exactly(&self, k: usize, largest: i128) -> Result<Stripes> {
        let (mut low, mut high) = (self.solve(1)?, self.solve(2 * largest + 1)?);
        let mut lower_bound = i128::MIN;
        for _ in 0..CHARGES {
            for found in [&low, &high] {
                lower_bound = lower_bound.max((found.dual - found.charge * k as i128).div_euclid(2));
            }
            if low.cells <= k || high.cells >= k || high.charge - low.charge <= 2 {
                break;
            }
            let found = self.solve(between(&low, &high, k))?;
            if found.cells >= k { low = found } else { high = found }
        }
        let mut shared = [self.share_out(&low.ends, k)?, self.share_out(&high.ends, k)?];
        if shared.iter().all(Option::is_none) {
            let ends = if low.ends.len() > k { low.ends } else { (1..=self.rows).collect() };
            shared[0] = self.share_out(&self.merged(ends, k), k)?;
        }
        let cost = |shares: &Vec<Share<T>>| shares.iter().filter_map(|share| share.cost(share.cells)).sum::<i128>();
        let best = shared.into_iter().flatten().min_by_key(cost).ok_or_else(broken)?;
        Ok(Stripes { stripes: best.iter().map(Share::stripe).collect(), cost: cost(&best), lower_bound })
    }

    /// The optimal `k` cells of given stripes, if there are enough and not too many.
    fn share_out(&self, ends: &[usize], k: usize) -> Result<Option<Vec<Share<T>>>> {
        if ends.len() > k {
            return Ok(None);
        }
        let mut shares = Vec::new();
        let mut start = 0;
        for &end in ends {
            let mut stripe = Stripe::default();
            self.stripe(start, end, &mut stripe);
            let mut curve: Vec<Option<Proven<T>>> = vec![None; stripe.costs.len().min(k - ends.len() + 1)];
            let (one, all) = extremes(&stripe.below, &stripe.costs);
            every(&mut Lagrangian::new(&stripe.below, &stripe.costs, self.interrupt), one, all, &mut curve)?;
            let curve: Option<Vec<Proven<T>>> = curve.into_iter().collect();
            shares.push(Share { end, columns: stripe.columns, curve: curve.ok_or_else(broken)?, cells: 1 });
            start = end;
        }
        for _ in ends.len()..k {
            match shares.iter_mut().max_by_key(|share| share.saving()) {
                Some(best) if best.saving().is_some() => best.cells += 1,
                _ => return Ok(None),
            }
        }
        Ok(Some(shares))
    }

    /// Stripes merged with their neighbours, where that costs least, until there are at most `k`.
    fn merged(&self, mut ends: Vec<usize>, k: usize) -> Vec<usize> {
        let one_cell = |start: usize, end: usize| {
            let mut stripe = Stripe::default();
            self.stripe(start, end, &mut stripe);
            i128::from(stripe.below.last().copied().unwrap_or(0))
                * i128::from(stripe.costs.last().copied().unwrap_or(0))
        };
        while ends.len() > k {
            let start = |stripe: usize| if stripe == 0 { 0 } else { ends[stripe - 1] };
            let more =
                |&stripe: &usize| one_cell(start(stripe), ends[stripe + 1]) - one_cell(start(stripe), ends[stripe]);
            let least =
                (0..ends.len() - 1).min_by_key(|stripe| more(stripe) - one_cell(ends[*stripe], ends[stripe + 1]));
            ends.remove(least.unwrap_or(0));
        }
        ends
    }
}

/// An odd charge between two, by their numbers of cells on logarithmic scales, never at the very end.
fn between(low: &AtCharge, high: &AtCharge, k: usize) -> i128 {
    let log = |cells: usize| (cells as f64).ln();
    let share = ((log(low.cells) - log(k)) / (log(low.cells) - log(high.cells))).clamp(0.1, 0.9);
    let (from, to) = ((low.charge as f64).ln(), (high.charge as f64).ln());
    let guess = (from + share * (to - from)).exp() as i128 | 1;
    guess.clamp(low.charge + 2, high.charge - 2)
}
