//! Worst fit into a given number of packs: what best fit cannot do when the samples of a pack are capped.
//!
//! Under a cap, best fit fills packs with long samples until their room is gone and is then left with short ones that no
//! cap lets it use. Spreading instead (always the least loaded pack, as in Graham's LPT rule) gives every pack a fair share
//! of long and short. The number of packs has to be known: it is searched between the lower bound and what best fit needs.
//!
//! Cost: one trial takes O(distinct sizes x samples in a pack) moves, 1 to 5 ms; a search about 12 trials. Within 0.3 % of
//! the bound where the cap binds; wrong where very many samples fill a pack alone (see `columns`). Whether a number of packs
//! suffices is not monotone in theory; the search then still ends at packs that hold everything.

use std::collections::BTreeMap;

use super::classes::Classes;
use super::recipe::{Content, Recipe};
use crate::{Interrupt, Result};

/// The search ends when it knows the fewest packs to one part in this many.
const PRECISION: u64 = 20_000;

/// The fewest packs, from `least` up to below `most`, that the search finds to suffice.
///
/// # Errors
/// The caller's interrupt.
pub(crate) fn fewest(
    classes: &Classes,
    capacity: u32,
    max_samples: u32,
    least: u64,
    most: u64,
    interrupt: Interrupt<'_>,
) -> Result<Option<Recipe>> {
    // `low` does not suffice as far as is known, `high` does.
    let (mut low, mut high, mut best) = (least.saturating_sub(1), most, None);
    while high - low > 1 + least / PRECISION {
        interrupt.check()?;
        let middle = low + (high - low) / 2;
        match worst_fit(classes, capacity, max_samples, middle as u32) {
            Some(recipe) => (high, best) = (middle, Some(recipe)),
            None => low = middle,
        }
    }
    Ok(best)
}

/// Spread `classes` over at most `packs` packs; `None` where some sample finds no pack with room.
pub(crate) fn worst_fit(classes: &Classes, capacity: u32, max_samples: u32, packs: u32) -> Option<Recipe> {
    let mut recipe = Recipe::default();
    // (load, samples) -> the packs that are so, by content.
    let mut open: BTreeMap<(u32, u32), Vec<(Content, u32)>> = BTreeMap::from([((0, 0), vec![(Content::EMPTY, packs)])]);
    for (class, (&size, &count)) in classes.sizes.iter().zip(&classes.counts).enumerate().rev() {
        let mut left = count;
        while left > 0 {
            let mut least = open.first_entry()?;
            let (load, samples) = *least.key();
            if load > capacity - size.min(capacity) || size > capacity {
                return None;
            }
            let (content, alike) = least.get_mut().pop()?;
            if least.get().is_empty() {
                least.remove();
            }
            let taking = alike.min(left);
            if taking < alike {
                open.entry((load, samples)).or_default().push((content, alike - taking));
            }
            left -= taking;
            // Empty samples change no load: all that are left go where the first one goes.
            let times = if size == 0 { (left / taking + 1).min(max_samples - samples) } else { 1 };
            left -= (times - 1) * taking;
            let content = recipe.add(content, class, times);
            if samples + times == max_samples {
                recipe.packs.push((content, taking));
            } else {
                open.entry((load + size, samples + times)).or_default().push((content, taking));
            }
        }
    }
    let used = open.into_iter().filter(|&((_, samples), _)| samples > 0).flat_map(|(_, alike)| alike);
    recipe.packs.extend(used);
    Some(recipe)
}
