//! One packing from its lengths: count, decide, name.

use super::best_fit::best_fit;
use super::bounds::lower_bound;
use super::classes::{Classes, Sorted};
use super::columns::Work;
use super::emit::{Rows, emit};
use super::first_fit::first_fit;
use super::in_order::{concat, spread, sum_of_squares};
use super::next_fit::next_fit;
use super::optimal::improve;
use super::recipe::Recipe;
use super::worst_fit;
use crate::rng::Key;
use crate::{Error, Interrupt, Length, MAX_LENGTH, Overlong, Result};

/// How the packs are decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Next fit decreasing, the textbook's.
    NextFit,
    /// First fit decreasing, the textbook's.
    FirstFit,
    /// Best fit decreasing, the textbook's; with a cap on samples, worst fit where that needs fewer packs.
    BestFit,
    /// The better of best fit and Sum of Squares, and column generation from there on, under a limit of work.
    Optimal,
    /// Best fit; where the bound leaves more than 0.1 % to gain, Sum of Squares in a random order, and then column
    /// generation.
    Auto,
    /// Sum of Squares in the order of the samples, or in a random one.
    SumOfSquares,
    /// One stream, cut every `capacity` tokens.
    Concat,
}

/// What `Method::Auto` is content with: packs above the bound, one part in this many.
const CONTENT: u64 = 1000;

/// What a packing is asked to be.
#[derive(Debug, Clone, Copy)]
pub struct PackOptions {
    /// The most tokens in a pack, each sample rounded up to `multiple_of`.
    pub capacity: u32,
    /// How the packs are decided.
    pub method: Method,
    /// The most samples in a pack; `u32::MAX` for no cap.
    pub max_samples: u32,
    /// Every sample occupies a multiple of this many tokens.
    pub multiple_of: u32,
    /// What happens to samples above the capacity.
    pub overlong: Overlong,
    /// Elementary steps that `Optimal` and `Auto` may take: about a second for a billion.
    pub work: u64,
}

/// A packing that has been decided, ready to name samples as often as is wanted.
#[derive(Debug, Clone)]
pub struct Packer {
    options: PackOptions,
    pub(super) sorted: Sorted,
    pub(super) recipe: Recipe,
    lower_bound: u64,
    /// What takes the part of the lengths where they do not say which samples are alike.
    kinds: Option<Vec<u32>>,
}

/// Packs with their samples.
#[derive(Debug, Clone)]
pub struct Packs {
    /// The packs.
    pub rows: Rows,
    /// The part (start, stop) of its sample that each entry of `rows.indices` holds; only where some sample is cut.
    pub segments: Option<Vec<[u32; 2]>>,
    /// Samples in no pack.
    pub dropped: Vec<u32>,
}

impl Packer {
    /// Decide the packs of `lengths`.
    ///
    /// # Errors
    /// An option that cannot be used, an over-long sample that must not be, or the caller's interrupt.
    pub fn new<L: Length>(lengths: &[L], options: PackOptions, interrupt: Interrupt<'_>) -> Result<Self> {
        check(&options)?;
        let overlong = if options.method == Method::Concat { Overlong::Split } else { options.overlong };
        let sorted = Sorted::new(lengths, options.capacity, options.multiple_of, overlong, interrupt)?;
        let capacity = options.capacity / options.multiple_of;
        let bound = lower_bound(&sorted.classes, capacity, options.max_samples);
        let (recipe, lower_bound) = decide(&sorted.classes, capacity, &options, bound, interrupt)?;
        Ok(Self { options, sorted, recipe, lower_bound, kinds: None })
    }

    /// Packs of `capacity` tokens that were decided elsewhere; samples of one kind may take each other's places.
    ///
    /// # Errors
    /// [`Error::Invalid`] where `rows` do not hold every sample once; the caller's interrupt.
    pub fn given(kinds: Vec<u32>, rows: &Rows, capacity: u32, interrupt: Interrupt<'_>) -> Result<Self> {
        let options = PackOptions {
            capacity,
            method: Method::BestFit,
            max_samples: u32::MAX,
            multiple_of: 1,
            overlong: Overlong::Error,
            work: 0,
        };
        let sorted = Sorted::new(&kinds, MAX_LENGTH, 1, Overlong::Error, interrupt)?;
        let recipe = Recipe::of(&kinds, rows, &sorted.classes)?;
        Ok(Self { options, sorted, lower_bound: recipe.len(), recipe, kinds: Some(kinds) })
    }

