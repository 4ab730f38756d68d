//! What a padded batch may hold: the one place where the budget is decided.

use crate::{Error, MAX_LENGTH, Result};

/// The limits of a batch of samples padded to one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most padded tokens in a batch, after rounding.
    pub max_tokens: u64,
    /// The most samples in a batch.
    pub max_samples: u32,
    /// Padded lengths are multiples of this.
    pub multiple_of: u32,
    /// Batch sizes are multiples of this, or less than it.
    pub samples_multiple_of: u32,
}

impl Limits {
    /// # Errors
    /// [`Error::Invalid`] for a limit that no batch can satisfy.
    pub fn validate(&self) -> Result<()> {
        let positive = [
            ("max_tokens", self.max_tokens),
            ("max_samples", u64::from(self.max_samples)),
            ("multiple_of", u64::from(self.multiple_of)),
            ("samples_multiple_of", u64::from(self.samples_multiple_of)),
        ];
        for (name, value) in positive {
            if value == 0 {
                return Err(Error::invalid(format!("{name} is 0, but must be at least 1")));
            }
        }
        if u64::from(self.multiple_of) > self.max_tokens || self.multiple_of > MAX_LENGTH {
            return Err(Error::invalid(format!(
                "multiple_of is {}, but a batch holds max_tokens={}; no sample fits",
                self.multiple_of, self.max_tokens
            )));
        }
        if self.samples_multiple_of > self.max_samples {
            return Err(Error::invalid(format!(
                "samples_multiple_of is {}, but a batch holds max_samples={}",
                self.samples_multiple_of, self.max_samples
            )));
        }
        Ok(())
    }

    /// Fixed shapes need every bound, rounded up, to fit the budget, and to be a length.
    ///
    /// # Errors
    /// [`Error::Invalid`] that names the first bound that is too long.
    pub(crate) fn check_shapes(&self, boundaries: &[u32]) -> Result<()> {
        for (i, &bound) in boundaries.iter().enumerate() {
            let padded = u64::from(self.padded(bound));
            let rounded =
                || format!("boundaries[{i}] is {bound} ({padded} after rounding to multiple_of={})", self.multiple_of);
            if padded > self.max_tokens {
                return Err(Error::invalid(format!(
                    "{}, but a batch holds max_tokens={}; raise max_tokens or use pad_to=\"longest\"",
                    rounded(),
                    self.max_tokens
                )));
            }
            if padded > u64::from(MAX_LENGTH) {
                let rounded = rounded();
                return Err(Error::invalid(format!(
                    "{rounded}, but the longest length is {MAX_LENGTH}; lower the bound"
                )));
            }
        }
        Ok(())
    }

    /// What a sample of `length` tokens occupies when it is the longest of its batch: at least one position, so that a
    /// sample without tokens still has a row.
    #[inline]
    #[must_use]
    pub fn padded(&self, length: u32) -> u32 {
        // A division saved: batches are cut at this speed.
        if self.multiple_of == 1 { length.max(1) } else { length.max(1).next_multiple_of(self.multiple_of) }
    }

    /// The longest length that fits a batch on its own.
    #[must_use]
    pub fn longest(&self) -> u32 {
        let longest = self.max_tokens.min(u64::from(MAX_LENGTH)) as u32;
        longest - longest % self.multiple_of
    }

    /// How many samples of one padded length a full batch holds; at least one.
    #[inline]
    #[must_use]
    pub fn rows(&self, padded: u32) -> u32 {
        let rows = (self.max_tokens / u64::from(padded.max(1))).clamp(1, u64::from(self.max_samples)) as u32;
        self.round_rows(rows)
    }

    /// `rows`, or the largest multiple of `samples_multiple_of` below it if there is one.
    #[inline]
    #[must_use]
    pub fn round_rows(&self, rows: u32) -> u32 {
        let multiple = self.samples_multiple_of;
        if multiple == 1 || rows < multiple { rows } else { rows - rows % multiple }
    }
}
