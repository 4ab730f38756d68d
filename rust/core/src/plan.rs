//! A whole epoch: every batch of every rank, as arrays, from the lengths alone.
//!
//! Method: samples are grouped by bucket and shuffled inside (or sorted), each group is cut into batches under the limits,
//! the number of batches is made equal for all ranks, and the small table of batches is shuffled; indices stay where they are.
//! Cost: a few nanoseconds a sample; the result is a pure function of (lengths, layout, settings, epoch).

use std::ops::Range;

use crate::batch::{Batch, Cutter, fill_fixed, fill_sorted, most_batches};
use crate::bucket::Buckets;
use crate::counts::Counts;
use crate::fill::{FillFixed, FillLongest, LastBatch, fill_groups, fill_in_turn};
use crate::items::Items;
use crate::limits::Limits;
use crate::means::Means;
use crate::order;
use crate::overlong::{Excess, Overlong};
use crate::pour::pour;
use crate::ranks::{Remainder, settle};
use crate::scatter::{Scattered, Tokens, scattered};
use crate::sort::sorted;
use crate::{Error, Histogram, Index, Interrupt, Length, Result, Spare};

/// In which order samples are put into batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Shuffled inside buckets of similar length.
    Bucketed,
    /// Shuffled all together.
    Shuffled,
    /// By length: the same batches every epoch, with the least padding.
    Sorted,
}

/// To which length the samples of a batch are padded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PadTo {
    /// The longest sample of the batch.
    Longest,
    /// The upper bound of its bucket.
    Boundary,
}

/// How samples become padded batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Padded {
    /// What a batch may hold.
    pub limits: Limits,
    /// Inclusive upper bounds of the buckets.
    pub boundaries: Vec<u32>,
    /// The length to pad to.
    pub pad_to: PadTo,
    /// The order of samples.
    pub order: Order,
    /// What to do with short batches.
    pub last_batch: LastBatch,
    /// Whether the step with the longest batch comes first.
    pub longest_first: bool,
}

/// What is the same for every layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Names the random bits.
    pub seed: u64,
    /// How many ranks share the plan.
    pub world_size: u32,
    /// How many batches each of them runs in a step.
    pub accumulate: u32,
    /// What to do with samples that fit no batch.
    pub overlong: Overlong,
    /// What to do with batches that do not divide by the number of ranks.
    pub remainder: Remainder,
    /// How many threads plan; the plan does not depend on it.
    pub threads: u32,
    /// Whether to count the real tokens of every batch, by which steps are composed.
    pub count_tokens: bool,
}

impl Settings {
    /// # Errors
    /// [`Error::Invalid`] for steps without batches.
    pub(crate) fn validate(&self) -> Result<()> {
        for (name, value) in [("world_size", self.world_size), ("accumulate", self.accumulate)] {
            if value == 0 {
                return Err(Error::invalid(format!("{name} is 0, but must be at least 1")));
            }
        }
        Ok(())
    }

    /// Batches in a step: the number of an epoch's batches divides by it.
    pub(crate) fn step(&self) -> usize {
        self.world_size as usize * self.accumulate as usize
    }

    /// What makes a step, for messages.
    pub(crate) fn ranks(&self) -> String {
        match self.accumulate {
            1 => format!("world_size is {}", self.world_size),
            accumulate => format!("world_size is {} and accumulate is {accumulate}", self.world_size),
        }
    }
}

/// A planned epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan<I> {
    /// Samples, batch by batch, though batches are not in running order.
    pub indices: Vec<I>,
    /// The batches in running order: batch i belongs to rank `i % world_size`, step
    /// `i / (world_size * accumulate)`.
    pub batches: Vec<Batch>,
    /// Per index, which tokens of the sample are used, where not all are.
    pub segments: Option<Vec<[u32; 2]>>,
    /// What happened to samples on the way.
    pub accounts: Accounts,
}

/// What happened to samples: nothing is silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accounts {
    /// Left out altogether.
    pub dropped: u64,
    /// Cut to the longest length that fits.
    pub truncated: u64,
    /// Cut into several pieces.
    pub split: u64,
    /// Alone in a batch beyond the budget.
    pub alone: u64,
    /// Used again at the end of the epoch.
    pub repeated: u64,
    /// Batches cut in two for equal ranks.
    pub cut_batches: u64,
}

/// Everything about an epoch that does not depend on which epoch it is.
#[derive(Debug, Clone)]
pub struct Planner {
    layout: Padded,
    settings: Settings,
    /// What samples are grouped by: the layout's buckets up to the longest length that fits, or one for all.
    groups: Buckets,
    /// How many items each group has; the over-long are the last.
    counts: Counts,
    excess: Excess,
    samples: usize,
}

