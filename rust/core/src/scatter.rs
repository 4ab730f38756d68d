//! Samples scattered to random bins of their buckets: the first half of a uniform shuffle that respects the cache.
//!
//! Problem: Fisher-Yates over millions of samples misses the cache at every swap.
//! Method: every sample draws a random bin of its bucket and is scattered to it; each bin, which fits the second-level cache, is
//! then shuffled by itself (see `pour`). Given ideal bits the result is exactly uniform: the bin digits are independent and
//! uniform, and what is inside a bin is then permuted uniformly.
//! Cost: about 2 ns a sample, where bins get room to spare; each thread scatters a stretch of the samples to bins of its
//! own. The bins of all stretches together are the same for any number of them.
//! Source: Rao 1961, Sandelius 1962.

use std::marker::PhantomData;
use std::ops::Range;

use crate::bins::Bins;
use crate::bucket::Buckets;
use crate::classify::Table;
use crate::code::Code;
use crate::counts::Counts;
use crate::items::Items;
use crate::means::Means;
use crate::parallel::results;
use crate::raw::{BLOCK, Draw, Elements, Roomy, scatter_roomy};
use crate::rng::{Key, Stream};
use crate::{Error, Index, Interrupt, Length, Result, Spare};

/// So many items are worth a lane of their own.
const LANE: usize = 1 << 18;
/// Numbers are cut off where a bin has so many samples of a span, on average: fewer cost more than wider integers.
const SEGMENT: usize = 8;
/// Rooms of 8 standard deviations do not hold a bin once in 10^15 bins; of 64, never.
const DEVIATIONS: [u64; 2] = [8, 64];

/// Items in bins that are still to be shuffled: bucket after bucket, several bins each.
pub(crate) struct Scattered<'a, I> {
    pub(crate) lanes: Lanes<I>,
    /// How they lie there.
    pub(crate) code: Code,
    /// The fewest tokens that items of each bin have.
    pub(crate) lows: Vec<u32>,
    /// Which bins each bucket has.
    pub(crate) buckets: Vec<Range<usize>>,
    /// The random bits of what comes next.
    pub(crate) inside: Key,
    /// How it is to be done.
    pub(crate) means: Means<'a, I>,
}

/// The items of one stretch after another, in integers that hold them: all have all bins.
pub(crate) enum Lanes<I> {
    Narrow(Vec<Roomy<I>>),
    Wide(Vec<Roomy<u64>>),
}

/// What goes to the bins with every item.
pub(crate) struct Tokens<F> {
    /// From an item and its tokens, also for an item past the last.
    pub(crate) of: F,
    /// So many low bits of it go.
    pub(crate) bits: u32,
    /// The fewest that an item of each bucket has: its bits tell the rest. What is over-long may lose some.
    pub(crate) lows: Vec<u32>,
}

impl Tokens<()> {
    /// Nothing.
    pub(crate) fn none() -> Tokens<impl Fn(usize, u32) -> u32 + Copy + Sync> {
        Tokens { of: |_, _| 0, bits: 0, lows: Vec::new() }
    }

    /// The lengths of samples in buckets of these bounds.
    pub(crate) fn lengths(bounds: &[u32]) -> Tokens<impl Fn(usize, u32) -> u32 + Copy + Sync> {
        let lows: Vec<u32> = std::iter::once(0).chain(bounds.iter().map(|bound| bound + 1)).collect();
        let widest = bounds.iter().zip(&lows).map(|(bound, low)| bound - low).max().unwrap_or(0);
        Tokens { of: |_, tokens| tokens, bits: u32::BITS - widest.leading_zeros(), lows }
    }
}

