//! How many samples have each length.
//!
//! **Problem**: boundaries and packs depend on lengths only through their counts; a histogram of 10^8 samples is small.
//!
//! **Method**: where the longest sample is short beside the number of samples (all token data), one counter a length,
//! in four interleaved lanes: lengths that come sorted would otherwise increment one counter again and again, each
//! increment waiting for the store of the one before (4 to 5 cycles instead of 1). Where lengths are sparse (up to
//! 2^31), sort chunks, run-length encode them and merge.
//!
//! **Cost**: dense about 0.5 ns a sample plus one pass for the maximum; at most 64 MiB. Sparse about 15 ns a sample;
//! 16 MiB plus 24 bytes a distinct length.

use crate::{Error, Interrupt, Length, Result};

/// Up to this many counters lengths are counted densely whatever the number of samples.
const ALWAYS_DENSE: usize = 1 << 16;
/// From there on dense counters must not outnumber the samples by more than this.
const COUNTERS_PER_SAMPLE: usize = 4;
/// No more dense counters than this: 64 MiB.
const NEVER_DENSE: usize = 1 << 24;
/// Up to this many counters four lanes of them fit a second-level cache; above, one lane is faster.
const FOUR_LANES: usize = 1 << 15;
/// Samples that a 32-bit counter can take without wrapping.
const COUNTER_LIMIT: usize = 1 << 31;
/// Samples between two looks at the interrupt.
const CHUNK: usize = 1 << 22;

/// Distinct lengths in ascending order, and the number of samples of each (all above zero).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    lengths: Vec<u32>,
    counts: Vec<u64>,
}

impl Histogram {
    /// Count `lengths`.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn of<T: Length>(lengths: &[T], interrupt: Interrupt<'_>) -> Result<Self> {
        let Some(&first) = lengths.first() else { return Ok(Self::default()) };
        // `Iterator::max` keeps the last of equal ones, which defeats vectors.
        let longest: u32 = lengths.iter().fold(first, |longest, &length| longest.max(length)).into();
        let size = longest as usize + 1;
        let limit = lengths.len().saturating_mul(COUNTERS_PER_SAMPLE).clamp(ALWAYS_DENSE, NEVER_DENSE);
        let mut all = Self::default();
        for part in lengths.chunks(COUNTER_LIMIT) {
            let counted = match size {
                _ if size > limit => sparse(part, interrupt)?,
                _ if size > FOUR_LANES => dense::<T, 1>(part, size, interrupt)?,
                _ => dense::<T, 4>(part, size, interrupt)?,
            };
            all = if all.lengths.is_empty() { counted } else { all.merge(&counted) };
        }
        Ok(all)
    }

    /// A histogram that was counted elsewhere.
    ///
    /// # Errors
    /// [`Error::Invalid`]: different sizes, lengths not strictly ascending, or 2^62 samples and more. Lengths without
    /// samples are left out.
    pub fn from_counts(lengths: &[u32], counts: &[u64]) -> Result<Self> {
        if lengths.len() != counts.len() {
            return Err(Error::invalid(format!(
                "counts has {} values, but lengths has {}; give one count a distinct length",
                counts.len(),
                lengths.len()
            )));
        }
        // Counted before one is sought, so that the compiler can look at several pairs at once.
        let falls = |pair: &&[u32]| pair[0] >= pair[1];
        if lengths.windows(2).filter(falls).count() > 0 {
            let i = lengths.windows(2).position(|pair| falls(&pair)).unwrap_or_default();
            return Err(Error::invalid(format!(
                "lengths[{}] is {}, but lengths[{i}] is {}; the lengths of a histogram must ascend, each once",
                i + 1,
                lengths[i + 1],
                lengths[i]
            )));
        }
        let samples = counts.iter().try_fold(0_u64, |samples, &count| samples.checked_add(count));
        if samples.is_none_or(|samples| samples >= 1 << 62) {
            return Err(Error::invalid("counts sum to more than the limit of 2^62 samples"));
        }
        if !counts.contains(&0) {
            return Ok(Self { lengths: lengths.to_vec(), counts: counts.to_vec() });
        }
        Ok(lengths.iter().copied().zip(counts.iter().copied()).filter(|&(_, count)| count > 0).collect())
    }

    /// The distinct lengths, ascending.
    #[must_use]
    pub fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// The number of samples of each distinct length.
    #[must_use]
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// (length, count), ascending.
    #[must_use]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, u64)> + '_ {
        self.lengths.iter().copied().zip(self.counts.iter().copied())
    }

    /// The number of distinct lengths.
    #[must_use]
    pub fn distinct(&self) -> usize {
        self.lengths.len()
    }

    /// All samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// All real tokens.
    #[must_use]
    pub fn tokens(&self) -> u128 {
        self.iter().map(|(length, count)| u128::from(length) * u128::from(count)).sum()
    }

    /// The longest sample, if there is one.
    #[must_use]
    pub fn longest(&self) -> Option<u32> {
        self.lengths.last().copied()
    }

    /// The two vectors, for a caller that hands them on.
    #[must_use]
    pub fn into_parts(self) -> (Vec<u32>, Vec<u64>) {
        (self.lengths, self.counts)
    }

    /// The counts of two sets of samples together.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        let (mut left, mut right) = (self.iter().peekable(), other.iter().peekable());
        let mut merged = Self::default();
        loop {
            let (length, count) = match (left.peek(), right.peek()) {
                (Some(&(a, x)), Some(&(b, y))) if a == b => {
                    left.next();
                    right.next();
                    (a, x + y)
                }
                (Some(&(a, x)), Some(&(b, _))) if a < b => {
                    left.next();
                    (a, x)
                }
                (_, Some(&pair)) => {
                    right.next();
                    pair
                }
                (Some(&pair), None) => {
                    left.next();
                    pair
                }
                (None, None) => return merged,
            };
            merged.lengths.push(length);
            merged.counts.push(count);
        }
    }
}

