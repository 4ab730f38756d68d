//! Where a boundary may lie, and how many samples lie at or below it.

use crate::{Error, Histogram, MAX_LENGTH, Result};

/// Ascending bounds that are worth considering, with cumulative counts.
///
/// An optimal boundary is always an occupied length rounded up to the alignment: a bound between two of them pads more
/// and separates nothing. Rounding first is therefore exact, and shrinks every later step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidates {
    bounds: Vec<u32>,
    /// `below[j]`: samples in the first j candidates; one value more than `bounds`.
    below: Vec<i64>,
}

impl Candidates {
    /// The lengths of `histogram` rounded up to `multiple_of`, and the bounds of `include` (which may hold no sample).
    ///
    /// Samples of length zero have no bound of their own: they count to the shortest other sample.
    ///
    /// # Errors
    /// [`Error::Invalid`]: no sample above zero, `multiple_of` zero, a bound of `include` that is zero or not a
    /// multiple, or a bound above [`MAX_LENGTH`].
    pub fn new(histogram: &Histogram, multiple_of: u32, include: &[u32]) -> Result<Self> {
        if multiple_of == 0 {
            return Err(Error::invalid("multiple_of is 0, but the least is 1; 1 leaves every length as it is"));
        }
        let empty = || {
            let what = if histogram.samples() == 0 { "is empty" } else { "has only zeros" };
            Error::invalid(format!("lengths {what}, but boundaries need at least one sample of one token or more"))
        };
        let longest = histogram.longest().filter(|&longest| longest > 0).ok_or_else(empty)?;
        if u64::from(longest).next_multiple_of(multiple_of.into()) > u64::from(MAX_LENGTH) {
            return Err(Error::invalid(format!(
                "multiple_of is {multiple_of}, but rounding the longest sample of {longest} tokens up passes \
                 {MAX_LENGTH}; choose a smaller multiple"
            )));
        }
        let include = checked_include(include, multiple_of)?;
        let most = histogram.distinct() + include.len();
        let mut candidates = Self { bounds: Vec::with_capacity(most), below: Vec::with_capacity(most + 1) };
        candidates.below.push(0);
        let mut extra = include.iter().copied().peekable();
        let (mut samples, mut bound) = (0, 0);
        for (length, count) in histogram.iter() {
            // Most lengths lie at or below the bound of the one before: no division, nothing to store.
            if length > bound {
                if bound > 0 {
                    candidates.put(bound, samples);
                }
                // Where lengths are dense the next multiple is the one after the last: a division saved.
                let next = bound + multiple_of;
                bound = match multiple_of {
                    1 => length,
                    _ if length <= next => next,
                    _ => length.next_multiple_of(multiple_of),
                };
                while let Some(earlier) = extra.next_if(|&extra| extra < bound) {
                    candidates.put(earlier, samples);
                }
            }
            samples += count as i64;
        }
        candidates.put(bound, samples);
        extra.for_each(|later| candidates.put(later, samples));
        Ok(candidates)
    }

    /// Bounds that are known to ascend, and the samples in each bucket.
    pub(super) fn of_buckets(bounds: Vec<u32>, counts: &[u64]) -> Self {
        let sums = counts.iter().scan(0, |sum, &count| {
            *sum += count as i64;
            Some(*sum)
        });
        Self { bounds, below: std::iter::once(0).chain(sums).collect() }
    }

    /// Let `samples` be the number of samples at or below `bound`, which is not below the last one.
    fn put(&mut self, bound: u32, samples: i64) {
        if self.bounds.last() == Some(&bound) {
            self.below.pop();
        } else {
            self.bounds.push(bound);
        }
        self.below.push(samples);
    }

    /// The bounds, ascending; the last one is at or above the longest sample.
    #[must_use]
    pub fn bounds(&self) -> &[u32] {
        &self.bounds
    }

    /// `below[j]`: how many samples the first j candidates hold.
    #[must_use]
    pub fn below(&self) -> &[i64] {
        &self.below
    }

    /// All samples.
    #[must_use]
    pub fn samples(&self) -> i64 {
        self.below.last().copied().unwrap_or_default()
    }
}

/// `include` in ascending order, each once.
fn checked_include(include: &[u32], multiple_of: u32) -> Result<Vec<u32>> {
    for (index, &bound) in include.iter().enumerate() {
        let limit = match bound {
            0 => "a bound is at least 1".to_owned(),
            _ if bound > MAX_LENGTH => format!("the largest bound is {MAX_LENGTH}"),
            _ if bound % multiple_of != 0 => {
                format!("multiple_of is {multiple_of}; use {}", bound.next_multiple_of(multiple_of))
            }
            _ => continue,
        };
        return Err(Error::invalid(format!("include[{index}] is {bound}, but {limit}")));
    }
    let mut sorted = include.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    Ok(sorted)
}
