//! Packing samples as they come, in bounded memory: the Sum-of-Squares rule.
//!
//! Problem: a stream has no histogram. Best fit over a few open packs stalls near 99.9 %, for it fills packs up to levels
//! that no later sample can complete. Sum of Squares keeps the open packs spread over all levels: a sample goes where the
//! sum over all levels of (packs at that level) squared grows least, so that there is always a pack that the next sample
//! completes. Above the limit of open packs the fullest one is closed: one, never all.
//!
//! Cost: one look at each open pack, 1 ns each. Memory: a counter for each level (capacities above a million share levels)
//! and the numbers of the open packs' samples. 99.9 % with 16 open packs, 99.98 % with 64 and 99.999 % with 256 on
//! ordinary lengths; above decreasing best fit where small samples are missing.
//! Source: Csirik, Johnson, Kenyon, Orlin, Shor, Weber, "On the Sum-of-Squares algorithm for bin packing", JACM 53 (2006).

use crate::{Error, Interrupt, Length, MAX_LENGTH, Result};

/// Levels that have a counter of their own, at most.
const LEVELS: u32 = 1 << 20;

/// Samples between two looks for an interrupt.
const CHUNK: usize = 1 << 14;

/// The most open packs that can be asked for.
pub const MOST_OPEN: u32 = 1 << 14;

/// What a stream of packs is asked to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamOptions {
    /// The most tokens in a pack, each sample rounded up to `multiple_of`.
    pub capacity: u32,
    /// The most packs that are open between two samples.
    pub open_packs: u32,
    /// The most samples in a pack; `u32::MAX` for no cap.
    pub max_samples: u32,
    /// Every sample occupies a multiple of this many tokens.
    pub multiple_of: u32,
}

/// Packs that are finished: pack `i` holds `samples[offsets[i]..offsets[i + 1]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// Sample numbers, counted from 0 as they came.
    pub samples: Vec<u64>,
    /// Where each pack starts; one more entry than there are packs.
    pub offsets: Vec<i64>,
}

impl Default for Closed {
    fn default() -> Self {
        Self { samples: Vec::new(), offsets: vec![0] }
    }
}

impl Closed {
    fn push(&mut self, samples: &[u64]) {
        self.samples.extend_from_slice(samples);
        self.offsets.push(self.samples.len() as i64);
    }
}

/// Open packs, and what has passed.
#[derive(Debug, Clone)]
pub struct StreamPacker {
    options: StreamOptions,
    /// Units of every open pack that are taken, and its samples, in one order.
    fills: Vec<u32>,
    contents: Vec<Vec<u64>>,
    /// Open packs at each level (units taken, in steps of `1 << shift`); as many entries behind for what does not fit.
    levels: Vec<i16>,
    shift: u32,
    capacity: u32,
    /// Samples so far.
    next: u64,
    /// Emptied contents, to be used again.
    spare: Vec<Vec<u64>>,
}

impl StreamPacker {
    /// No packs yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] for limits that no pack can satisfy.
    pub fn new(options: StreamOptions) -> Result<Self> {
        let StreamOptions { capacity, open_packs, max_samples, multiple_of } = options;
        if capacity == 0 || capacity > MAX_LENGTH {
            return Err(Error::invalid(format!("capacity is {capacity}, but a pack holds 1 to {MAX_LENGTH} tokens")));
        }
        if multiple_of == 0 || multiple_of > capacity {
            return Err(Error::invalid(format!("multiple_of is {multiple_of}, but must be 1 to capacity={capacity}")));
        }
        if open_packs == 0 || open_packs > MOST_OPEN || max_samples == 0 {
            return Err(Error::invalid(format!(
                "open_bins is {open_packs} and max_samples {max_samples}, but must be 1 to {MOST_OPEN} and at least 1"
            )));
        }
        let capacity = capacity / multiple_of;
        let shift = (capacity / LEVELS).checked_ilog2().map_or(0, |log| log + 1);
        let levels = vec![0; 2 * (capacity >> shift) as usize + 2];
        Ok(Self { options, fills: vec![], contents: vec![], levels, shift, capacity, next: 0, spare: vec![] })
    }

    /// Go on from where another one stood: units taken and samples of each open pack, and samples so far.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a state that no stream under these options can be in.
    pub fn resume(options: StreamOptions, fills: Vec<u32>, contents: Vec<Vec<u64>>, next: u64) -> Result<Self> {
        let mut packer = Self::new(options)?;
        let full = |samples: &Vec<u64>| samples.is_empty() || samples.len() >= options.max_samples as usize;
        if fills.len() != contents.len()
            || fills.len() > options.open_packs as usize
            || fills.iter().any(|&fill| fill >= packer.capacity)
            || contents.iter().any(full)
            || contents.iter().flatten().any(|&sample| sample >= next)
        {
            return Err(Error::invalid(
                "state is not that of a stream with these options; use the options that made it",
            ));
        }
        for &fill in &fills {
            packer.levels[(fill >> packer.shift) as usize] += 1;
        }
        (packer.fills, packer.contents, packer.next) = (fills, contents, next);
        Ok(packer)
    }