impl FromIterator<(u32, u64)> for Histogram {
    /// From (length, count) in ascending order of lengths.
    fn from_iter<I: IntoIterator<Item = (u32, u64)>>(pairs: I) -> Self {
        let (lengths, counts) = pairs.into_iter().unzip();
        Self { lengths, counts }
    }
}

/// One counter a length; `lengths` are all below `size`, and fewer than 2^32.
fn dense<T: Length, const LANES: usize>(lengths: &[T], size: usize, interrupt: Interrupt<'_>) -> Result<Histogram> {
    let mut counters = vec![[0_u32; LANES]; size];
    for chunk in lengths.chunks(CHUNK) {
        interrupt.check()?;
        let mut groups = chunk.chunks_exact(LANES);
        for group in &mut groups {
            for (lane, &length) in group.iter().enumerate() {
                counters[length.into() as usize][lane] += 1;
            }
        }
        for &length in groups.remainder() {
            counters[length.into() as usize][0] += 1;
        }
    }
    let counts = counters.iter().map(|lanes| lanes.iter().map(|&count| u64::from(count)).sum::<u64>());
    Ok((0..).zip(counts).filter(|&(_, count)| count > 0).collect())
}

/// Sorted and run-length encoded chunk by chunk. Like a binary counter, equal-sized results merge first.
fn sparse<T: Length>(lengths: &[T], interrupt: Interrupt<'_>) -> Result<Histogram> {
    let mut pending: Vec<(u32, Histogram)> = Vec::new();
    for chunk in lengths.chunks(CHUNK) {
        interrupt.check()?;
        let mut sorted: Vec<u32> = chunk.iter().map(|&length| length.into()).collect();
        sorted.sort_unstable();
        let counted: Histogram = sorted.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect();
        let mut merged = (0_u32, counted);
        while let Some((level, earlier)) = pending.pop() {
            if level != merged.0 {
                pending.push((level, earlier));
                break;
            }
            merged = (level + 1, earlier.merge(&merged.1));
        }
        pending.push(merged);
    }
    Ok(pending.into_iter().rev().fold(Histogram::default(), |all, (_, part)| all.merge(&part)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// The textbook: a map from length to count.
    fn naive<T: Length>(lengths: &[T]) -> Histogram {
        let mut counts = BTreeMap::new();
        for &length in lengths {
            *counts.entry(length.into()).or_insert(0_u64) += 1;
        }
        counts.into_iter().collect()
    }

    #[test]
    fn empty_has_nothing() {
        let histogram = Histogram::of::<u16>(&[], Interrupt::NEVER).unwrap();
        assert_eq!((histogram.samples(), histogram.longest()), (0, None));
    }

    #[test]
    fn chunks_of_sparse_lengths_merge() {
        let lengths: Vec<u32> =
            (0..CHUNK as u32 * 2 + 17).map(|i| i.wrapping_mul(2_654_435_761) % 500 * 4_000_000 + 7).collect();
        let histogram = Histogram::of(&lengths, Interrupt::NEVER).unwrap();
        assert_eq!(histogram, naive(&lengths));
        assert!(histogram.longest().unwrap() as usize > NEVER_DENSE);
    }

    #[test]
    fn counts_from_elsewhere_are_checked() {
        let kept = Histogram::from_counts(&[1, 5, 9], &[2, 0, 1]).unwrap();
        assert_eq!(kept.iter().collect::<Vec<_>>(), [(1, 2), (9, 1)]);
        for (lengths, counts) in
            [(&[1, 1][..], &[1, 1][..]), (&[2, 1], &[1, 1]), (&[1], &[1, 2]), (&[1, 2], &[u64::MAX, 1])]
        {
            assert!(matches!(Histogram::from_counts(lengths, counts), Err(Error::Invalid(_))));
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_map(
            narrow in prop::collection::vec(any::<u16>(), 0..300),
            short in prop::collection::vec(0_u32..40_000, 0..300),
            wide in prop::collection::vec(0_u32..=i32::MAX as u32, 0..300),
        ) {
            prop_assert_eq!(Histogram::of(&narrow, Interrupt::NEVER).unwrap(), naive(&narrow));
            prop_assert_eq!(Histogram::of(&short, Interrupt::NEVER).unwrap(), naive(&short));
            let both = Histogram::of(&wide, Interrupt::NEVER).unwrap();
            prop_assert_eq!(&both, &naive(&wide));
            let together = Histogram::of(&short, Interrupt::NEVER).unwrap().merge(&both);
            prop_assert_eq!(together, naive(&[short, wide].concat()));
        }
    }
}