/// All items in random bins of their buckets, each with its `tokens`.
///
/// # Errors
/// Interrupted; other lengths than those that were counted.
pub(crate) fn scattered<'a, L: Length, I: Index>(
    items: Items<'_, L>,
    groups: &Buckets,
    counts: &Counts,
    (seed, epoch): (u64, u64),
    tokens: Tokens<impl Fn(usize, u32) -> u32 + Copy + Sync>,
    means: Means<'a, I>,
) -> Result<Scattered<'a, I>> {
    let bins = Bins::new(counts);
    let mut packed = bins.packed();
    if items.cut_to(groups.longest()) {
        // What is over-long is cut: it belongs to the last bucket.
        packed.pop();
        packed.extend(packed.last().copied());
    }
    let (table, key, code) = (Table::new(groups, packed), Key::new(seed, epoch, Stream::Bins), Code::new(tokens.bits));
    let span = code.span::<I>();
    let narrow = span >= BLOCK as u64 && (span >= items.len() as u64 || span >= (SEGMENT * bins.total) as u64);
    let Means { threads, spare, interrupt } = means;
    let share = Share { items, bins: &bins, counts, key, code, tokens: tokens.of, threads, interrupt };
    let lanes = match (table.exact(), narrow) {
        (Some((cells, values)), true) => {
            let value = |length: L| values[usize::from(cells[usize::from(length.saturated())])];
            Lanes::Narrow(share.placed(value, spare)?)
        }
        (None, true) => Lanes::Narrow(share.placed(|length: L| table.value(length.into()), spare)?),
        (_, false) => Lanes::Wide(share.placed(|length: L| table.value(length.into()), &Spare::new(0))?),
    };
    let buckets: Vec<_> = bins.buckets().collect();
    let lows = tokens.lows.into_iter().chain(std::iter::repeat(0)).zip(&buckets);
    let lows = lows.flat_map(|(low, bucket)| std::iter::repeat_n(low, bucket.len())).collect();
    Ok(Scattered { lanes, code, lows, buckets, inside: Key::new(seed, epoch, Stream::InBin), means })
}

/// Work that several threads share: each scatters a stretch of the items.
struct Share<'a, L, F> {
    items: Items<'a, L>,
    bins: &'a Bins,
    counts: &'a Counts,
    key: Key,
    code: Code,
    tokens: F,
    threads: usize,
    interrupt: Interrupt<'a>,
}

impl<L: Length, F: Fn(usize, u32) -> u32 + Copy + Sync> Share<'_, L, F> {
    /// Every item in the bin that it draws. `lookup` leads from a length to its bucket's first bin and shift; bins lie in
    /// `spare` memory.
    fn placed<E: Index>(&self, lookup: impl Fn(L) -> u32 + Copy + Sync, spare: &Spare<E>) -> Result<Vec<Roomy<E>>> {
        let Self { items, key, code, tokens, threads, .. } = *self;
        let draw = DrawBins { items, key, digit: self.bins.digit(), lookup, code, tokens, element: PhantomData };
        let pool = if threads == 1 { &spare.indices } else { &spare.lanes };
        let n = items.len();
        let lanes = threads.min(n / LANE + 1);
        let size = n.div_ceil(lanes).next_multiple_of(BLOCK);
        let own = |lane: usize| (lane * size).min(n)..((lane + 1) * size).min(n);
        let count = || results(threads, lanes, &|lane| Ok(draw.count(own(lane), self.bins)));
        let shares = self.counts.by_lane(lanes, count)?;
        for deviations in DEVIATIONS {
            let rooms = |lane: usize| self.bins.rooms(&shares[lane], deviations);
            let (span, memory) = (code.span::<E>(), |len| pool.take(len));
            let scatter = |lane| scatter_roomy(own(lane), &rooms(lane), span, draw, memory, self.interrupt);
            let all: Option<Vec<Roomy<E>>> = results(threads, lanes, &scatter)?.into_iter().collect();
            if let Some(lanes) = all {
                return if self.as_counted(&lanes) { Ok(lanes) } else { Err(Error::changed()) };
            }
        }
        Err(Error::changed())
    }
}

impl<L, F> Share<'_, L, F> {
    /// Whether buckets hold as many items as were counted when the planner was made.
    fn as_counted<E>(&self, lanes: &[Roomy<E>]) -> bool {
        let held = |bin: usize| lanes.iter().map(|lane| lane.bins[bin].len() as u64).sum::<u64>();
        self.bins.buckets().zip(self.counts.iter()).all(|(own, &count)| own.map(held).sum::<u64>() == count)
    }
}

