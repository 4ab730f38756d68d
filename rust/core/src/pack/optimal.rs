//! Near-optimal packs with a certificate: the relaxation, rounded.
//!
//! The relaxation says how many packs of which contents to use, in fractions. Whole parts are used as they are; of the
//! fractions some are rounded up, the largest first, as many as turns out best; what is left is packed by best fit, into the
//! packs that have room and new ones. The result is never worse than what was known before.

use super::best_fit::{Started, best_fit_onto};
use super::classes::Classes;
use super::coarse::{Coarse, coarse};
use super::columns::{Relaxed, Work, relax};
use super::knapsack::Pattern;
use super::recipe::{Content, Recipe};
use crate::{Interrupt, Result};

/// A smaller fraction of a pack than this is never rounded up.
const LEAST_FRACTION: f64 = 0.02;

/// Groups of sizes that the relaxation is solved on: again with more where the gap stays large.
const GROUPS: [usize; 2] = [256, 512];

/// A gap that ends the search: packs above the bound, one part in this many.
const CONTENT: u64 = 1000;

/// What improves `known`, packs that hold everything, if anything does; and the better of `bound` and the bound found.
///
/// # Errors
/// The caller's interrupt.
pub(super) fn improve(
    mut known: Recipe,
    mut bound: u64,
    classes: &Classes,
    capacity: u32,
    max_samples: u32,
    mut work: Work,
    interrupt: Interrupt<'_>,
) -> Result<(Recipe, u64)> {
    for groups in GROUPS {
        let coarse = coarse(classes, capacity, groups, interrupt)?;
        if coarse.stops.is_empty() {
            break;
        }
        let packs = known.len();
        let up = relax(&coarse.up, coarse.capacity, max_samples, packs, &mut work, interrupt)?;
        let exact = coarse.up.sizes == coarse.down.sizes;
        let down = if exact { None } else { Some(&coarse.down) };
        let found = match down {
            None => up.bound,
            Some(down) => relax(down, coarse.capacity, max_samples, packs, &mut work, interrupt)?.bound,
        };
        bound = bound.max(found);
        let rounded = Rounding { classes, coarse: &coarse, capacity, max_samples, interrupt }.best(&up, bound)?;
        if rounded.len() < packs {
            known = rounded;
        }
        if exact || work.0 == 0 || known.len() <= bound + bound / CONTENT {
            break;
        }
    }
    Ok((known, bound))
}

struct Rounding<'a> {
    classes: &'a Classes,
    coarse: &'a Coarse,
    capacity: u32,
    max_samples: u32,
    interrupt: Interrupt<'a>,
}

impl Rounding<'_> {
    /// The best packing that rounding gives.
    fn best(&self, relaxed: &Relaxed, bound: u64) -> Result<Recipe> {
        let mut supply = Supply::new(self.classes, self.coarse);
        for (pattern, amount) in &relaxed.columns {
            supply.draw(pattern, (amount + 1e-7).floor() as u32, self.capacity);
        }
        let mut best = self.finish(&supply)?;
        let mut fractions: Vec<(f64, &Pattern)> =
            relaxed.columns.iter().map(|(pattern, amount)| (amount.fract(), pattern)).collect();
        fractions.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (fraction, pattern) in fractions {
            if fraction < LEAST_FRACTION || best.len() <= bound {
                break;
            }
            if supply.draw(pattern, 1, self.capacity) == 1 {
                let other = self.finish(&supply)?;
                if other.len() < best.len() {
                    best = other;
                }
            }
        }
        Ok(best)
    }

    /// The packs that were drawn, with what is left of the supply in them or behind them.
    fn finish(&self, supply: &Supply<'_>) -> Result<Recipe> {
        let rest = Classes { sizes: self.classes.sizes.clone(), counts: supply.counts.clone() };
        let recipe = supply.recipe.clone();
        best_fit_onto(recipe, &supply.started, &rest, self.capacity, self.max_samples, self.interrupt)
    }
}

/// Samples that no pack holds yet, and the packs that were drawn from them.
struct Supply<'a> {
    sizes: &'a [u32],
    /// Samples left of every class.
    counts: Vec<u32>,
    /// For every group: its first class, and the class behind the largest one that has samples left.
    groups: Vec<(usize, usize)>,
    recipe: Recipe,
    started: Vec<Started>,
}

impl<'a> Supply<'a> {
    fn new(classes: &'a Classes, coarse: &Coarse) -> Self {
        let starts = std::iter::once(coarse.first).chain(coarse.stops.iter().copied());
        Self {
            sizes: &classes.sizes,
            counts: classes.counts.clone(),
            groups: starts.zip(coarse.stops.iter().copied()).collect(),
            recipe: Recipe::default(),
            started: Vec::new(),
        }
    }

    /// Draw up to `packs` packs of `pattern`, the largest samples of each group first; how many there were samples for.
    fn draw(&mut self, pattern: &Pattern, packs: u32, capacity: u32) -> u32 {
        let mut drawn = 0;
        while drawn < packs {
            // As many packs as the head of every group supplies alone; or one pack that takes from several classes.
            let mut alike = packs - drawn;
            for &(group, times) in pattern {
                let (first, stop) = self.groups[group as usize];
                let head = (first..stop).rev().find(|&class| self.counts[class] > 0).map_or(first, |class| class + 1);
                self.groups[group as usize].1 = head;
                let available: u64 = self.counts[first..head]
                    .iter()
                    .rev()
                    .scan(0_u64, |sum, &count| {
                        let before = *sum;
                        *sum += u64::from(count);
                        (before < u64::from(times)).then_some(u64::from(count))
                    })
                    .sum();
                if available < u64::from(times) {
                    return drawn;
                }
                alike = alike.min((self.counts[head - 1] / times).max(1));
            }
            self.take(pattern, alike, capacity);
            drawn += alike;
        }
        drawn
    }

    /// `packs` packs of `pattern`, alike; more than one only where the heads of all groups hold enough.
    fn take(&mut self, pattern: &Pattern, packs: u32, capacity: u32) {
        let (mut content, mut samples, mut room) = (Content::EMPTY, 0, capacity);
        for &(group, times) in pattern.iter().rev() {
            let (mut left, mut class) = (times, self.groups[group as usize].1);
            while left > 0 && class > 0 {
                class -= 1;
                let here = left.min(self.counts[class] / packs);
                if here > 0 {
                    content = self.recipe.add(content, class, here);
                    self.counts[class] -= here * packs;
                    room -= here * self.sizes[class];
                    left -= here;
                }
            }
            samples += times;
        }
        self.started.push(Started { content, packs, samples, room });
    }
}
