//! Size classes: samples that occupy the same room are interchangeable, so packing is decided on their counts.
//!
//! A class is one *size*: the length rounded up to the alignment, in units of the alignment. Over-long samples are settled
//! here: refused, left out, shortened to the capacity, or cut into capacity-sized pieces whose remainder is the only part
//! that still has to be packed (Ding et al., "Fewer Truncations Improve Language Modeling", ICML 2024: then exactly the
//! over-long documents are cut, and no other).
//!
//! Cost: one pass over the lengths to count, one to group, O(distinct lengths) between; a table of `longest + 1` entries
//! while that stays below a few million, a sort of the lengths above.

use crate::raw::{prefetch, zeros};
use crate::rng::Key;
use crate::shuffle::shuffle;
use crate::{Error, Histogram, Interrupt, Length, Overlong, Result};

/// Lengths that a table may span; above, a sample's length is looked up among the distinct ones.
const TABLE: usize = 1 << 22;

/// How many samples a working loop handles between two looks for an interrupt.
pub(super) const CHUNK: usize = 1 << 20;

/// How many places ahead of a sample number memory is brought into the cache: half a line, for next to each other all
/// classes' lines nearly fill the second-level cache.
const AHEAD: usize = 8;

/// The distinct sizes of a set of samples, ascending, with how many samples have each.
#[derive(Debug, Clone)]
pub(crate) struct Classes {
    /// Units (multiples of the alignment) that a sample of the class occupies, ascending and distinct.
    pub(crate) sizes: Vec<u32>,
    /// Samples of the class; no entry is 0.
    pub(crate) counts: Vec<u32>,
}

impl Classes {
    /// How many samples there are in all.
    pub(crate) fn samples(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// How many units they occupy in all.
    #[cfg(test)]
    pub(crate) fn units(&self) -> u64 {
        self.sizes.iter().zip(&self.counts).map(|(&size, &count)| u64::from(size) * u64::from(count)).sum()
    }
}

/// Samples sorted into classes: the classes, and for every length the place where its samples are gathered.
#[derive(Debug, Clone)]
pub(crate) struct Sorted {
    pub(crate) classes: Classes,
    /// The most tokens that a pack can hold: the capacity rounded down to the alignment.
    pub(crate) usable: u32,
    /// Packs that one piece of an over-long sample fills alone.
    pub(crate) whole_pieces: u64,
    /// Tokens that are packed: all, less those of samples that were dropped or cut short.
    pub(crate) real_tokens: u64,
    /// Samples longer than `usable`.
    pub(crate) overlong: u64,
    pub(crate) samples: usize,
    /// Distinct lengths, ascending, where there are too many possible ones for a table.
    distinct: Option<Vec<u32>>,
    /// For every length (table), or for every entry of `distinct`: where its first sample stands in the grouping, and where
    /// those after its last.
    starts: Vec<u32>,
    ends: Vec<u32>,
}

/// Sample numbers, class by class in ascending size; behind them those that no class holds.
#[derive(Debug)]
pub(crate) struct Grouped {
    pub(super) samples: Vec<u32>,
}

impl Grouped {
    /// Give every sample of a class any place of the class with the same probability.
    pub(crate) fn shuffle(&mut self, classes: &Classes, key: Key) {
        let mut rest = self.samples.as_mut_slice();
        for (class, &count) in classes.counts.iter().enumerate() {
            let (samples, others) = rest.split_at_mut(count as usize);
            shuffle(samples, key.child(class as u64));
            rest = others;
        }
    }
}

impl Sorted {
    /// Count `lengths` into classes for packs of `capacity` tokens, every sample rounded up to `multiple_of` tokens.
    ///
    /// # Errors
    /// Too many samples, an over-long sample under [`Overlong::Error`], or the caller's interrupt.
    pub(crate) fn new<L: Length>(
        lengths: &[L],
        capacity: u32,
        multiple_of: u32,
        overlong: Overlong,
        interrupt: Interrupt<'_>,
    ) -> Result<Self> {
        if lengths.len() >= u32::MAX as usize {
            return Err(Error::invalid(format!(
                "lengths holds {} samples, but one call packs fewer than {}; pack them in parts",
                lengths.len(),
                u32::MAX
            )));
        }
        let usable = capacity - capacity % multiple_of;
        let histogram = Histogram::of(lengths, interrupt)?;
        let longest = histogram.longest().unwrap_or(0);
        if longest > usable && overlong == Overlong::Error {
            return Err(too_long(lengths, capacity, usable));
        }
        let mut sorted = Self {
            classes: Classes { sizes: Vec::new(), counts: Vec::new() },
            usable,
            whole_pieces: 0,
            real_tokens: 0,
            overlong: 0,
            samples: lengths.len(),
            starts: Vec::new(),
            ends: Vec::new(),
            distinct: (longest as usize >= TABLE).then(|| histogram.lengths().to_vec()),
        };
        sorted.settle(&histogram, multiple_of, overlong);
        Ok(sorted)
    }

