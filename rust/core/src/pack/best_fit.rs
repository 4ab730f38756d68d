//! Best fit decreasing on the counts: exactly the textbook's packs, in time that does not depend on the number of samples.
//!
//! The textbook takes the samples from the longest down and puts each into the fullest pack that still has room. Samples of
//! one size in a row behave alike: once a pack takes one, it is the fullest that fits, so it takes as many as it holds; and
//! packs of equal room behave alike. So one move puts a whole class into a whole group of equal packs. Ties (several packs
//! with the same room) can be broken in any way: the rooms that are left, and with them the number of packs, are the same.
//!
//! Cost: about 1.5 moves a distinct size, 50 ns each. Wrong when few samples are small (1 % to 7 % above the optimum), and
//! with a cap on the samples of a pack (up to 45 %): see `worst_fit` and `columns`.
//! Source: the textbook (Johnson 1973); moving groups on a histogram is due to Krell et al., arXiv 2107.02027.

use super::classes::Classes;
use super::recipe::{Content, Recipe};
use super::rooms::{Alike, Rooms};
use crate::{Interrupt, Result};

/// Pack `classes` into packs of `capacity` units and at most `max_samples` samples.
///
/// # Errors
/// The caller's interrupt.
pub(crate) fn best_fit(classes: &Classes, capacity: u32, max_samples: u32, interrupt: Interrupt<'_>) -> Result<Recipe> {
    best_fit_onto(Recipe::default(), &[], classes, capacity, max_samples, interrupt)
}

/// Packs that may still take samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Started {
    pub(super) content: Content,
    pub(super) packs: u32,
    pub(super) samples: u32,
    pub(super) room: u32,
}

/// Pack `classes`, of which some may have no samples, into the packs of `started` and new ones. The contents of `started`
/// are steps of `recipe`, which lists none of them yet.
///
/// # Errors
/// The caller's interrupt.
pub(super) fn best_fit_onto(
    mut recipe: Recipe,
    started: &[Started],
    classes: &Classes,
    capacity: u32,
    max_samples: u32,
    interrupt: Interrupt<'_>,
) -> Result<Recipe> {
    let mut open = Open { rooms: Rooms::new(capacity), max_samples };
    for &Started { content, packs, samples, room } in started {
        if samples == max_samples {
            recipe.packs.push((content, packs));
        } else {
            open.rooms.push(room, Alike::new(content, packs, samples));
        }
    }
    for (class, (&size, &count)) in classes.sizes.iter().zip(&classes.counts).enumerate().rev() {
        if class % 1024 == 0 {
            interrupt.check()?;
        }
        let mut left = count;
        while left > 0 {
            let (room, mut alike) = match open.rooms.tightest(size).and_then(|room| Some((room, open.rooms.pop(room)?)))
            {
                Some(found) => found,
                None => (capacity, Alike::new(Content::EMPTY, u32::MAX, 0)),
            };
            let fresh = alike.packs == u32::MAX;
            let each = fit(room, size).min(max_samples - alike.samples).min(left);
            let packs = alike.packs.min(left / each);
            open.put(&mut recipe, room - each * size, alike, class, each, packs);
            left -= each * packs;
            alike.packs -= packs;
            // Fewer are left than one more pack would take: they go into one pack.
            if left > 0 && left < each && alike.packs > 0 {
                open.put(&mut recipe, room - left * size, alike, class, left, 1);
                left = 0;
                alike.packs -= 1;
            }
            if alike.packs > 0 && !fresh {
                open.rooms.push(room, alike);
            }
        }
    }
    recipe.packs.extend(open.rooms.drain().map(|alike| (alike.content, alike.packs)));
    Ok(recipe)
}

/// How many samples of `size` fit into `room`; any number of empty ones.
#[inline]
pub(super) fn fit(room: u32, size: u32) -> u32 {
    room.checked_div(size).unwrap_or(u32::MAX)
}

struct Open {
    rooms: Rooms,
    max_samples: u32,
}

impl Open {
    /// `packs` packs like `alike` each take `times` samples of `class` and have `room` left.
    #[inline]
    fn put(&mut self, recipe: &mut Recipe, room: u32, alike: Alike, class: usize, times: u32, packs: u32) {
        let content = recipe.add(alike.content, class, times);
        let samples = alike.samples + times;
        if samples == self.max_samples {
            recipe.packs.push((content, packs));
        } else {
            self.rooms.push(room, Alike::new(content, packs, samples));
        }
    }
}
