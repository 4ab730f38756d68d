//! Samples that fit no batch.
//!
//! With `split`, the pieces after a sample's first are items of their own, numbered after all samples; they take part in
//! the shuffle like any other item and are mapped back to their sample at the end.

use crate::bucket::Buckets;
use crate::items::{Items, Piece};
use crate::plan::{Accounts, Padded};
use crate::{Error, Index, Length, MAX_LENGTH, Result};

/// More pieces than this are taken for a mistake: they would need more than a gigabyte.
const MAX_PIECES: u64 = 1 << 26;

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
    /// The pieces after the first.
    pieces: Vec<Piece>,
}

impl Excess {
    /// `samples` of the lengths are over `limit`.
    pub(crate) fn new<L: Length>(
        lengths: &[L],
        samples: u64,
        limit: u32,
        policy: Overlong,
        layout: &Padded,
    ) -> Result<Self> {
        let mut excess = Self { limit, policy, samples, pieces: Vec::new() };
        if samples == 0 {
            return Ok(excess);
        }
        let mut overlong =
            lengths.iter().map(|&length| length.into()).enumerate().filter(|&(_, length)| length > limit);
        match policy {
            Overlong::Error => match overlong.next() {
                Some((sample, length)) => return Err(too_long(sample, length, limit, layout)),
                None => return Err(Error::invalid("lengths changed while they were looked at")),
            },
            Overlong::Drop if samples == lengths.len() as u64 => {
                return Err(Error::invalid(format!(
                    "lengths are all above the limit of {limit} tokens, and overlong=\"drop\" leaves none; \
                     choose \"truncate\", \"split\" or \"alone\", or raise the limit"
                )));
            }
            Overlong::Split => {
                let count = overlong.clone().map(|(_, length)| u64::from((length - 1) / limit)).sum::<u64>();
                if count > MAX_PIECES {
                    return Err(Error::invalid(format!(
                        "lengths would be split into {count} pieces of at most {limit} tokens, but the limit is \
                         {MAX_PIECES} pieces; raise max_tokens, or choose another overlong"
                    )));
                }
                let pieces = |(sample, length): (usize, u32)| {
                    let starts = (limit..length).step_by(limit as usize);
                    starts.map(move |start| Piece { sample, start, tokens: limit.min(length - start) })
                };
                excess.pieces = overlong.flat_map(pieces).collect();
            }
            Overlong::Drop | Overlong::Truncate | Overlong::Alone => {}
        }
        Ok(excess)
    }

    /// How many items there are beyond the samples.
    pub(crate) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Whether what is longer than the limit is cut to it.
    fn cuts(&self) -> bool {
        matches!(self.policy, Overlong::Truncate | Overlong::Split)
    }

    /// All items that are planned.
    pub(crate) fn items<'a, L: Length>(&'a self, lengths: &'a [L]) -> Items<'a, L> {
        Items::new(lengths, if self.cuts() { self.limit } else { u32::MAX }, &self.pieces)
    }

    /// Move the over-long from the last group to where their tokens go.
    pub(crate) fn recount(&self, counts: &mut [u64], groups: &Buckets) {
        if !self.cuts() {
            return;
        }
        if let Some(last) = counts.last_mut() {
            *last = 0;
        }
        counts[groups.of(self.limit)] += self.samples;
        self.pieces.iter().for_each(|piece| counts[groups.of(piece.tokens)] += 1);
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
        let items = self.items(lengths);
        let segment = |index: &mut I| {
            let item = index.position();
            let Some(piece) = item.checked_sub(lengths.len()).and_then(|piece| self.pieces.get(piece)) else {
                return [0, items.tokens(item)];
            };
            *index = I::new(piece.sample);
            [piece.start, piece.start + piece.tokens]
        };
        Some(indices.iter_mut().map(segment).collect())
    }
}

fn too_long(sample: usize, length: u32, limit: u32, layout: &Padded) -> Error {
    let limits = &layout.limits;
    let padded = u64::from(length).next_multiple_of(limits.multiple_of.into());
    let rounded = if padded == u64::from(length) {
        String::new()
    } else {
        format!(" ({padded} after rounding to multiple_of={})", limits.multiple_of)
    };
    let what = if limit != limits.longest() {
        format!("the last boundary is {limit}")
    } else if padded > limits.max_tokens {
        format!("a batch holds max_tokens={}", limits.max_tokens)
    } else {
        format!("the longest padded length is {MAX_LENGTH}")
    };
    Error::invalid(format!(
        "lengths[{sample}] is {length} tokens{rounded}, but {what}; choose overlong=\"drop\", \"truncate\", \"split\" or \
         \"alone\""
    ))
}
