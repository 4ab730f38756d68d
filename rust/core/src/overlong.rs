//! Samples that fit no batch.
//!
//! With `split`, the pieces after a sample's first are items of their own, numbered after all samples; they take part in
//! the shuffle like any other item and are mapped back to their sample at the end.

use crate::bucket::Buckets;
use crate::plan::{Accounts, Padded};
use crate::{Error, Result};
use crate::{Index, Length};

/// What to do with a sample that fits no batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlong {
    /// Refuse to plan.
    Error,
    /// Leave it out.
    Drop,
    /// Use its first tokens only.
    Truncate,
    /// Use it in several pieces.
    Split,
    /// Give it a batch of its own, beyond the budget.
    Alone,
}

/// The over-long samples of one set of lengths, and what becomes of them.
#[derive(Debug, Clone)]
pub(crate) struct Excess {
    limit: u32,
    policy: Overlong,
    /// How many samples are over-long.
    samples: u64,
    /// The pieces after the first: (sample, first token, tokens).
    pieces: Vec<(usize, u32, u32)>,
}

impl Excess {
    pub(crate) fn new<L: Length>(lengths: &[L], limit: u32, policy: Overlong, layout: &Padded) -> Result<Self> {
        let mut excess = Self { limit, policy, samples: 0, pieces: Vec::new() };
        for (sample, length) in lengths.iter().enumerate() {
            let length: u32 = (*length).into();
            if length <= limit {
                continue;
            }
            excess.samples += 1;
            match policy {
                Overlong::Error => return Err(too_long(sample, length, limit, layout)),
                Overlong::Split => {
                    let starts = (limit..length).step_by(limit as usize);
                    excess.pieces.extend(starts.map(|start| (sample, start, limit.min(length - start))));
                }
                Overlong::Drop | Overlong::Truncate | Overlong::Alone => {}
            }
        }
        if policy == Overlong::Drop && excess.samples == lengths.len() as u64 {
            return Err(Error::invalid(format!(
                "lengths are all longer than the limit of {limit} tokens and overlong=\"drop\" leaves nothing"
            )));
        }
        Ok(excess)
    }

    /// The longest length that is not over-long.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// How many items there are beyond the samples.
    pub(crate) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Move the over-long from the last group to where their tokens go.
    pub(crate) fn recount(&self, counts: &mut [u64], groups: &Buckets) {
        if self.cuts() {
            if let Some(last) = counts.last_mut() {
                *last = 0;
            }
            counts[groups.of(self.limit)] += self.samples;
            self.pieces.iter().for_each(|&(_, _, tokens)| counts[groups.of(tokens)] += 1);
        }
    }

    /// Whether what is longer than the limit is cut to it.
    fn cuts(&self) -> bool {
        matches!(self.policy, Overlong::Truncate | Overlong::Split)
    }

    /// The tokens that `item` occupies.
    #[inline]
    pub(crate) fn length<L: Length>(&self, lengths: &[L], item: usize) -> u32 {
        match lengths.get(item) {
            Some(&length) if self.cuts() => length.into().min(self.limit),
            Some(&length) => length.into(),
            None => self.pieces.get(item - lengths.len()).map_or(0, |piece| piece.2),
        }
    }

    pub(crate) fn accounts(&self) -> Accounts {
        let mut accounts = Accounts::default();
        match self.policy {
            Overlong::Error => {}
            Overlong::Drop => accounts.dropped = self.samples,
            Overlong::Truncate => accounts.truncated = self.samples,
            Overlong::Split => accounts.split = self.samples,
            Overlong::Alone => accounts.alone = self.samples,
        }
        accounts
    }

    /// Map pieces back to their samples; which tokens of its sample each index stands for.
    pub(crate) fn segments<L: Length, I: Index>(&self, lengths: &[L], indices: &mut [I]) -> Option<Vec<[u32; 2]>> {
        if self.samples == 0 || !self.cuts() {
            return None;
        }
        let segment = |index: &mut I| {
            let item = index.position();
            let Some(&(sample, start, tokens)) = item.checked_sub(lengths.len()).and_then(|i| self.pieces.get(i))
            else {
                return [0, self.length(lengths, item)];
            };
            *index = I::new(sample);
            [start, start + tokens]
        };
        Some(indices.iter_mut().map(segment).collect())
    }
}

fn too_long(sample: usize, length: u32, limit: u32, layout: &Padded) -> Error {
    let limits = &layout.limits;
    let what = if limit == limits.longest() {
        format!("a batch holds max_tokens={}", limits.max_tokens)
    } else {
        format!("the last boundary is {limit}")
    };
    Error::invalid(format!(
        "lengths[{sample}] is {length} tokens, but {what}; choose overlong=\"drop\", \"truncate\", \"split\" or \"alone\""
    ))
}
