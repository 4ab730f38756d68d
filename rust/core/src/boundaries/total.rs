//! The arithmetic of total costs: 64 bits where they are enough, else 128.

use std::ops::{Add, Sub};

/// A sum of costs, doubled (see [`super::search`] for why), or a charge per boundary.
pub(super) trait Total: Copy + Ord + Add<Output = Self> + Sub<Output = Self> + Into<i128> + Send {
    const ZERO: Self;

    /// `samples` times `cost`. The caller knows that it fits.
    fn of(samples: i64, cost: u64) -> Self;

    /// From a value that the caller knows to fit.
    fn from_i128(value: i128) -> Self;

    /// Whether `rise / run <= other_rise / other_run`, exactly, for rises not negative and runs above zero.
    fn no_steeper(rise: Self, run: i64, other_rise: Self, other_run: i64) -> bool;
}

impl Total for i64 {
    const ZERO: Self = 0;

    #[inline]
    fn of(samples: i64, cost: u64) -> Self {
        samples * cost as i64
    }

    fn from_i128(value: i128) -> Self {
        value as i64
    }

    #[inline]
    fn no_steeper(rise: Self, run: i64, other_rise: Self, other_run: i64) -> bool {
        i128::from(rise) * i128::from(other_run) <= i128::from(other_rise) * i128::from(run)
    }
}

impl Total for i128 {
    const ZERO: Self = 0;

    #[inline]
    fn of(samples: i64, cost: u64) -> Self {
        Self::from(samples) * Self::from(cost)
    }

    fn from_i128(value: i128) -> Self {
        value
    }

    #[inline]
    fn no_steeper(rise: Self, run: i64, other_rise: Self, other_run: i64) -> bool {
        wide_product(rise as u128, other_run as u64) <= wide_product(other_rise as u128, run as u64)
    }
}

/// The 192-bit product, as (all but the lowest 64 bits, the lowest 64 bits).
fn wide_product(a: u128, b: u64) -> (u128, u64) {
    let b = u128::from(b);
    let low = (a & u128::from(u64::MAX)) * b;
    ((a >> 64) * b + (low >> 64), low as u64)
}
