//! A whole epoch of samples with two lengths: source and target, audio and text.
//!
//! Problem: a batch is padded in both lengths, so that a sample costs what the longest of each costs together. Method:
//! samples are grouped by cells, and a cell's number takes the place of a length: from there on an epoch is planned as in
//! one dimension. Padded shapes are in a table of their own, and their numbers take the place of padded lengths.
//! Cost: 4 ns a sample with fixed shapes, 7 ns where batches are padded to their longest samples; 2 bytes a sample are kept.

mod cells;
mod fill;
mod padding;

use std::cell::RefCell;

use cells::Cells;
use fill::{FillLongest, Open, Packing, Shaped, larger};
pub use padding::Padding;

use crate::batch::Batch;
use crate::bucket::Buckets;
use crate::counts::Counts;
use crate::fill::LastBatch;
use crate::items::Items;
use crate::limits::Limits;
use crate::means::Means;
use crate::order;
use crate::overlong::Overlong;
use crate::plan::{Accounts, PadTo, Plan, Settings, shuffled, starts_of};
use crate::pour::pour;
use crate::ranks::settle;
use crate::scatter::{Tokens, scattered};
use crate::{Error, Index, Interrupt, Length, MAX_LENGTH, Result, Spare};

/// Samples between two looks at the interrupt.
const CHUNK: usize = 1 << 18;

/// How samples of two lengths become padded batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaddedPairs {
    /// What a batch may hold; alignment is that of `padding`.
    pub limits: Limits,
    /// What a sample occupies.
    pub padding: Padding,
    /// Inclusive upper bounds of the cells.
    pub cells: Vec<[u32; 2]>,
    /// What to pad to: the longest of each length, or the bounds of the cell.
    pub pad_to: PadTo,
    /// What to do with short batches: to keep or to drop them.
    pub last_batch: LastBatch,
    /// Whether the step with the longest batch comes first.
    pub longest_first: bool,
}

/// Everything about an epoch of pairs that does not depend on which epoch it is.
#[derive(Debug, Clone)]
pub struct PairPlanner {
    layout: PaddedPairs,
    settings: Settings,
    cells: Cells,
    /// The cell of every sample, counted from 1; the over-long come after all.
    of: Vec<u16>,
    /// Cell numbers as buckets.
    groups: Buckets,
    counts: Counts,
    /// The longest lengths of samples that are not over-long.
    longest: [u32; 2],
}

impl PairPlanner {
    /// Look at the lengths once.
    ///
    /// # Errors
    /// [`Error::Invalid`] for limits, cells or lengths that cannot be planned.
    pub fn new<L: Length>(
        lengths: &[[L; 2]],
        layout: PaddedPairs,
        settings: Settings,
        interrupt: Interrupt<'_>,
    ) -> Result<Self> {
        layout.validate()?;
        settings.validate()?;
        if matches!(settings.overlong, Overlong::Truncate | Overlong::Split) {
            return Err(Error::invalid(
                "overlong cuts samples, but one of two lengths has no one place to cut at; choose \"drop\" or \"alone\", \
                 or cut the samples before",
            ));
        }
        if lengths.is_empty() {
            return Err(Error::invalid("lengths is empty, but a plan needs at least one sample"));
        }
        let cells = Cells::new(layout.cells.clone(), layout.padding)?;
        let overlong = cells.bounds().len();
        let (mut counts, mut of, mut longest) = (vec![0; overlong + 1], Vec::with_capacity(lengths.len()), [0, 0]);
        for chunk in lengths.chunks(CHUNK) {
            interrupt.check()?;
            of.extend(chunk.iter().map(|pair| {
                let pair = pair.map(Into::into);
                let cell = if layout.fits(pair) { cells.of(pair) } else { overlong as u16 };
                if usize::from(cell) < overlong {
                    longest = larger(longest, pair);
                }
                counts[usize::from(cell)] += 1;
                cell + 1
            }));
        }
        let groups = Buckets::new((1..=overlong as u32).collect())?;
        let planner = Self { layout, settings, cells, of, groups, counts: Counts::new(counts), longest };
        planner.check_overlong(lengths)?;
        planner.layout.check_cells()?;
        Ok(planner)
    }

