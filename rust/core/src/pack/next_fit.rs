//! Next fit decreasing: one pack is open; a sample that does not fit closes it. The baseline of the field.
//!
//! Cost: one move a distinct size. Wrong by up to 70 % (Baker and Coffman 1981); here to be compared with.

use super::best_fit::fit;
use super::classes::Classes;
use super::recipe::{Content, Recipe};

/// Pack `classes` into packs of `capacity` units and at most `max_samples` samples.
pub(crate) fn next_fit(classes: &Classes, capacity: u32, max_samples: u32) -> Recipe {
    let mut recipe = Recipe::default();
    let (mut content, mut room, mut samples) = (Content::EMPTY, capacity, 0);
    for (class, (&size, &count)) in classes.sizes.iter().zip(&classes.counts).enumerate().rev() {
        let mut left = count;
        while left > 0 {
            let each = fit(room, size).min(max_samples - samples).min(left);
            if each == 0 {
                recipe.packs.push((content, 1));
                (content, room, samples) = (Content::EMPTY, capacity, 0);
                // All new packs of this class but the last are full and alike.
                let each = fit(capacity, size).min(max_samples);
                let full = (left - 1) / each;
                if full > 0 {
                    let alike = recipe.add(Content::EMPTY, class, each);
                    recipe.packs.push((alike, full));
                    left -= full * each;
                }
                continue;
            }
            content = recipe.add(content, class, each);
            room -= each * size;
            samples += each;
            left -= each;
        }
    }
    if samples > 0 {
        recipe.packs.push((content, 1));
    }
    recipe
}
