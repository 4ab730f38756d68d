//! Sample indices are as small as they can be.

use std::ops::{BitAnd, BitOr, Shl, Shr};

/// A sample's index in a plan: `u32`, or `u64` past 2^32 samples.
pub trait Index:
    Copy
    + Default
    + Send
    + Sync
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + 'static
{
    /// How many bits it has.
    const BITS: u32;
    /// From the low bits of a position.
    fn new(position: usize) -> Self;
    /// Back to the position.
    fn position(self) -> usize;
}

impl Index for u32 {
    const BITS: u32 = Self::BITS;
    #[inline]
    fn new(position: usize) -> Self {
        position as Self
    }
    #[inline]
    fn position(self) -> usize {
        self as usize
    }
}

impl Index for u64 {
    const BITS: u32 = Self::BITS;
    #[inline]
    fn new(position: usize) -> Self {
        position as Self
    }
    #[inline]
    fn position(self) -> usize {
        self as usize
    }
}