    /// What the stream was made with.
    #[must_use]
    pub fn options(&self) -> StreamOptions {
        self.options
    }

    /// Samples so far; the next one has this number.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.next
    }

    /// Units taken and samples of every open pack, for [`StreamPacker::resume`].
    #[must_use]
    pub fn open(&self) -> (&[u32], &[Vec<u64>]) {
        (&self.fills, &self.contents)
    }

    /// The units that a sample occupies.
    ///
    /// # Errors
    /// [`Error::Invalid`] for one that is longer than a pack.
    #[inline]
    fn units(&self, length: u32, index: usize) -> Result<u32> {
        let units = length.div_ceil(self.options.multiple_of);
        if units <= self.capacity {
            return Ok(units);
        }
        let StreamOptions { capacity, multiple_of, .. } = self.options;
        let usable = capacity - capacity % multiple_of;
        Err(Error::invalid(format!(
            "lengths[{index}] is {length} tokens, but a pack holds {usable} (capacity={capacity}, \
             multiple_of={multiple_of}); cut or leave out longer samples before the stream"
        )))
    }

    /// Put the next samples into packs: all of them, or none where one is too long or the caller interrupts.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a sample that is longer than a pack; the caller's interrupt.
    pub fn extend<L: Length>(&mut self, lengths: &[L], interrupt: Interrupt<'_>) -> Result<Closed> {
        for (index, &length) in lengths.iter().enumerate() {
            self.units(length.into(), index)?;
        }
        let (before, mut closed) = (self.clone(), Closed::default());
        for (chunk, lengths) in lengths.chunks(CHUNK).enumerate() {
            if let Err(error) = interrupt.check() {
                *self = before;
                return Err(error);
            }
            for (index, &length) in lengths.iter().enumerate() {
                let units = self.units(length.into(), chunk * CHUNK + index)?;
                self.add(units, &mut closed);
            }
        }
        Ok(closed)
    }

    /// Put the next sample, of `units`, into a pack; at most one pack is finished by it.
    #[inline]
    pub(super) fn add(&mut self, units: u32, closed: &mut Closed) {
        let number = self.next;
        self.next += 1;
        let place = if let Some(place) = self.place(units) {
            self.move_level(self.fills[place], -1);
            place
        } else {
            self.fills.push(0);
            self.contents.push(self.spare.pop().unwrap_or_default());
            self.fills.len() - 1
        };
        self.fills[place] += units;
        self.contents[place].push(number);
        if self.fills[place] == self.capacity || self.contents[place].len() == self.options.max_samples as usize {
            self.close(place, closed);
            return;
        }
        self.move_level(self.fills[place], 1);
        if self.fills.len() > self.options.open_packs as usize {
            let fullest = (0..self.fills.len()).rev().max_by_key(|&pack| self.fills[pack]).unwrap_or(0);
            self.move_level(self.fills[fullest], -1);
            self.close(fullest, closed);
        }
    }

    /// Close all that is open, as few packs as best fit makes of them.
    pub fn finish(&mut self, closed: &mut Closed) {
        let mut order: Vec<usize> = (0..self.fills.len()).collect();
        order.sort_by_key(|&pack| std::cmp::Reverse(self.fills[pack]));
        let mut merged: Vec<(u32, Vec<u64>)> = Vec::new();
        for pack in order {
            let (fill, samples) = (self.fills[pack], std::mem::take(&mut self.contents[pack]));
            let fits = |(taken, others): &&mut (u32, Vec<u64>)| {
                *taken + fill <= self.capacity && others.len() + samples.len() <= self.options.max_samples as usize
            };
            match merged.iter_mut().filter(fits).max_by_key(|(taken, _)| *taken) {
                Some((taken, others)) => {
                    *taken += fill;
                    others.extend_from_slice(&samples);
                }
                None => merged.push((fill, samples)),
            }
        }
        for (_, samples) in &merged {
            closed.push(samples);
        }
        self.fills.clear();
        self.contents.clear();
        self.levels.fill(0);
    }

    /// Where the sum of squares grows least, of equals the fullest; `None` for a new pack.
    #[inline]
    fn place(&self, units: u32) -> Option<usize> {
        if units == 0 {
            // It changes no level: any open pack does.
            return (0..self.fills.len()).max_by_key(|&pack| self.fills[pack]);
        }
        let level = |fill: u32| i64::from(self.levels[(fill >> self.shift) as usize]);
        // N(h + s) - N(h), above the room that is left: one comparison finds the least change and then the fullest.
        let key = |fill: u32| {
            let (after, change) = (fill + units, level(fill + units) - level(fill));
            if after > self.capacity { i64::MAX } else { change << 32 | i64::from(self.capacity - fill) }
        };
        // Four at a time: a single running minimum would make each look wait for the one before.
        let fours = self.fills.chunks_exact(4);
        let rest = fours.remainder().iter().map(|&fill| key(fill)).min().unwrap_or(i64::MAX);
        let mut least = [rest, i64::MAX, i64::MAX, i64::MAX];
        for four in fours {
            for (least, &fill) in least.iter_mut().zip(four) {
                *least = (*least).min(key(fill));
            }
        }
        let least = least.into_iter().min()?;
        // A new pack changes the sum by 2 N(s) + 1, an old one by 2 (N(h + s) - N(h)) + 2.
        let opened = if units == self.capacity { 0 } else { level(units) };
        if least >> 32 >= opened {
            return None;
        }
        let found = self.capacity - least as u32;
        self.fills.iter().position(|&fill| fill == found)
    }

    #[inline]
    fn move_level(&mut self, fill: u32, by: i16) {
        self.levels[(fill >> self.shift) as usize] += by;
    }

    fn close(&mut self, pack: usize, closed: &mut Closed) {
        self.fills.swap_remove(pack);
        let mut samples = self.contents.swap_remove(pack);
        closed.push(&samples);
        samples.clear();
        self.spare.push(samples);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Pack = (u32, Vec<u64>);

    /// The rule as it is written: try every level, count all squares.
    fn naive(lengths: &[u32], capacity: u32, open: usize) -> Vec<Vec<u64>> {
        let (mut packs, mut closed): (Vec<Pack>, Vec<Vec<u64>>) = (vec![], vec![]);
        let squares = |packs: &[Pack]| -> i64 {
            (1..capacity).map(|level| (packs.iter().filter(|pack| pack.0 == level).count() as i64).pow(2)).sum()
        };
        for (number, &length) in lengths.iter().enumerate() {
            let mut best: Option<(i64, u32, usize)> = None;
            packs.push((0, vec![]));
            for pack in 0..packs.len() {
                let fill = packs[pack].0;
                if fill + length > capacity {
                    continue;
                }
                packs[pack].0 += length;
                let sum = squares(&packs);
                packs[pack].0 -= length;
                if best.is_none_or(|(least, fullest, _)| sum < least || (sum == least && fill > fullest)) {
                    best = Some((sum, fill, pack));
                }
            }
            let (_, _, pack) = best.unwrap();
            packs[pack].0 += length;
            packs[pack].1.push(number as u64);
            packs.retain(|pack| !pack.1.is_empty());
            if let Some(full) = packs.iter().position(|pack| pack.0 == capacity) {
                closed.push(packs.remove(full).1);
            } else if packs.len() > open {
                let fullest = packs.iter().map(|pack| pack.0).max().unwrap();
                let fullest = packs.iter().position(|pack| pack.0 == fullest).unwrap();
                closed.push(packs.remove(fullest).1);
            }
        }
        closed
    }

    fn options(capacity: u32, open_packs: u32) -> StreamOptions {
        StreamOptions { capacity, open_packs, max_samples: u32::MAX, multiple_of: 1 }
    }

    proptest! {
        #[test]
        fn packs_fill_like_the_rule(
            (capacity, lengths) in (2_u32..40).prop_flat_map(|c| (Just(c), prop::collection::vec(1..=c, 0..150))), open in 1_u32..12,
        ) {
            let mut packer = StreamPacker::new(options(capacity, open)).unwrap();
            let mut closed = Closed::default();
            for &length in &lengths {
                packer.add(length, &mut closed);
            }
            // Which of several packs of one fill is taken is not said by the rule; the fills are.
            let fill = |samples: &[u64]| samples.iter().map(|&sample| lengths[sample as usize]).sum::<u32>();
            let ours: Vec<u32> = closed.offsets.windows(2).map(|stops| fill(&closed.samples[stops[0] as usize..stops[1] as usize])).collect();
            let theirs: Vec<u32> = naive(&lengths, capacity, open as usize).iter().map(|samples| fill(samples)).collect();
            prop_assert_eq!(ours, theirs);
        }
    }

    #[test]
    fn huge_capacities_share_levels() {
        let mut packer = StreamPacker::new(options(i32::MAX as u32, 4)).unwrap();
        let mut closed = Closed::default();
        for units in [i32::MAX as u32, 1 << 30, (1 << 30) - 1, 5, 7] {
            packer.add(units, &mut closed);
        }
        assert_eq!(closed.offsets, [0, 1, 3]);
        packer.finish(&mut closed);
        assert_eq!(closed.samples, [0, 1, 2, 3, 4]);
    }
}
