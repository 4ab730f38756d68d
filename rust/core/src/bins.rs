//! How many bins each bucket is divided into, and how much room they get.

use std::ops::Range;

/// How many samples a bin holds at most, on average: while they are shuffled, the second-level cache must hold them.
const MAX_BIN: u64 = 1 << 18;
/// Fewer samples than this are not worth a bin.
const MIN_BIN: u64 = 1 << 13;
/// So many bins are enough: with fewer, samples wait for the one before, which went to the same bin; with more, the lines that
/// are about to be filled leave the first-level cache.
const ENOUGH: u64 = 1 << 8;
/// Bins are numbered by 16 bits.
const MAX_BINS: u64 = 1 << 16;

/// How each bucket is divided into bins: a power of two of them.
#[derive(Debug, Clone)]
pub(crate) struct Bins {
    /// Number of the bucket's first bin.
    pub(crate) first: Vec<u32>,
    /// log2 of how many bins it has.
    bits: Vec<u32>,
    pub(crate) total: usize,
}

impl Bins {
    pub(crate) fn new(counts: &[u64]) -> Self {
        let mut target = (counts.iter().sum::<u64>() / ENOUGH).next_power_of_two().clamp(MIN_BIN, MAX_BIN);
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

    /// How much room to leave for each bin: its expected number of samples and some standard deviations.
    pub(crate) fn rooms(&self, counts: &[u64], deviations: u64) -> Vec<usize> {
        let room = |(&count, &bits): (&u64, &u32)| {
            let expected = count.div_ceil(1 << bits);
            let room = if bits == 0 { count } else { count.min(expected + deviations * (expected.isqrt() + 1)) };
            std::iter::repeat_n(room as usize, 1 << bits)
        };
        counts.iter().zip(&self.bits).flat_map(room).collect()
    }

    /// How many random bits choose a bin: a word is shared by as many samples as it has digits.
    pub(crate) fn digit(&self) -> u32 {
        if self.bits.iter().all(|&bits| bits <= 8) { 8 } else { 16 }
    }

    /// Per bucket, its first bin and how far a digit must be shifted to choose one of them.
    pub(crate) fn packed(&self) -> Vec<u32> {
        let digit = self.digit();
        self.first.iter().zip(&self.bits).map(|(first, bits)| first << 5 | (digit - bits)).collect()
    }

    /// The bins of each bucket.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = Range<usize>> {
        self.first.iter().zip(&self.bits).map(|(&first, bits)| first as usize..first as usize + (1 << bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_bins_share_a_word_among_eight_samples() {
        assert_eq!(Bins::new(&[1 << 20, 7]).digit(), 8);
        let many = Bins::new(&[1 << 27, 7]);
        assert_eq!((many.digit(), many.bits, many.total), (16, vec![9, 0], 513));
        assert_eq!(Bins::new(&[1 << 36]).total as u64, MAX_BINS);
    }
}
