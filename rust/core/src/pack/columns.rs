//! The linear relaxation of packing, by column generation (Gilmore and Gomory 1961): how many packs of which contents would
//! do if packs could be used in fractions, and the bound that follows for whole ones.
//!
//! A basis has one pack content (a column) for each distinct size. Its prices say what a sample of each size costs; a
//! content whose samples cost more than one pack is worth bringing in, and the knapsack finds the dearest one. Scaled by
//! that dearest content, any prices are a proof: no packing has fewer packs than the samples cost (Farley 1990). Prices
//! are moved only part of the way from the best proof so far (smoothing, Wentges 1997), which saves most of the steps.
//!
//! The bound is certified: it is computed from prices rounded to integers, in exact arithmetic; the basis inverse, which
//! rounding errors do touch, only suggests contents. Cost: for m sizes and capacity C a step takes O(m C + m^2), and
//! there are 1 to 10 m of them. The work is counted in elementary steps and limited by them, never by the clock: the same
//! arguments give the same result everywhere.

use super::classes::Classes;
use super::knapsack::{Knapsack, Pattern};
use crate::{Interrupt, Result};

/// A fractional packing, and what it proves.
#[derive(Debug)]
pub(super) struct Relaxed {
    /// Contents, with how many packs of each.
    pub(super) columns: Vec<(Pattern, f64)>,
    /// No packing has fewer packs.
    pub(super) bound: u64,
}

/// Elementary steps that may still be taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work(pub(crate) u64);

impl Work {
    /// Take so many steps; whether any are left then.
    pub(super) fn spend(&mut self, steps: u64) -> bool {
        self.0 = self.0.saturating_sub(steps);
        self.0 > 0
    }
}

/// How far prices stay with the best proof.
const SMOOTHING: f64 = 0.7;

/// The basis is cleaned of rounding errors after this many steps.
const REFRESH: usize = 50;

/// Solve the relaxation until its bound, rounded up, cannot rise, or reaches the `known` packs that do, or the work is
/// spent.
///
/// # Errors
/// The caller's interrupt.
pub(super) fn relax(
    classes: &Classes,
    capacity: u32,
    max_samples: u32,
    known: u64,
    work: &mut Work,
    interrupt: Interrupt<'_>,
) -> Result<Relaxed> {
    let mut basis = Basis::new(classes, capacity, max_samples);
    let mut knapsack = Knapsack::new(&classes.sizes, capacity, max_samples);
    // Sums of values must stay below 2^53: prices are at most about 1, and a pack holds at most `capacity` samples.
    let scale = f64::from(1 << (20 - (u32::BITS - capacity.leading_zeros()).min(20))) * f64::from(1 << 30);
    let mut proof = Proof { bound: 0, value: 0.0, prices: vec![0.0; classes.sizes.len()] };
    let (mut steps, mut smoothing) = (0, SMOOTHING);
    while work.spend(knapsack.work() / 4) {
        interrupt.check()?;
        let blend = |(&best, &price): (&f64, &f64)| (smoothing * best + (1.0 - smoothing) * price).max(0.0);
        let values: Vec<f64> = proof.prices.iter().zip(&basis.prices).map(blend).map(|v| (v * scale).floor()).collect();
        let (value, pattern) = knapsack.solve(&values);
        proof.offer(&values, value, &classes.counts);
        let packs = basis.packs();
        if proof.bound as f64 >= (packs - 1e-6).ceil() || proof.bound >= known {
            break;
        }
        if basis.price_of(&pattern) <= 1.0 + 1e-9 {
            if smoothing == 0.0 {
                break;
            }
            // The blend misled: look with less of it.
            smoothing = if smoothing > 0.2 { smoothing * 0.5 } else { 0.0 };
            continue;
        }
        smoothing = SMOOTHING;
        if !basis.bring_in(pattern) || !work.spend(basis.work()) {
            break;
        }
        steps += 1;
        if steps % REFRESH == 0 {
            basis.refresh(classes);
        }
    }
    let columns = basis.columns.into_iter().zip(basis.amounts).collect();
    Ok(Relaxed { columns, bound: proof.bound })
}

/// The best bound so far and the prices that prove it.
struct Proof {
    bound: u64,
    /// The bound before rounding up: which of two proofs is the better one.
    value: f64,
    prices: Vec<f64>,
}

