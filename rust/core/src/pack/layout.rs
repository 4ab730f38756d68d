//! Packs as the batches of an epoch: fresh every epoch, shuffled, the same number for every rank.
//!
//! What is packed with what is decided once, on sizes. Each epoch draws anew which sample takes which place of its size, so
//! that packs of unchanged efficiency hold other samples, and shuffles the packs. Cost: about 10 ns a sample an epoch.

use super::{Method, PackOptions, Packer};
use crate::batch::Batch;
use crate::plan::{Accounts, Plan, Settings};
use crate::ranks::settle;
use crate::rng::{Key, Stream};
use crate::{Error, Interrupt, Length, Limits, Overlong, Result};

/// What a pack is padded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PadPack {
    /// The capacity: every row has one shape.
    Capacity,
    /// What its samples occupy, each rounded up to the alignment.
    Fill,
}

/// Everything about the packed epochs of one set of lengths that is the same in each.
#[derive(Debug, Clone)]
pub struct PackedPlanner {
    packer: Packer,
    pad_to: PadPack,
    settings: Settings,
}

impl PackedPlanner {
    /// Make `packer`'s packs the batches of epochs. `settings.overlong` is what the packer was made with.
    ///
    /// # Errors
    /// [`Error::Invalid`] for packs that cannot be planned.
    pub fn new(packer: Packer, pad_to: PadPack, settings: Settings) -> Result<Self> {
        if packer.samples() == 0 {
            return Err(Error::invalid("lengths is empty, but a plan needs at least one sample"));
        }
        settings.validate()?;
        let PackOptions { capacity, method, overlong, .. } = *packer.options();
        if method == Method::Concat {
            return Err(Error::invalid(
                "method is \"concat\", a baseline to compare with, but an epoch is planned from whole samples; choose \
                 \"best_fit\" with overlong=\"split\"",
            ));
        }
        if packer.is_empty() {
            return Err(Error::invalid(format!(
                "lengths are all longer than capacity={capacity} and overlong=\"drop\" leaves nothing"
            )));
        }
        Ok(Self { packer, pad_to, settings: Settings { overlong, ..settings } })
    }

    /// What was decided for every layout.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Plan one epoch. `lengths` must be those that the planner was made with.
    ///
    /// # Errors
    /// Interrupted; other lengths; more ranks than the epoch can serve.
    pub fn plan<L: Length>(&self, lengths: &[L], epoch: u64, interrupt: Interrupt<'_>) -> Result<Plan<u32>> {
        let key = Key::new(self.settings.seed, epoch, Stream::Packs);
        let packs = self.packer.packs_of(lengths, Some(key), interrupt)?;
        let (indices, segments) = (packs.rows.indices, packs.segments);
        let tokens = |entry: usize| match &segments {
            Some(segments) => segments[entry][1] - segments[entry][0],
            None => lengths[indices[entry] as usize].into(),
        };
        let part = |pack: Batch| {
            let count = self.settings.count_tokens;
            let real_tokens = if count { pack.positions().map(|entry| u64::from(tokens(entry))).sum() } else { 0 };
            Batch { padded_length: self.padded(pack, tokens), real_tokens, ..pack }
        };
        let mut batches: Vec<Batch> = Vec::with_capacity(packs.rows.offsets.len() + self.settings.step());
        let packs = packs.rows.offsets.windows(2);
        batches.extend(packs.map(|stops| part(Batch::at(stops[0] as usize, (stops[1] - stops[0]) as usize))));
        interrupt.check()?;
        let mut accounts = self.accounts();
        settle(&mut batches, &self.settings, epoch, &self.limits(), &mut accounts, part)?;
        Ok(Plan { indices, batches, segments, accounts })
    }

    fn padded(&self, pack: Batch, tokens: impl Fn(usize) -> u32) -> u32 {
        let options = self.packer.options();
        match self.pad_to {
            PadPack::Capacity => options.capacity,
            PadPack::Fill => pack.positions().map(|entry| tokens(entry).next_multiple_of(options.multiple_of)).sum(),
        }
    }

    fn accounts(&self) -> Accounts {
        let overlong = |policy| if self.settings.overlong == policy { self.packer.overlong() } else { 0 };
        Accounts {
            dropped: overlong(Overlong::Drop),
            truncated: overlong(Overlong::Truncate),
            split: overlong(Overlong::Split),
            ..Accounts::default()
        }
    }

    fn limits(&self) -> Limits {
        let PackOptions { capacity, max_samples, multiple_of, .. } = *self.packer.options();
        Limits { max_tokens: u64::from(capacity), max_samples, multiple_of, samples_multiple_of: 1 }
    }
}
