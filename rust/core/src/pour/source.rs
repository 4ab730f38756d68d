//! Where bins come from, and where their samples go.

use std::ops::Range;

use super::Pour;
use crate::Index;
use crate::code::{Reader, Sample};
use crate::raw::{Roomy, Work, widest};
use crate::shuffle::{Bin, ROUND, read_first, shuffle_bin};

/// Where bins come from, and where their samples go.
pub(super) trait Source<I> {
    /// Shuffle a bin: its samples to the places from `to` on, and what they carry to `tokens`.
    fn shuffle(&mut self, pour: &Pour<'_>, bin: usize, to: Range<usize>, tokens: &mut [u32]);

    /// Where samples go.
    fn places(&self) -> &[I];
}

/// From one lane to the front of the same memory.
pub(super) struct InPlace<'a, I> {
    lane: &'a mut Roomy<I>,
    aside: Vec<Sample<I>>,
}

impl<'a, I> InPlace<'a, I> {
    pub(super) fn new(lane: &'a mut Roomy<I>) -> Self {
        Self { lane, aside: Vec::new() }
    }
}

impl<I: Index> Source<I> for InPlace<'_, I> {
    fn shuffle(&mut self, pour: &Pour<'_>, bin: usize, to: Range<usize>, tokens: &mut [u32]) {
        let (lane, code, low, key) = (&mut *self.lane, pour.code, pour.lows[bin], pour.inside.child(bin as u64));
        if let Some(span) = lane.only_span() {
            let from = lane.bins[bin].start;
            shuffle_bin(Moved { memory: &mut lane.elements, from, to: to.clone() }, key);
            code.unpack_in_place(span, low, &mut lane.elements[to], tokens);
        } else {
            self.aside.resize(to.len(), Sample::default());
            let reader = code.reader(std::slice::from_ref(lane), bin);
            let make = |first, packed| code.unpack(packed, first, low);
            shuffle_bin(Copied { reader, make, places: &mut self.aside }, key);
            widest(Part { samples: &self.aside, places: &mut lane.elements[to], tokens });
        }
    }

    fn places(&self) -> &[I] {
        &self.lane.elements
    }
}

/// From several lanes to other memory.
pub(super) struct Gathered<'a, E, I> {
    lanes: &'a [Roomy<E>],
    /// The span of all samples, if it is one, and they are as wide as places.
    span: Option<u64>,
    places: &'a mut [I],
    aside: Vec<Sample<I>>,
}

impl<'a, E: Index, I: Index> Gathered<'a, E, I> {
    pub(super) fn new(lanes: &'a [Roomy<E>], places: &'a mut [I]) -> Self {
        let span = lanes.first().and_then(Roomy::only_span).filter(|_| E::BITS == I::BITS);
        let span = span.filter(|_| lanes.iter().all(|lane| lane.only_span() == span));
        Self { lanes, span, places, aside: Vec::new() }
    }
}

impl<E: Index, I: Index> Source<I> for Gathered<'_, E, I> {
    fn shuffle(&mut self, pour: &Pour<'_>, bin: usize, to: Range<usize>, tokens: &mut [u32]) {
        let (code, low, key) = (pour.code, pour.lows[bin], pour.inside.child(bin as u64));
        let (reader, places) = (code.reader(self.lanes, bin), &mut self.places[to]);
        if let Some(span) = self.span {
            let make = |_, packed: E| I::new(packed.position());
            shuffle_bin(Copied { reader, make, places: &mut *places }, key);
            code.unpack_in_place(span, low, places, tokens);
        } else {
            self.aside.resize(places.len(), Sample::default());
            let make = |first, packed| code.unpack(packed, first, low);
            shuffle_bin(Copied { reader, make, places: &mut self.aside }, key);
            widest(Part { samples: &self.aside, places, tokens });
        }
    }

    fn places(&self) -> &[I] {
        self.places
    }
}

/// Samples that move to the front of their memory as they are.
struct Moved<'a, I> {
    memory: &'a mut [I],
    from: usize,
    to: Range<usize>,
}

impl<I: Index> Bin<I> for Moved<'_, I> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn read(&mut self, done: usize, items: &mut [I; ROUND]) {
        read_first(items, &self.memory[self.from + done..]);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn places(&mut self) -> &mut [I] {
        &mut self.memory[self.to.clone()]
    }
}

/// Samples that go to other memory as what `make` makes of them.
struct Copied<'a, E, S, M, T> {
    reader: Reader<'a, E, S>,
    make: M,
    places: &'a mut [T],
}

impl<'a, E: Index, S: Iterator<Item = (usize, &'a [E])>, M: Fn(usize, E) -> T, T> Bin<T> for Copied<'a, E, S, M, T> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn read(&mut self, _: usize, items: &mut [T; ROUND]) {
        self.reader.read(items, &self.make);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn places(&mut self) -> &mut [T] {
        self.places
    }
}

/// Parts samples from what they carry.
struct Part<'a, I> {
    samples: &'a [Sample<I>],
    places: &'a mut [I],
    tokens: &'a mut [u32],
}

impl<I: Index> Work for Part<'_, I> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn run(self) {
        let Self { samples, places, tokens } = self;
        // Of one length, as the compiler sees now, so that it need not check every position.
        let (places, tokens) = (&mut places[..samples.len()], &mut tokens[..samples.len()]);
        for (i, sample) in samples.iter().enumerate() {
            places[i] = sample.index;
            tokens[i] = sample.tokens;
        }
    }
}
