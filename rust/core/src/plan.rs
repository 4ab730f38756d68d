//! A whole epoch: every batch of every rank, as arrays, from the lengths alone.
//!
//! Method: samples are grouped by bucket and shuffled inside (or sorted), each group is cut into batches under the limits,
//! the number of batches is made equal for all ranks, and the small table of batches is shuffled; indices stay where they are.
//! Cost: a few nanoseconds a sample; the result is a pure function of (lengths, layout, settings, epoch).

use crate::batch::{Batch, fill_fixed, fill_longest};
use crate::bucket::Buckets;
use crate::limits::Limits;
use crate::order;
use crate::overlong::{Excess, Overlong};
use crate::ranks::{self, Remainder};
use crate::rng::{Key, Stream};
use crate::scatter::grouped;
use crate::sort::sorted;
use crate::{Error, Interrupt, Result};
use crate::{Index, Length};

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

/// What to do with the last batch of a bucket when it is short: when it is not full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastBatch {
    /// Run it as it is.
    Keep,
    /// Give its samples to the next longer bucket.
    Merge,
    /// Leave its samples out.
    Drop,
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
    /// What to do with samples that fit no batch.
    pub overlong: Overlong,
    /// What to do with batches that do not divide by the number of ranks.
    pub remainder: Remainder,
}