    /// From the count of every length: the classes, and where each length's samples go.
    fn settle(&mut self, histogram: &Histogram, multiple_of: u32, overlong: Overlong) {
        // (size, length, rank, samples); size None: nothing of such samples is left to pack.
        let mut entries: Vec<(Option<u32>, u32, usize, u32)> = Vec::with_capacity(histogram.distinct());
        for (rank, (length, count)) in histogram.iter().enumerate() {
            let packed = self.packed_tokens(length, overlong);
            self.overlong += if length > self.usable { count } else { 0 };
            if length > self.usable && overlong == Overlong::Split {
                self.whole_pieces += count * u64::from(length / self.usable);
                self.real_tokens += count * u64::from(length);
            } else {
                self.real_tokens += count * u64::from(packed.unwrap_or(0));
            }
            entries.push((packed.map(|tokens| tokens.div_ceil(multiple_of)), length, rank, count as u32));
        }
        // Lengths ascend already, and so do their sizes, unless remainders came in between.
        entries.sort_by_key(|&(size, length, ..)| (size.unwrap_or(u32::MAX), length));
        let places = if self.distinct.is_some() {
            histogram.distinct()
        } else {
            histogram.longest().map_or(0, |longest| longest as usize + 1)
        };
        (self.starts, self.ends) = (vec![0; places], vec![0; places]);
        let mut start = 0;
        for (size, length, rank, count) in entries {
            let place = if self.distinct.is_some() { rank } else { length as usize };
            self.starts[place] = start;
            start += count;
            self.ends[place] = start;
            let Some(size) = size else { continue };
            match (self.classes.sizes.last(), self.classes.counts.last_mut()) {
                (Some(&last), Some(total)) if last == size => *total += count,
                _ => {
                    self.classes.sizes.push(size);
                    self.classes.counts.push(count);
                }
            }
        }
    }

    /// How many tokens of a sample remain for the packer; `None` where nothing does.
    pub(crate) fn packed_tokens(&self, length: u32, overlong: Overlong) -> Option<u32> {
        if length <= self.usable {
            return Some(length);
        }
        match overlong {
            Overlong::Error | Overlong::Drop | Overlong::Alone => None,
            Overlong::Truncate => Some(self.usable),
            Overlong::Split => Some(length % self.usable).filter(|&rest| rest > 0),
        }
    }

    /// The sample numbers by class, ascending inside; `lengths` are those that were counted.
    ///
    /// # Errors
    /// Other lengths than those that were counted, or the caller's interrupt.
    pub(crate) fn group<L: Length>(&self, lengths: &[L], interrupt: Interrupt<'_>) -> Result<Grouped> {
        if lengths.len() != self.samples {
            return Err(Error::changed());
        }
        let mut samples = zeros::<u32>(lengths.len());
        let mut next = self.starts.clone();
        let ahead = samples.as_ptr().wrapping_add(AHEAD);
        let mut number = 0;
        for chunk in lengths.chunks(CHUNK) {
            interrupt.check()?;
            for &length in chunk {
                let place = next.get_mut(self.entry(length.into())?).ok_or_else(Error::changed)?;
                // Processors follow a few streams of stores by themselves, not as many as there are lengths: a fifth less time.
                prefetch(ahead.wrapping_add(*place as usize));
                *samples.get_mut(*place as usize).ok_or_else(Error::changed)? = number;
                *place += 1;
                number += 1;
            }
        }
        if next == self.ends { Ok(Grouped { samples }) } else { Err(Error::changed()) }
    }

    /// Where `starts` has the entry of a length.
    #[inline]
    fn entry(&self, length: u32) -> Result<usize> {
        match &self.distinct {
            None => Ok(length as usize),
            Some(distinct) => distinct.binary_search(&length).map_err(|_| Error::changed()),
        }
    }
}

fn too_long<L: Length>(lengths: &[L], capacity: u32, usable: u32) -> Error {
    let found = lengths.iter().position(|&length| length.into() > usable).unwrap_or(0);
    let length: u32 = lengths.get(found).map_or(0, |&length| length.into());
    let limit = if usable == capacity {
        format!("capacity={capacity}")
    } else {
        format!("{usable} tokens (capacity={capacity} rounded down to the alignment)")
    };
    Error::invalid(format!(
        "lengths[{found}] is {length} tokens, but a pack holds {limit}; choose overlong=\"truncate\", \"split\" or \"drop\""
    ))
}