    /// How many samples there are to pack.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.sorted.samples
    }

    /// How many packs a method that decides on sizes has found.
    #[cfg(test)]
    pub(super) fn packs(&self) -> u64 {
        self.recipe.len() + self.sorted.whole_pieces
    }

    /// Whether no sample is left to pack.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sorted.classes.counts.is_empty() && self.sorted.whole_pieces == 0
    }

    /// No packing under the same options has fewer packs than this.
    #[must_use]
    pub fn lower_bound(&self) -> u64 {
        if self.options.method == Method::Concat {
            return self.sorted.real_tokens.div_ceil(u64::from(self.options.capacity));
        }
        self.lower_bound + self.sorted.whole_pieces
    }

    /// Tokens in the packs, alignment left out.
    #[must_use]
    pub fn real_tokens(&self) -> u64 {
        self.sorted.real_tokens
    }

    /// Samples longer than a pack.
    #[must_use]
    pub fn overlong(&self) -> u64 {
        self.sorted.overlong
    }

    /// The options that were decided under.
    #[must_use]
    pub fn options(&self) -> &PackOptions {
        &self.options
    }

    /// Name the samples; `lengths` are those that were decided on. With a key, which sample takes which of the places of
    /// its size is drawn at random; the sizes in each pack are the same for every key.
    ///
    /// # Errors
    /// Other lengths, or the caller's interrupt.
    pub fn packs_of<L: Length>(&self, lengths: &[L], key: Option<Key>, interrupt: Interrupt<'_>) -> Result<Packs> {
        if self.options.method == Method::Concat {
            let (rows, segments) = concat(self.options.capacity, lengths, key, interrupt)?;
            return Ok(Packs { rows, segments: Some(segments), dropped: Vec::new() });
        }
        let mut rows = if self.options.method == Method::SumOfSquares {
            sum_of_squares(&self.sorted, &self.options, lengths, key, interrupt)?
        } else {
            let mut grouped = match &self.kinds {
                Some(kinds) => self.sorted.group(kinds, interrupt)?,
                None => self.sorted.group(lengths, interrupt)?,
            };
            if let Some(key) = key {
                grouped.shuffle(&self.sorted.classes, key);
            }
            emit(&self.recipe, &self.sorted.classes.counts, &grouped, interrupt)?
        };
        let mut packs = Packs { rows: Rows::default(), segments: None, dropped: Vec::new() };
        if self.sorted.overlong > 0 {
            match self.options.overlong {
                Overlong::Error | Overlong::Alone => {}
                Overlong::Drop => packs.dropped = self.outside(lengths),
                Overlong::Truncate => packs.segments = Some(self.remaining_parts(&rows, lengths)),
                Overlong::Split => {
                    let mut segments = self.remaining_parts(&rows, lengths);
                    self.add_whole_pieces(&mut rows, &mut segments, lengths);
                    packs.segments = Some(segments);
                }
            }
        }
        packs.rows = rows;
        Ok(packs)
    }

    /// Samples that are in no pack.
    fn outside<L: Length>(&self, lengths: &[L]) -> Vec<u32> {
        let long = lengths.iter().zip(0..).filter(|&(&length, _)| length.into() > self.sorted.usable);
        long.map(|(_, sample)| sample).collect()
    }

    /// For every entry, the part of the sample that the packer was given.
    fn remaining_parts<L: Length>(&self, rows: &Rows, lengths: &[L]) -> Vec<[u32; 2]> {
        let length = |&sample: &u32| lengths.get(sample as usize).map_or(0, |&length| length.into());
        let part = |length: u32| match self.sorted.packed_tokens(length, self.options.overlong) {
            Some(tokens) if self.options.overlong == Overlong::Split => [length - tokens, length],
            tokens => [0, tokens.unwrap_or(0)],
        };
        rows.indices.iter().map(length).map(part).collect()
    }

    /// Behind the packs, one pack for every piece of an over-long sample that fills it.
    fn add_whole_pieces<L: Length>(&self, rows: &mut Rows, segments: &mut Vec<[u32; 2]>, lengths: &[L]) {
        let usable = self.sorted.usable;
        for (sample, &length) in lengths.iter().enumerate() {
            let length: u32 = length.into();
            if length <= usable {
                continue;
            }
            for piece in 0..length / usable {
                rows.indices.push(sample as u32);
                rows.offsets.push(rows.indices.len() as i64);
                segments.push([piece * usable, (piece + 1) * usable]);
            }
        }
    }
}