/// Draws the bin of every item.
struct DrawBins<'a, L, F, T, E> {
    items: Items<'a, L>,
    key: Key,
    /// Bits of a digit.
    digit: u32,
    lookup: F,
    code: Code,
    tokens: T,
    element: PhantomData<fn() -> E>,
}

impl<L, F: Copy, T: Copy, E> Clone for DrawBins<'_, L, F, T, E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<L, F: Copy, T: Copy, E> Copy for DrawBins<'_, L, F, T, E> {}

impl<L: Length, F: Fn(L) -> u32, T, E> DrawBins<'_, L, F, T, E> {
    /// The bins of items with these `lengths`, the first of which is number `start`: one random word serves `WAYS` of them.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn choose<const WAYS: usize>(&self, start: usize, lengths: &[L; BLOCK], bins: &mut [u16; BLOCK]) {
        let digit = u64::BITS as usize / WAYS;
        let shared = bins.chunks_exact_mut(WAYS).zip(lengths.chunks_exact(WAYS));
        for ((bins, lengths), position) in shared.zip((start / WAYS) as u64..) {
            let word = self.key.word(position);
            for way in 0..WAYS {
                let packed = (self.lookup)(lengths[way]);
                let drawn = (word >> (digit * way)) as u32 & ((1 << digit) - 1);
                bins[way] = ((packed >> 5) + (drawn >> (packed & 31))) as u16;
            }
        }
    }

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

impl<L, F, T, E> Draw for DrawBins<'_, L, F, T, E>
where
    L: Length,
    F: Fn(L) -> u32 + Copy + Sync,
    T: Copy + Sync,
{
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn bins(self, start: usize, bins: &mut [u16; BLOCK]) {
        let rest: [L; BLOCK];
        let lengths = if let Some(whole) = self.items.whole(start) {
            whole
        } else {
            rest = std::array::from_fn(|i| L::new(self.items.tokens(start + i)));
            &rest
        };
        if self.digit == 8 {
            self.choose::<8>(start, lengths, bins);
        } else {
            self.choose::<4>(start, lengths, bins);
        }
    }
}

