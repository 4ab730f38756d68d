//! Sample indices are as small as they can be.

/// A sample's index in a plan: `u32`, or `u64` past 2^32 samples.
pub trait Index: Copy + Default + Send + Sync + 'static {
    /// From a position.
    fn new(position: usize) -> Self;
    /// Back to the position.
    fn position(self) -> usize;
}

impl Index for u32 {
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
    #[inline]
    fn new(position: usize) -> Self {
        position as Self
    }
    #[inline]
    fn position(self) -> usize {
        self as usize
    }
}
