//! Which bucket a length belongs to.
//!
//! Bucket b holds lengths in (boundaries[b-1], boundaries[b]]; one more bucket, the last, holds what is longer than every
//! boundary.

use crate::{Error, MAX_LENGTH, Result};

/// More buckets than this are refused: every bucket needs a bin of its own.
pub(crate) const MAX_BUCKETS: usize = 1 << 15;

/// Inclusive upper bounds, increasing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    bounds: Vec<u32>,
}

impl Buckets {
    /// # Errors
    /// [`Error::Invalid`] unless the bounds are increasing, positive, at most [`MAX_LENGTH`], and not too many.
    pub fn new(bounds: Vec<u32>) -> Result<Self> {
        if bounds.is_empty() || bounds.len() > MAX_BUCKETS {
            return Err(Error::invalid(format!(
                "boundaries has {} bounds, but there must be 1 to {MAX_BUCKETS}",
                bounds.len()
            )));
        }
        if bounds[0] == 0 {
            return Err(Error::invalid("boundaries[0] is 0, but an upper bound must be at least 1 token"));
        }
        for (i, pair) in bounds.windows(2).enumerate() {
            if pair[1] <= pair[0] {
                return Err(Error::invalid(format!(
                    "boundaries[{}] is {}, but must be greater than boundaries[{i}]={}; sort them and drop duplicates",
                    i + 1,
                    pair[1],
                    pair[0]
                )));
            }
        }
        if let Some(&last) = bounds.last().filter(|&&last| last > MAX_LENGTH) {
            return Err(Error::invalid(format!("boundaries[-1] is {last}, but the longest length is {MAX_LENGTH}")));
        }
        Ok(Self { bounds })
    }

    /// The bounds.
    #[must_use]
    pub fn bounds(&self) -> &[u32] {
        &self.bounds
    }

    /// The longest length that a bucket holds.
    #[must_use]
    pub fn longest(&self) -> u32 {
        self.bounds.last().copied().unwrap_or(0)
    }

    /// The bucket of `length`; `bounds().len()` when it is longer than every bound.
    #[inline]
    #[must_use]
    pub fn of(&self, length: u32) -> usize {
        self.bounds.partition_point(|&bound| bound < length)
    }
}
