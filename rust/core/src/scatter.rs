//! Samples scattered to random bins of their buckets: the first half of a uniform shuffle that respects the cache.
//!
//! Problem: Fisher-Yates over millions of samples misses the cache at every swap.
//! Method: every sample draws a random bin of its bucket and is scattered to it; each bin, which fits the second-level cache, is
//! then shuffled by itself (see `pour`). Given ideal bits the result is exactly uniform: the bin digits are independent and
//! uniform, and what is inside a bin is then permuted uniformly.
//! Cost: about 2 ns a sample, where bins get room to spare; each thread scatters a stretch of the samples to bins of its
//! own. The bins of all stretches together are the same for any number of them.
//! Source: Rao 1961, Sandelius 1962.

use std::ops::Range;

use crate::bucket::Buckets;
use crate::classify::Table;
use crate::counts::Counts;
use crate::items::Items;
use crate::parallel::results;
use crate::raw::{BLOCK, Digits, Draw, Roomy, scatter_roomy};
use crate::rng::{Key, Stream};
use crate::{Index, Interrupt, Length, Result};

/// How many samples a bin holds at most on average: 128 KiB of indices and lengths.
const BIN: u64 = 1 << 14;
/// From so many samples on, bins hold four times as many, so that there are fewer lines to gather.
const LARGE: u64 = 1 << 22;
/// So many items are worth a lane of their own.
const LANE: usize = 1 << 18;
/// Bins are numbered by 16 bits.
const MAX_BINS: u64 = 1 << 16;

/// How each bucket is divided into bins: a power of two of them.
#[derive(Debug, Clone)]
struct Bins {
    /// Number of the bucket's first bin.
    first: Vec<u32>,
    /// log2 of how many bins it has.
    bits: Vec<u32>,
    total: usize,
}

impl Bins {
    fn new(counts: &[u64]) -> Self {
        let mut target = if counts.iter().sum::<u64>() < LARGE { BIN } else { 4 * BIN };
        loop {
            // Integers only: a logarithm could round differently elsewhere, and move samples.
            let bits: Vec<u32> =
                counts.iter().map(|count| count.div_ceil(target).max(1).next_power_of_two().trailing_zeros()).collect();
            let total: u64 = bits.iter().map(|&bits| 1_u64 << bits).sum();
            if total <= MAX_BINS {
                let first = bits.iter().scan(0, |total, &bits| Some(std::mem::replace(total, *total + (1 << bits))));
                return Self { first: first.collect(), bits, total: total as usize };
            }
            target *= 2;
        }
    }

    /// How much room to leave for each bin: its expected number of samples and 8 standard deviations, which once in 10^15 bins is
    /// not enough.
    fn rooms(&self, counts: &[u64]) -> Vec<usize> {
        let room = |(&count, &bits): (&u64, &u32)| {
            let expected = count.div_ceil(1 << bits);
            let room = if bits == 0 { count } else { expected + 8 * (expected.isqrt() + 1) };
            std::iter::repeat_n(room as usize, 1 << bits)
        };
        counts.iter().zip(&self.bits).flat_map(room).collect()
    }

    /// Per bucket, its first bin and how far a 16-bit digit must be shifted to choose one of them.
    fn packed(&self) -> Vec<u32> {
        self.first.iter().zip(&self.bits).map(|(first, bits)| first << 5 | (16 - bits)).collect()
    }
}

/// The bin of a sample whose bucket is `packed`, by a `digit` of 16 random bits.
#[inline]
fn bin_of(packed: u32, digit: u64) -> u16 {
    ((packed >> 5) + ((digit as u32 & 0xFFFF) >> (packed & 31))) as u16
}

/// Items in bins that are still to be shuffled: bucket after bucket, several bins each.
pub(crate) struct Scattered<I, const W: usize> {
    /// The items of one stretch after another. All have all bins.
    pub(crate) lanes: Vec<Roomy<[I; W]>>,
    /// Which bins each bucket has.
    pub(crate) buckets: Vec<Range<usize>>,
    /// The random bits of what comes next.
    pub(crate) inside: Key,
}

