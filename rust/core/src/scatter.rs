//! Samples grouped by bucket and uniformly shuffled inside each, by a method that respects the cache.
//!
//! Problem: Fisher-Yates over millions of samples misses the cache at every swap.
//! Method: every sample draws a random bin of its bucket (A), samples are scattered to their bins (B), and each bin, which
//! fits the second-level cache, is shuffled by itself (C). Given ideal bits the result is exactly uniform: the bin digits are
//! independent and uniform, and what is inside a bin is then permuted uniformly.
//! Cost: about 3 ns a sample; 2 bytes of digits a sample beside the result.
//! Source: Rao 1961, Sandelius 1962.

use crate::Index;
use crate::rng::{Key, Stream};
use crate::shuffle::shuffle;
use crate::{Interrupt, Result};

/// How many samples a bin should hold: 64 KiB of indices, half of a small second-level cache.
const BIN: u64 = 1 << 14;
/// Bins are numbered by 16 bits.
const MAX_BINS: u64 = 1 << 16;

/// The sum of what comes before each number.
fn running_total(numbers: impl Iterator<Item = u32>) -> Vec<u32> {
    numbers.scan(0, |total, number| Some(std::mem::replace(total, *total + number))).collect()
}

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
        let mut target = BIN;
        loop {
            let bits: Vec<u32> =
                counts.iter().map(|count| count.div_ceil(target).max(1).next_power_of_two().trailing_zeros()).collect();
            let total: u64 = bits.iter().map(|bits| 1_u64 << bits).sum();
            if total <= MAX_BINS && bits.iter().all(|&bits| bits <= 16) {
                let first = running_total(bits.iter().map(|bits| 1 << bits));
                return Self { first, bits, total: total as usize };
            }
            target *= 2;
        }
    }

    /// The bin of a sample of `bucket` with the random `digit`, uniform on 16 bits.
    #[inline]
    fn of(&self, bucket: usize, digit: u16) -> u16 {
        (self.first[bucket] + (u32::from(digit) >> (16 - self.bits[bucket]))) as u16
    }
}

/// Positions `0..n` grouped by bucket (`counts` says how many each has) and shuffled inside, and where each bucket starts.
///
/// # Errors
/// Interrupted.
pub(crate) fn grouped<I: Index>(
    n: usize,
    counts: &[u64],
    bucket: impl Fn(usize) -> usize,
    seed: u64,
    epoch: u64,
    interrupt: Interrupt<'_>,
) -> Result<(Vec<I>, Vec<u64>)> {
    let bins = Bins::new(counts);
    let key = Key::new(seed, epoch, Stream::Bins);
    let mut digits = vec![0_u16; n];
    let mut starts = vec![0_u64; bins.total + 1];
    for (chunk, digits) in digits.chunks_mut(1 << 18).enumerate() {
        interrupt.check()?;
        let offset = chunk << 18;
        for (group, digits) in digits.chunks_mut(4).enumerate() {
            let position = offset + 4 * group;
            let word = key.word(position as u64 >> 2);
            for (i, digit) in digits.iter_mut().enumerate() {
                *digit = bins.of(bucket(position + i), (word >> (16 * i)) as u16);
                starts[usize::from(*digit) + 1] += 1;
            }
        }
    }
    (0..bins.total).for_each(|bin| starts[bin + 1] += starts[bin]);
    interrupt.check()?;
    let mut next = starts.clone();
    let mut indices = vec![I::default(); n];
    for (position, &digit) in digits.iter().enumerate() {
        let slot = &mut next[usize::from(digit)];
        indices[*slot as usize] = I::new(position);
        *slot += 1;
    }
    interrupt.check()?;
    let inside = Key::new(seed, epoch, Stream::InBin);
    for bin in 0..bins.total {
        shuffle(&mut indices[starts[bin] as usize..starts[bin + 1] as usize], inside.child(bin as u64));
    }
    let mut bucket_starts: Vec<u64> = bins.first.iter().map(|&bin| starts[bin as usize]).collect();
    bucket_starts.push(n as u64);
    Ok((indices, bucket_starts))
}
