//! The two integer types that lengths are stored in.

/// The longest sample, in tokens: every length and every padded length fits a signed 32-bit integer.
pub const MAX_LENGTH: u32 = i32::MAX as u32;

/// A length as it lies in memory: `u16` or `u32`, in tokens.
///
/// Everything that scans lengths is generic over it, so that the narrow type halves the memory traffic.
pub trait Length: Copy + Ord + Into<u32> + Send + Sync + sealed::Sealed {
    /// A length that this type is known to hold.
    fn new(tokens: u32) -> Self;
    /// This length where it is below 2^16, else 2^16 - 1.
    fn saturated(self) -> u16;
}

impl Length for u16 {
    #[inline]
    fn new(tokens: u32) -> Self {
        tokens as Self
    }
    #[inline]
    fn saturated(self) -> u16 {
        self
    }
}

impl Length for u32 {
    #[inline]
    fn new(tokens: u32) -> Self {
        tokens
    }
    #[inline]
    fn saturated(self) -> u16 {
        self.min(0xFFFF) as u16
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u16 {}
    impl Sealed for u32 {}
}