/// All items in random bins of their buckets, as `make` gives them from their number and their tokens.
///
/// # Errors
/// Interrupted.
pub(crate) fn scattered<L: Length, I: Index, const W: usize>(
    items: Items<'_, L>,
    groups: &Buckets,
    counts: &Counts,
    (seed, epoch): (u64, u64),
    threads: usize,
    make: impl Fn(usize, u32) -> [I; W] + Copy + Sync,
    interrupt: Interrupt<'_>,
) -> Result<Scattered<I, W>> {
    let bins = Bins::new(counts);
    let mut packed = bins.packed();
    if items.cut_to(groups.longest()) {
        // What is over-long is cut: it belongs to the last bucket.
        packed.pop();
        packed.extend(packed.last().copied());
    }
    let table = Table::new(groups, packed);
    let key = Key::new(seed, epoch, Stream::Bins);
    let lanes = if let Some(cells) = table.exact() {
        let draw = DrawBins { items, key, lookup: |length: L| cells[usize::from(length.saturated())] };
        placed(draw, &bins, counts, threads, make, interrupt)?
    } else {
        let table = &table;
        let draw = DrawBins { items, key, lookup: |length: L| table.value(length.into()) };
        placed(draw, &bins, counts, threads, make, interrupt)?
    };
    let buckets = bins.first.iter().zip(&bins.bits).map(|(&first, bits)| first as usize..first as usize + (1 << bits));
    Ok(Scattered { lanes, buckets: buckets.collect(), inside: Key::new(seed, epoch, Stream::InBin) })
}

/// Every item in the bin that it draws: in one pass a lane, or all in one lane and counted first, if ever a bin lacks room.
fn placed<L: Length, F: Fn(L) -> u32 + Copy + Sync, E: Copy + Send>(
    draw: DrawBins<'_, L, F>,
    bins: &Bins,
    counts: &Counts,
    threads: usize,
    make: impl Fn(usize, u32) -> E + Copy + Sync,
    interrupt: Interrupt<'_>,
) -> Result<Vec<Roomy<E>>> {
    let n = draw.items.len();
    let lanes = threads.min(n / LANE + 1);
    let size = n.div_ceil(lanes).next_multiple_of(BLOCK);
    let own = |lane: usize| (lane * size).min(n)..((lane + 1) * size).min(n);
    let shares = counts.by_lane(lanes, || results(threads, lanes, &|lane| Ok(draw.count(own(lane), bins))))?;
    let scatter = |lane: usize| scatter_roomy(own(lane), &bins.rooms(&shares[lane]), draw, make, interrupt);
    let all: Option<Vec<Roomy<E>>> = results(threads, lanes, &scatter)?.into_iter().collect();
    match all {
        Some(lanes) => Ok(lanes),
        None => counted(draw, bins, threads, make, interrupt),
    }
}

/// Every item in the bin that it draws, in one lane, without any room to spare.
fn counted<L: Length, F: Fn(L) -> u32 + Copy + Sync, E: Copy + Send>(
    draw: DrawBins<'_, L, F>,
    bins: &Bins,
    threads: usize,
    make: impl Fn(usize, u32) -> E + Copy + Sync,
    interrupt: Interrupt<'_>,
) -> Result<Vec<Roomy<E>>> {
    let items = draw.items;
    let digits = Digits::draw(items.len(), bins.total, threads, draw, interrupt)?;
    let (elements, starts) = digits.scatter(threads, |item| make(item, items.tokens(item)), interrupt)?;
    Ok(vec![Roomy { elements, bins: starts.windows(2).map(|pair| pair[0]..pair[1]).collect() }])
}

/// Draws the bin of every item: one random word serves four.
struct DrawBins<'a, L, F> {
    items: Items<'a, L>,
    key: Key,
    /// From a length to its bucket's first bin and shift.
    lookup: F,
}

impl<L, F: Copy> Clone for DrawBins<'_, L, F> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<L, F: Copy> Copy for DrawBins<'_, L, F> {}