impl Proof {
    /// No pack is worth more than `dearest` at integer `values`, so the samples need as many packs as they are worth more.
    fn offer(&mut self, values: &[f64], dearest: f64, counts: &[u32]) {
        if dearest < 1.0 {
            return;
        }
        let worth: u128 = values.iter().zip(counts).map(|(&value, &count)| value as u128 * u128::from(count)).sum();
        self.bound = self.bound.max(worth.div_ceil(dearest as u128) as u64);
        let value = worth as f64 / dearest;
        if value > self.value {
            self.value = value;
            // Prices at which the dearest pack costs exactly 1.
            let factor = 1.0 / dearest;
            self.prices = values.iter().map(|&value| value * factor).collect();
        }
    }
}

/// One column for every class, the inverse of their matrix, how many packs of each are used, and prices.
struct Basis {
    columns: Vec<Pattern>,
    /// Column-major: `inverse[class * m + row]`.
    inverse: Vec<f64>,
    amounts: Vec<f64>,
    prices: Vec<f64>,
}

impl Basis {
    /// Packs of one size each, as many as fit.
    fn new(classes: &Classes, capacity: u32, max_samples: u32) -> Self {
        let m = classes.sizes.len();
        let mut basis = Self { columns: vec![], inverse: vec![0.0; m * m], amounts: vec![], prices: vec![] };
        for (class, (&size, &count)) in classes.sizes.iter().zip(&classes.counts).enumerate() {
            let times = capacity.checked_div(size).unwrap_or(u32::MAX).min(max_samples);
            basis.columns.push(vec![(class as u32, times)]);
            basis.inverse[class * m + class] = 1.0 / f64::from(times);
            basis.amounts.push(f64::from(count) / f64::from(times));
            basis.prices.push(1.0 / f64::from(times));
        }
        basis
    }

    fn packs(&self) -> f64 {
        self.amounts.iter().sum()
    }

    fn work(&self) -> u64 {
        (self.prices.len() * self.prices.len()) as u64 / 2
    }

    fn price_of(&self, pattern: &Pattern) -> f64 {
        pattern.iter().map(|&(class, times)| self.prices[class as usize] * f64::from(times)).sum()
    }

    /// Exchange a column for `pattern`; false where numbers have become too uncertain to do so.
    fn bring_in(&mut self, pattern: Pattern) -> bool {
        let m = self.prices.len();
        let mut change = vec![0.0; m];
        for &(class, times) in &pattern {
            let column = &self.inverse[class as usize * m..][..m];
            change.iter_mut().zip(column).for_each(|(change, &entry)| *change += f64::from(times) * entry);
        }
        let Some(leaving) = self.leaving(&change) else { return false };
        let pivot = change[leaving];
        let step = self.amounts[leaving] / pivot;
        let gain = (1.0 - self.price_of(&pattern)) / pivot;
        for (column, price) in self.inverse.chunks_exact_mut(m).zip(&mut self.prices) {
            let entry = column[leaving];
            if entry != 0.0 {
                *price += gain * entry;
                let factor = entry / pivot;
                column.iter_mut().zip(&change).for_each(|(entry, &change)| *entry -= change * factor);
                column[leaving] = factor;
            }
        }
        for (amount, &change) in self.amounts.iter_mut().zip(&change) {
            *amount = (*amount - step * change).max(0.0);
        }
        self.amounts[leaving] = step;
        self.columns[leaving] = pattern;
        true
    }

    /// The column whose packs are used up first; of several the one with the largest pivot.
    fn leaving(&self, change: &[f64]) -> Option<usize> {
        let mut best: Option<(usize, f64)> = None;
        for (row, (&amount, &change_here)) in self.amounts.iter().zip(change).enumerate() {
            if change_here <= 1e-9 {
                continue;
            }
            let ratio = amount / change_here;
            let better = best.is_none_or(|(other, least)| {
                ratio < least - 1e-12 || (ratio < least + 1e-12 && change_here > change[other])
            });
            if better {
                best = Some((row, ratio));
            }
        }
        best.map(|(row, _)| row)
    }

    /// Amounts and prices anew from the inverse.
    fn refresh(&mut self, classes: &Classes) {
        let m = self.prices.len();
        let mut amounts = vec![0.0; m];
        for ((column, &count), price) in self.inverse.chunks_exact(m).zip(&classes.counts).zip(&mut self.prices) {
            *price = column.iter().sum();
            amounts.iter_mut().zip(column).for_each(|(amount, &entry)| *amount += entry * f64::from(count));
        }
        self.amounts = amounts.into_iter().map(|amount| amount.max(0.0)).collect();
    }
}