impl Planner {
    /// Look at the lengths once.
    ///
    /// # Errors
    /// [`Error::Invalid`] for limits, boundaries or lengths that cannot be planned.
    pub fn new<L: Length>(lengths: &[L], layout: Padded, settings: Settings, interrupt: Interrupt<'_>) -> Result<Self> {
        layout.limits.validate()?;
        if lengths.is_empty() {
            return Err(Error::invalid("lengths is empty, but a plan needs at least one sample"));
        }
        settings.validate()?;
        let groups = groups(&layout)?;
        let limit = groups.longest();
        let mut counts = vec![0; groups.bounds().len() + 1];
        for (length, count) in Histogram::of(lengths, interrupt)?.iter() {
            counts[groups.of(length)] += count;
        }
        let overlong = counts[groups.bounds().len()];
        let excess = Excess::new(lengths, overlong, limit, settings.overlong, &layout)?;
        excess.recount(&mut counts, &groups);
        Ok(Self { layout, settings, groups, counts: Counts::new(counts), excess, samples: lengths.len() })
    }

    /// What was decided for every layout.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How many items an epoch has: samples, and the further pieces of those that are split.
    #[must_use]
    pub fn items(&self) -> usize {
        self.samples + self.excess.pieces()
    }

    /// Plan one epoch. `lengths` must be those that the planner was made with.
    ///
    /// # Errors
    /// Interrupted; other lengths; more ranks than the epoch can serve.
    pub fn plan<L: Length, I: Index>(
        &self,
        lengths: &[L],
        epoch: u64,
        spare: &Spare<I>,
        interrupt: Interrupt<'_>,
    ) -> Result<Plan<I>> {
        if lengths.len() != self.samples {
            return Err(Error::invalid(format!(
                "lengths has {} samples, but the planner was made for {}",
                lengths.len(),
                self.samples
            )));
        }
        let means = Means { threads: self.settings.threads as usize, spare, interrupt };
        let items = self.excess.items(lengths);
        let mut accounts = self.excess.accounts();
        let (mut indices, mut batches) = self.cut(items, epoch, &mut accounts, means)?;
        let part = |batch: Batch| self.part(batch, &indices, items);
        settle(&mut batches, &self.settings, epoch, &self.layout.limits, &mut accounts, part)?;
        if self.layout.longest_first {
            order::longest_first(&mut batches, self.settings.step(), |batch| batch.padded_length);
        }
        let segments = self.excess.segments(lengths, &mut indices);
        Ok(Plan { indices, batches, segments, accounts })
    }

    /// Order the items and cut them into batches.
    fn cut<L: Length, I: Index>(
        &self,
        items: Items<'_, L>,
        epoch: u64,
        accounts: &mut Accounts,
        means: Means<'_, I>,
    ) -> Result<(Vec<I>, Vec<Batch>)> {
        let Self { layout, groups, counts, settings, .. } = self;
        let (starts, bits) = (starts_of(counts), (settings.seed, epoch));
        let (indices, (mut batches, dropped)) = match (layout.order, layout.pad_to) {
            (Order::Sorted, _) => self.cut_sorted(items, &starts, means)?,
            (_, PadTo::Boundary) if !settings.count_tokens => {
                let indices = shuffled(items, groups, counts, bits, means)?;
                (indices, self.fill_fixed(&starts))
            }
            _ => self.cut_poured(items, &starts, bits, means)?,
        };
        accounts.dropped += dropped;
        if settings.overlong == Overlong::Alone {
            for (position, index) in indices.iter().enumerate().skip(starts[groups.bounds().len()]) {
                let tokens = items.tokens(index.position());
                let real_tokens = if settings.count_tokens { tokens.into() } else { 0 };
                let padded_length = layout.limits.padded(tokens);
                batches.push(Batch { real_tokens, padded_length, ..Batch::at(position, 1) });
            }
        }
        Ok((indices, batches))
    }

    /// The items by length, in batches, and how many were left out.
    fn cut_sorted<L: Length, I: Index>(
        &self,
        items: Items<'_, L>,
        starts: &[usize],
        means: Means<'_, I>,
    ) -> Result<Filled<I>> {
        let Self { layout: Padded { limits, pad_to, last_batch, .. }, groups, settings, .. } = self;
        let indices: Vec<I> = sorted(items, groups, means.threads, means.interrupt)?;
        let length = |position: usize| items.tokens(indices[position].position());
        // Indices are sorted by group: the first and the last of each tell of those between.
        let within = |(group, stops): (usize, &[usize])| {
            let of = |position| groups.of(length(position));
            stops[0] == stops[1] || [of(stops[0]), of(stops[1] - 1)] == [group, group]
        };
        if !starts.windows(2).enumerate().all(within) {
            return Err(Error::changed());
        }
        let (mut batches, dropped) = match pad_to {
            PadTo::Boundary => self.fill_fixed(starts),
            PadTo::Longest => {
                let cut = |_, positions, batches: &mut Vec<Batch>| fill_sorted(batches, positions, length, limits);
                fill_groups(self.within_limits(starts), *last_batch, means.threads, self.most(starts), &cut)?
            }
        };
        if settings.count_tokens {
            for batch in &mut batches {
                *batch = self.part(*batch, &indices, items);
            }
        }
        Ok((indices, (batches, dropped)))
    }