impl<L: Length, F: Fn(L) -> u32> DrawBins<'_, L, F> {
    /// How many of the items `own` each bucket has.
    fn count(&self, own: Range<usize>, bins: &Bins) -> Vec<u64> {
        // By first bin. Four counters each: neighbours often share a bucket, and one counter would wait for its own store.
        let mut counts = vec![[0_u64; 4]; bins.total];
        for item in own {
            let packed = (self.lookup)(L::new(self.items.tokens(item)));
            counts[(packed >> 5) as usize][item % 4] += 1;
        }
        bins.first.iter().map(|&first| counts[first as usize].iter().sum()).collect()
    }
}

impl<L: Length, F: Fn(L) -> u32 + Copy + Sync> Draw for DrawBins<'_, L, F> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn block(self, start: usize, bins: &mut [u16; BLOCK], tokens: &mut [u32; BLOCK]) {
        let ceiling = self.items.ceiling();
        let rest: [L; BLOCK];
        let lengths = if let Some(whole) = self.items.whole(start) {
            whole
        } else {
            rest = std::array::from_fn(|i| L::new(self.items.tokens(start + i)));
            &rest
        };
        let quads = bins.chunks_exact_mut(4).zip(lengths.chunks_exact(4));
        for ((bins, lengths), quad) in quads.zip(start as u64 >> 2..) {
            let word = self.key.word(quad);
            for way in 0..4 {
                bins[way] = bin_of((self.lookup)(lengths[way]), word >> (16 * way));
            }
        }
        for (tokens, &length) in tokens.iter_mut().zip(lengths) {
            *tokens = length.into().min(ceiling);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    fn gathered(lanes: &[Roomy<[u32; 2]>], bins: usize) -> Vec<Vec<[u32; 2]>> {
        let of =
            |bin: usize| lanes.iter().flat_map(move |lane: &Roomy<[u32; 2]>| &lane.elements[lane.bins[bin].clone()]);
        (0..bins).map(|bin| of(bin).copied().collect()).collect()
    }

    #[test]
    fn one_pass_and_counting_first_give_the_same_bins() {
        let words = Key::new(1, 0, Stream::Reference);
        let lengths: Vec<u16> = (0..600_001).map(|i| (words.word(i) % 900) as u16).collect();
        let items = Items::new(&lengths, u32::MAX, &[]);
        let groups = Buckets::new(vec![100, 250, 600]).unwrap();
        let mut counts = vec![0; 4];
        for &length in &lengths {
            counts[groups.of(length.into())] += 1;
        }
        let bins = Bins::new(&counts);
        let table = Table::new(&groups, bins.packed());
        let draw = DrawBins { items, key: words, lookup: |length: u16| table.value(length.into()) };
        let make = |item, tokens| [item as u32, tokens];
        let exact = gathered(&counted(draw, &bins, 2, make, Interrupt::NEVER).unwrap(), bins.total);
        assert_eq!(exact.iter().flatten().count(), lengths.len());
        for (bin, own) in exact.iter().enumerate() {
            let bucket = bins.first.partition_point(|&first| first as usize <= bin) - 1;
            assert!(own.iter().all(|&[item, tokens]| u32::from(lengths[item as usize]) == tokens));
            assert!(own.iter().all(|&[_, tokens]| groups.of(tokens) == bucket));
            assert!(own.is_sorted());
        }
        let counts = Counts::new(counts);
        for threads in [1, 2, 3] {
            let counts = counts.clone();
            let lanes = placed(draw, &bins, &counts, threads, make, Interrupt::NEVER).unwrap();
            assert_eq!(lanes.len(), threads);
            assert!(gathered(&lanes, bins.total) == exact);
            // What each lane has is counted once.
            let shares = counts.by_lane(threads, || Err(Error::Interrupted)).unwrap();
            assert_eq!(
                (0..4).map(|bucket| shares.iter().map(|share| share[bucket]).sum()).collect::<Vec<u64>>(),
                *counts
            );
            // Without room for all, counting helps.
            let lanes = placed(draw, &bins, &Counts::new(vec![0; 4]), 1, make, Interrupt::NEVER).unwrap();
            assert!(gathered(&lanes, bins.total) == exact);
        }
    }
}