fn check(options: &PackOptions) -> Result<()> {
    if options.capacity == 0 || options.capacity > i32::MAX as u32 {
        return Err(Error::invalid(format!(
            "capacity is {}, but a pack holds 1 to {} tokens; pass the tokens of one row",
            options.capacity,
            i32::MAX
        )));
    }
    if options.multiple_of == 0 || options.multiple_of > options.capacity {
        return Err(Error::invalid(format!(
            "multiple_of is {}, but must be 1 to capacity={}; pass 1 for no alignment",
            options.multiple_of, options.capacity
        )));
    }
    if options.overlong == Overlong::Alone {
        return Err(Error::invalid(
            "overlong is \"alone\", but no pack exceeds its capacity; choose \"error\", \"drop\", \"truncate\" or \"split\"",
        ));
    }
    let plain = options.max_samples == u32::MAX && options.multiple_of == 1;
    if options.method == Method::Concat && !(plain && matches!(options.overlong, Overlong::Error | Overlong::Split)) {
        return Err(Error::invalid(
            "method is \"concat\", which cuts one stream every capacity tokens and keeps no other limit; leave max_samples, \
             multiple_of and overlong as they are, or choose another method",
        ));
    }
    if options.max_samples == 0 {
        return Err(Error::invalid("max_samples is 0, but a pack holds at least 1 sample; pass None for no cap"));
    }
    Ok(())
}

/// The packs, and a lower bound that may be better than `bound`.
fn decide(
    classes: &Classes,
    capacity: u32,
    options: &PackOptions,
    bound: u64,
    interrupt: Interrupt<'_>,
) -> Result<(Recipe, u64)> {
    let cap = options.max_samples;
    match options.method {
        Method::SumOfSquares | Method::Concat => Ok((Recipe::default(), bound)),
        Method::NextFit => Ok((next_fit(classes, capacity, cap), bound)),
        Method::FirstFit => Ok((first_fit(classes, capacity, cap, interrupt)?, bound)),
        Method::BestFit => Ok((quick(classes, capacity, cap, bound, interrupt)?, bound)),
        Method::Optimal | Method::Auto => {
            let allowed = if options.method == Method::Auto { bound + bound / CONTENT } else { bound };
            let (mut recipe, mut work) = (quick(classes, capacity, cap, bound, interrupt)?, Work(options.work));
            if recipe.len() > allowed {
                let spread = spread(classes, capacity, cap, &mut work, interrupt)?;
                recipe = spread.into_iter().fold(recipe, Recipe::fewer);
            }
            if recipe.len() <= allowed {
                return Ok((recipe, bound));
            }
            improve(recipe, bound, classes, capacity, cap, work, interrupt)
        }
    }
}

/// Best fit, or worst fit where a cap makes that better.
pub(super) fn quick(
    classes: &Classes,
    capacity: u32,
    cap: u32,
    bound: u64,
    interrupt: Interrupt<'_>,
) -> Result<Recipe> {
    let best = best_fit(classes, capacity, cap, interrupt)?;
    if cap == u32::MAX || best.len() <= bound {
        return Ok(best);
    }
    Ok(worst_fit::fewest(classes, capacity, cap, bound, best.len(), interrupt)?.unwrap_or(best))
}
