//! A recipe: how many packs of which sizes, before any sample is named.

use super::classes::Classes;
use super::emit::Rows;
use crate::{Error, Result};

/// "No parent": the first step of a pack.
const ROOT: u32 = u32::MAX;

/// One addition to a pack: `times` samples of `class`, on top of what `parent` describes.
#[derive(Debug, Clone, Copy)]
struct Step {
    parent: u32,
    class: u32,
    times: u32,
}

/// What a pack holds so far; a small number that names a chain of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content(u32);

impl Content {
    /// Nothing yet.
    pub(crate) const EMPTY: Self = Self(ROOT);
}

/// Packs by content. Equal packs are stored once with their number, so that a recipe stays small for any number of samples.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recipe {
    steps: Vec<Step>,
    /// (content, number of packs), in the order in which the packs are written out.
    pub(crate) packs: Vec<(Content, u32)>,
}

impl Recipe {
    /// What the packs of `rows` hold, where sample i is of the class whose size is `kinds[i]`.
    ///
    /// # Errors
    /// [`Error::Invalid`] where the packs do not hold every sample once.
    pub(crate) fn of(kinds: &[u32], rows: &Rows, classes: &Classes) -> Result<Self> {
        let wrong = || Error::invalid("packs must hold every sample once");
        let (mut recipe, mut left, mut members) = (Self::default(), classes.counts.clone(), Vec::new());
        for stops in rows.offsets.windows(2) {
            members.clear();
            for &sample in rows.indices.get(stops[0] as usize..stops[1] as usize).ok_or_else(wrong)? {
                members.push(*kinds.get(sample as usize).ok_or_else(wrong)?);
            }
            members.sort_unstable();
            let mut content = Content::EMPTY;
            for alike in members.chunk_by(|a, b| a == b) {
                let class = classes.sizes.binary_search(&alike[0]).map_err(|_| wrong())?;
                left[class] = left[class].checked_sub(alike.len() as u32).ok_or_else(wrong)?;
                content = recipe.add(content, class, alike.len() as u32);
            }
            recipe.packs.push((content, 1));
        }
        if left.iter().any(|&left| left > 0) { Err(wrong()) } else { Ok(recipe) }
    }

    /// `content` and `times` more samples of `class`.
    pub(crate) fn add(&mut self, content: Content, class: usize, times: u32) -> Content {
        self.steps.push(Step { parent: content.0, class: class as u32, times });
        Content(self.steps.len() as u32 - 1)
    }

    /// How many packs there are.
    pub(crate) fn len(&self) -> u64 {
        self.packs.iter().map(|&(_, packs)| u64::from(packs)).sum()
    }

    /// The one with fewer packs; of equals this.
    pub(crate) fn fewer(self, other: Self) -> Self {
        if other.len() < self.len() { other } else { self }
    }

    /// (class, times) of `content` in the order in which they were added, into `into`.
    pub(crate) fn read(&self, content: Content, into: &mut Vec<(u32, u32)>) {
        into.clear();
        let mut at = content.0;
        while let Some(step) = self.steps.get(at as usize) {
            into.push((step.class, step.times));
            at = step.parent;
        }
        into.reverse();
    }
}