    /// Batches of fixed shapes, and how many samples were left out. Nothing is read, so that threads would only cost.
    fn fill_fixed(&self, starts: &[usize]) -> (Vec<Batch>, u64) {
        let Self { layout: Padded { limits, last_batch, .. }, groups, .. } = self;
        let cut = |group: usize, positions: Range<usize>, batches: &mut Vec<Batch>| {
            fill_fixed(batches, positions, limits.padded(groups.bounds()[group]), limits)
        };
        fill_in_turn(self.most(starts), self.within_limits(starts), *last_batch, &cut)
    }

    /// The items shuffled inside their groups, in batches cut from their lengths on the way, and how many were left out.
    fn cut_poured<L: Length, I: Index>(
        &self,
        items: Items<'_, L>,
        starts: &[usize],
        bits: (u64, u64),
        means: Means<'_, I>,
    ) -> Result<Filled<I>> {
        let Self { layout: Padded { limits, pad_to, last_batch, .. }, groups, counts, settings, .. } = self;
        let bounds = groups.bounds();
        let mut scattered: Scattered<'_, I> = scattered(items, groups, counts, bits, Tokens::lengths(bounds), means)?;
        let buckets = scattered.buckets.clone();
        if *last_batch == LastBatch::Merge {
            // What is short at the end of a bucket goes on in the next: one run.
            scattered.means.threads = 1;
        }
        let most = if scattered.means.threads == 1 { self.most(starts) } else { 0 };
        Ok(match pad_to {
            PadTo::Longest => {
                let cutter = |start| Cutter::new(limits, settings.count_tokens, most, start);
                let filler = |start| FillLongest::new(cutter(start), bounds, *last_batch);
                let (indices, fillers) = pour(scattered, &buckets, filler)?;
                (indices, FillLongest::joined(fillers))
            }
            PadTo::Boundary => {
                let filler = |start| FillFixed::new(limits, bounds, *last_batch, most, start);
                let (indices, fillers) = pour(scattered, &buckets, filler)?;
                (indices, FillFixed::joined(fillers))
            }
        })
    }

    /// Where the groups start that are not over-long, and where the last of them ends.
    fn within_limits<'a>(&self, starts: &'a [usize]) -> &'a [usize] {
        &starts[..=self.groups.bounds().len()]
    }

    /// How many batches there can be, with those that are cut for equal ranks.
    fn most(&self, starts: &[usize]) -> usize {
        most_batches(starts, self.groups.bounds(), &self.layout.limits) + self.settings.step()
    }

    /// A batch that was cut out of another.
    fn part<L: Length, I: Index>(&self, batch: Batch, indices: &[I], items: Items<'_, L>) -> Batch {
        let tokens = || indices[batch.positions()].iter().map(|index| items.tokens(index.position()));
        let padded_length = match self.layout.pad_to {
            PadTo::Boundary => batch.padded_length,
            PadTo::Longest => self.layout.limits.padded(tokens().max().unwrap_or(1)),
        };
        let real_tokens = if self.settings.count_tokens { tokens().map(u64::from).sum() } else { 0 };
        Batch { real_tokens, padded_length, ..batch }
    }
}

/// Indices; their batches, and how many samples those leave out.
type Filled<I> = (Vec<I>, (Vec<Batch>, u64));

/// Where each group starts, and where the last one ends.
pub(crate) fn starts_of(counts: &[u64]) -> Vec<usize> {
    let mut starts = vec![0];
    starts.extend(counts.iter().scan(0, |end, &count| {
        *end += count as usize;
        Some(*end)
    }));
    starts
}

/// All items, group after group, shuffled inside each.
pub(crate) fn shuffled<L: Length, I: Index>(
    items: Items<'_, L>,
    groups: &Buckets,
    counts: &Counts,
    bits: (u64, u64),
    means: Means<'_, I>,
) -> Result<Vec<I>> {
    let scattered: Scattered<'_, I> = scattered(items, groups, counts, bits, Tokens::none(), means)?;
    let bins = scattered.buckets.last().map_or(0, |bucket| bucket.end);
    let single: Vec<_> = (0..bins).map(|bin| bin..bin + 1).collect();
    Ok(pour(scattered, &single, |_| ())?.0)
}

/// What samples are grouped by, up to the longest length that is not over-long.
fn groups(layout: &Padded) -> Result<Buckets> {
    let buckets = Buckets::new(layout.boundaries.clone())?;
    let limit = layout.limits.longest().min(buckets.longest());
    if layout.pad_to == PadTo::Boundary {
        layout.limits.check_shapes(&layout.boundaries)?;
    }
    let one_group =
        layout.order == Order::Shuffled || (layout.order == Order::Sorted && layout.pad_to == PadTo::Longest);
    let shorter = buckets.bounds().iter().copied().filter(|&bound| bound < limit && !one_group);
    Buckets::new(shorter.chain([limit]).collect())
}
