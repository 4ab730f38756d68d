//! What a sample of two lengths occupies.

use crate::{Error, MAX_LENGTH, Result};

/// Weights are small, so that no sum of tokens wraps.
const MAX_WEIGHT: u32 = (1 << 16) - 1;

/// How both lengths are rounded, and what they count in the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Padding {
    /// Padded lengths are multiples of these.
    pub multiple_of: [u32; 2],
    /// Tokens that one unit of each length counts as.
    pub weights: [u32; 2],
}

impl Padding {
    /// # Errors
    /// [`Error::Invalid`] for numbers that are out of range.
    pub(crate) fn validate(&self) -> Result<()> {
        let most = [("multiple_of", self.multiple_of, MAX_LENGTH), ("weights", self.weights, MAX_WEIGHT)];
        for (name, values, most) in most {
            for (side, value) in values.into_iter().enumerate() {
                if value == 0 || value > most {
                    return Err(Error::invalid(format!("{name}[{side}] is {value}, but must be from 1 to {most}")));
                }
            }
        }
        Ok(())
    }

    /// What a sample of these lengths is padded to, where it is the longest of its batch in both: at least one position each.
    #[inline]
    pub(crate) fn shape(&self, pair: [u32; 2]) -> [u32; 2] {
        let padded = |side: usize| pair[side].max(1).next_multiple_of(self.multiple_of[side]);
        [padded(0), padded(1)]
    }

    /// What a sample of a padded shape counts in the budget.
    #[inline]
    pub(crate) fn tokens(&self, shape: [u32; 2]) -> u64 {
        let counted = |side: usize| u64::from(self.weights[side]) * u64::from(shape[side]);
        counted(0) + counted(1)
    }
}