impl<L, F, T, E> Elements for DrawBins<'_, L, F, T, E>
where
    L: Length,
    F: Fn(L) -> u32 + Copy + Sync,
    T: Fn(usize, u32) -> u32 + Copy + Sync,
    E: Index,
{
    type Element = E;

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn elements(self, start: usize, elements: &mut [E; BLOCK]) {
        if !self.code.tokens() {
            return;
        }
        let pack = |item, tokens| self.code.pack(item, (self.tokens)(item, tokens));
        if let Some(lengths) = self.items.whole::<BLOCK>(start) {
            let ceiling = self.items.ceiling();
            for ((element, &length), item) in elements.iter_mut().zip(lengths).zip(start..) {
                *element = pack(item, length.into().min(ceiling));
            }
        } else {
            for (element, item) in elements.iter_mut().zip(start..) {
                *element = pack(item, self.items.tokens(item));
            }
        }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn element(self, item: usize, packed: E) -> E {
        if self.code.tokens() { packed } else { E::new(item) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Sample;

    /// The samples of every bin.
    fn read<E: Index>(lanes: &[Roomy<E>], scattered: &Scattered<'_, u32>) -> Vec<Vec<Sample<u32>>> {
        let bins = 0..scattered.lows.len();
        bins.map(|bin| {
            let size = lanes.iter().map(|lane| lane.bins[bin].len()).sum();
            let mut samples = vec![Sample::default(); size];
            let make = |first, packed| scattered.code.unpack(packed, first, scattered.lows[bin]);
            scattered.code.reader(lanes, bin).read(&mut samples, make);
            samples
        })
        .collect()
    }

    struct Case {
        lengths: Vec<u32>,
        groups: Buckets,
        counts: Counts,
    }

    impl Case {
        /// Samples of four buckets, the last of which is over-long; all lengths are multiples of 2^`shift`.
        fn new(samples: usize, shift: u32) -> Self {
            let words = Key::new(1, 0, Stream::Reference);
            let lengths: Vec<u32> = (0..samples as u64).map(|i| ((words.word(i) % 900) as u32) << shift).collect();
            let groups = Buckets::new([100, 250, 600].map(|bound| bound << shift).to_vec()).unwrap();
            let mut counts = vec![0; 4];
            for &length in &lengths {
                counts[groups.of(length)] += 1;
            }
            Self { lengths, groups, counts: Counts::new(counts) }
        }

        fn scattered<'a>(&self, counts: &Counts, threads: usize, spare: &'a Spare<u32>) -> Result<Scattered<'a, u32>> {
            let items = Items::new(&self.lengths, u32::MAX, &[]);
            let tokens = Tokens::lengths(self.groups.bounds());
            let means = Means { threads, spare, interrupt: Interrupt::NEVER };
            scattered(items, &self.groups, counts, (3, 5), tokens, means)
        }
    }

    #[test]
    fn bins_are_the_same_for_any_threads_and_however_samples_are_packed() {
        for (samples, shifts) in [(600_001, [0, 6, 14]), (100_001, [0, 12, 20])] {
            let mut first: Option<Vec<Vec<u32>>> = None;
            for shift in shifts {
                let case = Case::new(samples, shift);
                for threads in [1, 2, 3] {
                    // Memory that others have used.
                    let spare = Spare::new(3);
                    spare.keep(vec![u32::MAX; 2 * samples]);
                    spare.lanes.keep(vec![u32::MAX; 2 * samples]);
                    let scattered = case.scattered(&case.counts.clone(), threads, &spare).unwrap();
                    let (bins, lanes, wide) = match &scattered.lanes {
                        Lanes::Narrow(lanes) => (read(lanes, &scattered), lanes.len(), false),
                        Lanes::Wide(lanes) => (read(lanes, &scattered), lanes.len(), true),
                    };
                    assert_eq!((lanes, wide), (threads.min(samples / LANE + 1), shift == shifts[2]));
                    for (bucket, own) in scattered.buckets.iter().enumerate() {
                        for sample in bins[own.clone()].iter().flatten() {
                            let length = case.lengths[sample.index as usize];
                            assert_eq!(case.groups.of(length), bucket);
                            assert!(bucket == 3 || sample.tokens == length);
                        }
                    }
                    let numbers = |own: &Vec<Sample<u32>>| own.iter().map(|sample| sample.index).collect::<Vec<u32>>();
                    let numbers: Vec<Vec<u32>> = bins.iter().map(numbers).collect();
                    assert_eq!(numbers.iter().flatten().count(), samples);
                    assert!(numbers.iter().all(|own| own.is_sorted()));
                    assert!(*first.get_or_insert_with(|| numbers.clone()) == numbers);
                }
            }
        }
    }

    #[test]
    fn lanes_are_counted_once() {
        let case = Case::new(600_001, 0);
        case.scattered(&case.counts, 3, &Spare::new(0)).unwrap();
        let shares = case.counts.by_lane(3, || Err(Error::Interrupted)).unwrap();
        let sum = |bucket| shares.iter().map(|share: &Vec<u64>| share[bucket]).sum();
        assert_eq!((0..4).map(sum).collect::<Vec<u64>>(), *case.counts);
    }

    #[test]
    fn other_lengths_than_were_counted_are_refused() {
        let case = Case::new(600_001, 0);
        for counts in [vec![0; 4], vec![600_001, 0, 0, 0], vec![5, 5, 5, 599_986]] {
            let (counts, none) = (Counts::new(counts), Spare::new(0));
            let error = case.scattered(&counts, 1, &none).err().map(|error| error.to_string());
            assert!(error.unwrap().contains("lengths have changed"));
        }
    }
}
