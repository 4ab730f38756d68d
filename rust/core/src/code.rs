//! A sample's number and its tokens, in one small integer.
//!
//! Problem: on their way to random bins samples cost what is written of them, and tokens must travel along, as looking them up
//! afterwards misses the cache every time. Method: the lowest bits of the tokens that tell those of one bucket apart take the low
//! bits of an integer, and the sample's number what is left above them. The bits of the number that are cut off need not be
//! written: numbers ascend in a bin, so that it is enough to remember where each span, a stretch of numbers that differ in
//! their low bits only, begins in it. That is 4 bytes a sample instead of 8.
//! Wrong for: spans so short that a bin has few samples of each; see `scatter`.

use crate::Index;
use crate::raw::{Roomy, Work, widest};

/// How samples are packed: the low `bits` belong to the tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Code {
    bits: u32,
}

/// A sample and its tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sample<I> {
    pub(crate) index: I,
    pub(crate) tokens: u32,
}

impl Code {
    /// For so many bits of tokens, at most 32; 0 where nothing goes with samples.
    pub(crate) fn new(bits: u32) -> Self {
        Self { bits }
    }

    /// Whether anything goes with samples.
    pub(crate) fn tokens(self) -> bool {
        self.bits > 0
    }

    /// How many numbers a span has: a power of two.
    pub(crate) fn span<E: Index>(self) -> u64 {
        1 << E::BITS.saturating_sub(self.bits).min(u64::BITS - 1)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    pub(crate) fn pack<E: Index>(self, number: usize, tokens: u32) -> E {
        (E::new(number) << self.bits) | E::new((tokens & self.mask()) as usize)
    }

    /// A sample of the span whose first number is `first`. Its tokens are `low` at least, and less than 2^bits more.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    pub(crate) fn unpack<E: Index, I: Index>(self, packed: E, first: usize, low: u32) -> Sample<I> {
        let above = (packed.position() as u32).wrapping_sub(low) & self.mask();
        Sample { index: I::new(first) | I::new((packed >> self.bits).position()), tokens: low + above }
    }

    /// Make samples of one span of what lies in `places`, and write their tokens, if they carry any.
    pub(crate) fn unpack_in_place<I: Index>(self, span: u64, low: u32, places: &mut [I], tokens: &mut [u32]) {
        if self.bits > 0 {
            widest(UnpackInPlace { code: self, first: self.first::<I>(span), low, places, tokens });
        }
    }

    /// Reads the samples of one bin of some lanes, one after the other.
    pub(crate) fn reader<E: Index>(
        self,
        lanes: &[Roomy<E>],
        bin: usize,
    ) -> Reader<'_, E, impl Iterator<Item = (usize, &[E])>> {
        let segments = lanes.iter().flat_map(move |lane| lane.segments(bin));
        let segments = segments.map(move |(span, packed)| (self.first::<E>(span), packed));
        Reader { first: 0, packed: &[], segments }
    }

    fn first<E: Index>(self, span: u64) -> usize {
        (span * self.span::<E>()) as usize
    }

    fn mask(self) -> u32 {
        ((1_u64 << self.bits) - 1) as u32
    }
}

struct UnpackInPlace<'a, I> {
    code: Code,
    first: usize,
    low: u32,
    places: &'a mut [I],
    tokens: &'a mut [u32],
}

impl<I: Index> Work for UnpackInPlace<'_, I> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn run(self) {
        let Self { code, first, low, places, tokens } = self;
        for (place, tokens) in places.iter_mut().zip(tokens) {
            Sample { index: *place, tokens: *tokens } = code.unpack(*place, first, low);
        }
    }
}

/// The samples of a bin that are still to be read: those of one span, and of the spans after it.
pub(crate) struct Reader<'a, E, S> {
    first: usize,
    packed: &'a [E],
    segments: S,
}

impl<'a, E: Copy, S: Iterator<Item = (usize, &'a [E])>> Reader<'a, E, S> {
    /// What `make` gives for the next samples, as many as there is room for, or all that are left. It is told the first number of
    /// a sample's span and how the sample is packed.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    pub(crate) fn read<T>(&mut self, mut items: &mut [T], make: impl Fn(usize, E) -> T) {
        loop {
            let (now, later) = self.packed.split_at(items.len().min(self.packed.len()));
            let (own, rest) = items.split_at_mut(now.len());
            for (item, &packed) in own.iter_mut().zip(now) {
                *item = make(self.first, packed);
            }
            (items, self.packed) = (rest, later);
            if items.is_empty() {
                return;
            }
            let Some(segment) = self.segments.next() else { return };
            (self.first, self.packed) = segment;
        }
    }
}