    /// What was decided for every layout.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How many samples an epoch has.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.of.len()
    }

    /// The bounds of the cells, the cheapest first: the first that holds a sample is its own.
    #[must_use]
    pub fn cells(&self) -> &[[u32; 2]] {
        self.cells.bounds()
    }

    /// Plan one epoch. Beside the plan come the two lengths that every batch is padded to; its `padded_length` is the number
    /// of a shape and means nothing outside. `lengths` must be those that the planner was made with.
    ///
    /// # Errors
    /// Interrupted; other lengths; more ranks than the epoch can serve.
    pub fn plan<L: Length, I: Index>(
        &self,
        lengths: &[[L; 2]],
        epoch: u64,
        spare: &Spare<I>,
        interrupt: Interrupt<'_>,
    ) -> Result<(Plan<I>, Vec<[u32; 2]>)> {
        if lengths.len() != self.samples() {
            return Err(Error::invalid(format!(
                "lengths has {} samples, but the planner was made for {}",
                lengths.len(),
                self.samples()
            )));
        }
        let means = Means { threads: self.settings.threads as usize, spare, interrupt };
        let (indices, Shaped { mut batches, shapes, dropped }) = self.cut(lengths, epoch, means)?;
        let mut accounts = Accounts { dropped, ..Accounts::default() };
        match self.settings.overlong {
            Overlong::Alone => accounts.alone = self.counts[self.cells.bounds().len()],
            _ => accounts.dropped += self.counts[self.cells.bounds().len()],
        }
        let shapes = RefCell::new(shapes);
        let padding = self.layout.padding;
        let pairs = |batch: Batch| {
            let samples: &[I] = &indices[batch.positions()];
            samples.iter().map(|sample| lengths[sample.position()].map(Into::into))
        };
        let counted = |batch: Batch| {
            let tokens = |pair| padding.tokens(pair).min(MAX_LENGTH.into());
            let real_tokens = if self.settings.count_tokens { pairs(batch).map(tokens).sum() } else { 0 };
            Batch { real_tokens, ..batch }
        };
        let part = |batch: Batch| {
            let mut part = counted(batch);
            if self.layout.pad_to == PadTo::Longest {
                let mut shapes = shapes.borrow_mut();
                part.padded_length = shapes.len() as u32;
                shapes.push(padding.shape(pairs(batch).fold([0, 0], larger)));
            }
            part
        };
        for batch in &mut batches {
            *batch = counted(*batch);
        }
        settle(&mut batches, &self.settings, epoch, &self.layout.limits, &mut accounts, part)?;
        let shapes = shapes.into_inner();
        let shape = |batch: &Batch| shapes[batch.padded_length as usize];
        if self.layout.longest_first {
            let tokens = |batch: &Batch| self.layout.padding.tokens(shape(batch));
            order::longest_first(&mut batches, self.settings.step(), tokens);
        }
        let shapes = batches.iter().map(shape).collect();
        Ok((Plan { indices, batches, segments: None, accounts }, shapes))
    }

    /// Shuffle the samples of every cell and cut them into batches.
    fn cut<L: Length, I: Index>(
        &self,
        lengths: &[[L; 2]],
        epoch: u64,
        means: Means<'_, I>,
    ) -> Result<(Vec<I>, Shaped)> {
        let Self { layout: PaddedPairs { limits, padding, .. }, cells, settings, .. } = self;
        let starts = starts_of(&self.counts);
        let pair = |item: usize| lengths[item].map(Into::into);
        let (indices, mut made) = match (self.layout.pad_to, Packing::new(self.longest)) {
            (PadTo::Boundary, _) => {
                let (items, bits) = (Items::new(&self.of, u32::MAX, &[]), (settings.seed, epoch));
                let indices: Vec<I> = shuffled(items, &self.groups, &self.counts, bits, means)?;
                let (mut made, drop_short) = (Shaped::default(), self.layout.last_batch == LastBatch::Drop);
                for (positions, &bounds) in starts.windows(2).zip(cells.bounds()) {
                    let shape = padding.shape(bounds);
                    made.push_fixed(positions[0]..positions[1], shape, padding.tokens(shape), limits, drop_short);
                }
                (indices, made)
            }
            (PadTo::Longest, Some(packing)) => {
                let packed = |item: usize, _| lengths.get(item).map_or(0, |_| packing.pack(pair(item)));
                let tokens = Tokens { of: packed, bits: packing.bits, lows: Vec::new() };
                self.pour_longest(epoch, tokens, |_, packed| packing.unpack(packed), means)?
            }
            (PadTo::Longest, None) => self.pour_longest(epoch, Tokens::none(), |sample, _| pair(sample), means)?,
        };
        if settings.overlong == Overlong::Alone {
            for (position, index) in indices.iter().enumerate().skip(starts[cells.bounds().len()]) {
                made.push(position, 1, padding.shape(pair(index.position())));
            }
        }
        Ok((indices, made))
    }

    /// The samples of every cell, shuffled, in batches padded to their longest samples. `pair` gives the lengths of a sample,
    /// from itself and its tokens.
    fn pour_longest<I: Index>(
        &self,
        epoch: u64,
        tokens: Tokens<impl Fn(usize, u32) -> u32 + Copy + Sync>,
        pair: impl Fn(usize, u32) -> [u32; 2] + Copy + Send,
        means: Means<'_, I>,
    ) -> Result<(Vec<I>, Shaped)> {
        let Self { layout: PaddedPairs { limits, padding, .. }, cells, settings, .. } = self;
        let bits = (settings.seed, epoch);
        let items = Items::new(&self.of, u32::MAX, &[]);
        let scattered = scattered(items, &self.groups, &self.counts, bits, tokens, means)?;
        let units = scattered.buckets.clone();
        let filler = |start| FillLongest {
            limits,
            padding: *padding,
            cells: cells.bounds(),
            drop_short: self.layout.last_batch == LastBatch::Drop,
            pair,
            made: Shaped::default(),
            open: Open::at(start),
        };
        let (indices, fillers) = pour(scattered, &units, filler)?;
        Ok((indices, Shaped::joined(fillers.into_iter().map(|filler| filler.made))))
    }

    /// Refuse over-long samples where the policy says so, or where nothing would be left.
    fn check_overlong<L: Length>(&self, lengths: &[[L; 2]]) -> Result<()> {
        let (padding, overlong) = (self.layout.padding, self.cells.bounds().len());
        let tokens = |pair: [u32; 2]| padding.tokens(padding.shape(pair));
        if self.counts[overlong] == 0 {
            return Ok(());
        }
        let pairs = || lengths.iter().map(|pair| pair.map(Into::into)).enumerate();
        match self.settings.overlong {
            Overlong::Drop if self.counts[overlong] == self.of.len() as u64 => Err(Error::invalid(
                "lengths fit no cell or no batch, none of them, and overlong=\"drop\" leaves none; raise max_tokens or the \
                 cells, or choose \"alone\"",
            )),
            Overlong::Drop => Ok(()),
            Overlong::Alone => match pairs().find(|&(_, pair)| tokens(pair) > u64::from(MAX_LENGTH)) {
                Some((sample, pair @ [first, second])) => Err(Error::invalid(format!(
                    "lengths[{sample}] is {first} by {second}, together {} tokens, but the most is {MAX_LENGTH}; \
                     choose overlong=\"drop\"",
                    tokens(pair)
                ))),
                None => Ok(()),
            },
            _ => match pairs().zip(&self.of).find(|&(_, &cell)| usize::from(cell) > overlong) {
                Some(((sample, pair @ [first, second]), _)) => Err(Error::invalid(format!(
                    "lengths[{sample}] is {first} by {second}, but {}; choose overlong=\"drop\" or \"alone\"",
                    if self.layout.fits(pair) {
                        "fits no cell".to_owned()
                    } else {
                        format!("a batch holds max_tokens={}, not {}", self.layout.limits.max_tokens, tokens(pair))
                    }
                ))),
                None => Ok(()),
            },
        }
    }
}

impl PaddedPairs {
    fn validate(&self) -> Result<()> {
        self.limits.validate()?;
        self.padding.validate()?;
        if self.last_batch == LastBatch::Merge {
            return Err(Error::invalid(
                "last_batch is \"merge\", but the next cell need not be longer in both lengths; choose \"keep\" or \"drop\"",
            ));
        }
        Ok(())
    }

    /// Refuse fixed shapes beyond the budget.
    fn check_cells(&self) -> Result<()> {
        for (i, &[first, second]) in self.cells.iter().enumerate().filter(|_| self.pad_to == PadTo::Boundary) {
            if !self.fits([first, second]) {
                return Err(Error::invalid(format!(
                    "cells[{i}] is {first} by {second}, together {} padded tokens, but a batch holds max_tokens={}; \
                     use smaller cells, or pad_to=\"longest\"",
                    self.padding.tokens(self.padding.shape([first, second])),
                    self.limits.max_tokens
                )));
            }
        }
        Ok(())
    }

    /// Whether a sample that is padded to these lengths fits a batch.
    fn fits(&self, pair: [u32; 2]) -> bool {
        self.padding.tokens(self.padding.shape(pair)) <= self.limits.max_tokens.min(u64::from(MAX_LENGTH))
    }
}