/// A planned epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan<I> {
    /// Samples, batch by batch, though batches are not in running order.
    pub indices: Vec<I>,
    /// The batches in running order: batch i belongs to step `i / world_size`, rank `i % world_size`.
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
    /// What samples are grouped by: the layout's buckets, or one for all.
    groups: Buckets,
    /// How many samples each group has; the over-long are the last.
    counts: Vec<u64>,
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
        if settings.world_size == 0 {
            return Err(Error::invalid("world_size is 0, but there must be at least 1 rank"));
        }
        let buckets = Buckets::new(layout.boundaries.clone())?;
        let by_bucket =
            layout.order == Order::Bucketed || (layout.order == Order::Sorted && layout.pad_to == PadTo::Boundary);
        let groups = if by_bucket { buckets } else { Buckets::new(vec![buckets.longest()])? };
        if layout.pad_to == PadTo::Boundary {
            check_bounds_fit(&layout)?;
        }
        let limit = layout.limits.longest().min(groups.longest());
        let mut counts = vec![0; groups.bounds().len() + 1];
        for chunk in lengths.chunks(1 << 18) {
            interrupt.check()?;
            for &length in chunk {
                let length = length.into();
                counts[if length > limit { groups.bounds().len() } else { groups.of(length) }] += 1;
            }
        }
        let excess = Excess::new(lengths, limit, settings.overlong, &layout)?;
        excess.recount(&mut counts, &groups);
        Ok(Self { layout, settings, groups, counts, excess, samples: lengths.len() })
    }

    /// Plan one epoch. `lengths` must be those that the planner was made with.
    ///
    /// # Errors
    /// Interrupted; other lengths; more ranks than the epoch can serve.
    pub fn plan<L: Length, I: Index>(&self, lengths: &[L], epoch: u64, interrupt: Interrupt<'_>) -> Result<Plan<I>> {
        if lengths.len() != self.samples {
            return Err(Error::invalid(format!(
                "lengths has {} samples, but the planner was made for {}",
                lengths.len(),
                self.samples
            )));
        }
        let items = self.samples + self.excess.pieces();
        let length = |item: usize| self.excess.length(lengths, item);
        let group = |item: usize| self.group(length(item));
        let key = |stream| Key::new(self.settings.seed, epoch, stream);
        let (mut indices, starts) = if self.layout.order == Order::Sorted {
            sorted::<I>(items, &self.counts, group, length, interrupt)?
        } else {
            grouped::<I>(items, &self.counts, group, self.settings.seed, epoch, interrupt)?
        };
        let mut accounts = self.excess.accounts();
        let mut batches = self.fill(&indices, &starts, length, &mut accounts);
        let padded = |batch: Batch| self.padded(batch, &indices, length);
        let world_size = self.settings.world_size as usize;
        if self.settings.remainder == Remainder::Split {
            accounts.cut_batches = ranks::split(&mut batches, world_size, &self.layout.limits, padded)?;
        }
        order::shuffled(&mut batches, key(Stream::Batches));
        match self.settings.remainder {
            Remainder::Split => {}
            Remainder::Repeat => accounts.repeated += ranks::repeat(&mut batches, world_size),
            Remainder::Drop => accounts.dropped += ranks::drop(&mut batches, world_size)?,
        }
        if self.layout.longest_first {
            order::longest_first(&mut batches, world_size);
        }
        let segments = self.excess.segments(lengths, &mut indices);
        Ok(Plan { indices, batches, segments, accounts })
    }

    /// The group of a sample that occupies `length` tokens.
    fn group(&self, length: u32) -> usize {
        if length > self.excess.limit() { self.groups.bounds().len() } else { self.groups.of(length) }
    }

    /// Cut every group into batches.
    fn fill<I: Index>(
        &self,
        indices: &[I],
        starts: &[u64],
        length: impl Fn(usize) -> u32,
        accounts: &mut Accounts,
    ) -> Vec<Batch> {
        let mut batches = Vec::new();
        let limits = &self.layout.limits;
        let mut start = 0;
        for (group, &bound) in self.groups.bounds().iter().enumerate() {
            let stop = starts[group + 1];
            let short = if self.layout.pad_to == PadTo::Boundary {
                fill_fixed(&mut batches, start, stop, limits.padded(bound), limits)
            } else {
                let slice = &indices[start as usize..stop as usize];
                fill_longest(&mut batches, start, |i| length(slice[i].position()), slice.len(), limits)
            };
            start = stop;
            let last = batches.len() - short;
            match self.layout.last_batch {
                LastBatch::Drop => {
                    accounts.dropped += batches.drain(last..).map(|batch| u64::from(batch.size)).sum::<u64>();
                }
                // The next group's samples follow in `indices`: its first batch simply starts earlier.
                LastBatch::Merge if group + 1 < self.groups.bounds().len() => {
                    start -= batches.drain(last..).map(|batch| u64::from(batch.size)).sum::<u64>();
                }
                LastBatch::Keep | LastBatch::Merge => {}
            }
        }
        if self.settings.overlong == Overlong::Alone {
            for position in starts[self.groups.bounds().len()]..indices.len() as u64 {
                let padded_length = limits.padded(length(indices[position as usize].position()));
                batches.push(Batch { start: position, size: 1, padded_length });
            }
        }
        batches
    }

    /// The padded length of a batch that was cut out of another.
    fn padded<I: Index>(&self, batch: Batch, indices: &[I], length: impl Fn(usize) -> u32) -> u32 {
        if self.layout.pad_to == PadTo::Boundary {
            return batch.padded_length;
        }
        let samples = &indices[batch.start as usize..][..batch.size as usize];
        let longest = samples.iter().map(|index| length(index.position())).max();
        self.layout.limits.padded(longest.unwrap_or(1))
    }
}

/// Fixed shapes need every bound to fit the budget.
fn check_bounds_fit(layout: &Padded) -> Result<()> {
    let limits = &layout.limits;
    for (i, &bound) in layout.boundaries.iter().enumerate() {
        if u64::from(limits.padded(bound)) > limits.max_tokens {
            return Err(Error::invalid(format!(
                "boundaries[{i}] is {bound} ({} after rounding to multiple_of={}), but a batch holds max_tokens={}; \
                 raise max_tokens or use pad_to=\"longest\"",
                limits.padded(bound),
                limits.multiple_of,
                limits.max_tokens
            )));
        }
    }
    Ok(())
}
