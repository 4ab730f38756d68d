//! Samples scattered to bins in one pass: bins have room to spare, so that nobody has to count first.

use std::ops::Range;

use super::digits::{BLOCK, CHUNK, Draw, STREAM_BINS, STREAM_BYTES};
use super::lines::Lines;
use super::vector::{CACHE_LINE, Work, prefetch, widest};
use crate::{Interrupt, Result};

/// Who says what goes to the bins.
pub(crate) trait Elements: Draw {
    /// What that is.
    type Element: Copy + Default;

    /// What can be said of the positions from `start` on in vectors, ahead of the loop that stores it; anything past the last
    /// position. Must be inlined always.
    fn elements(self, start: usize, elements: &mut [Self::Element; BLOCK]);

    /// The element of a position, from what was said of it. Must be inlined always.
    fn element(self, position: usize, said: Self::Element) -> Self::Element;
}

/// Elements by bin, with room between the bins.
pub(crate) struct Roomy<E> {
    /// All of them; what lies in no bin has no meaning.
    pub(crate) elements: Vec<E>,
    /// Where each bin is, in ascending order.
    pub(crate) bins: Vec<Range<usize>>,
    /// Which span of positions the first element is of.
    first: u64,
    /// For every further span, where each bin's elements of it begin.
    marks: Vec<usize>,
}

impl<E> Roomy<E> {
    /// The number of the span that all positions are of, if they are of one.
    pub(crate) fn only_span(&self) -> Option<u64> {
        self.marks.is_empty().then_some(self.first)
    }

    /// The elements of one bin: those of every span of positions, and the span's number.
    pub(crate) fn segments(&self, bin: usize) -> impl Iterator<Item = (u64, &[E])> {
        let Range { start, end } = self.bins[bin];
        let marks = self.marks.chunks_exact(self.bins.len().max(1)).map(move |marks| marks[bin]);
        let stops = marks.chain(std::iter::once(end));
        stops.zip(self.first..).scan(start, |start, (stop, span)| {
            let segment = std::mem::replace(start, stop)..stop;
            Some((span, &self.elements[segment]))
        })
    }
}

/// What `draw` gives for every one of `positions`, which start at a multiple of [`BLOCK`]: by bin, in ascending order of
/// positions inside each, in an array from `memory`, which is told how long it should be. `None` where a bin would hold more
/// than its `rooms` say. Where each of the spans, `span` positions long, begins in every bin is remembered; spans are whole
/// blocks.
///
/// Counting first takes a pass of its own, 1.3 ns a sample: twice what drawing the bins does.
///
/// # Errors
/// Interrupted.
pub(crate) fn scatter_roomy<D: Elements>(
    positions: Range<usize>,
    rooms: &[usize],
    span: u64,
    draw: D,
    memory: impl FnOnce(usize) -> Vec<D::Element>,
    interrupt: Interrupt<'_>,
) -> Result<Option<Roomy<D::Element>>> {
    let ends: Vec<usize> = rooms
        .iter()
        .scan(0, |end, room| {
            *end += room;
            Some(*end)
        })
        .collect();
    let starts: Vec<usize> = std::iter::once(0).chain(ends.iter().copied()).take(ends.len()).collect();
    let total = ends.last().copied().unwrap_or(0);
    // What does not fit the last room finds a place before that is noticed.
    let room = total + CHUNK.min(positions.len());
    let mut elements = memory(room);
    elements.resize(room, D::Element::default());
    let target = elements.as_mut_ptr();
    let size = size_of::<D::Element>();
    let streamed = Lines::fit(target) && (size * positions.len() > STREAM_BYTES || rooms.len() > STREAM_BINS);
    let (first, mut marks) = (positions.start as u64 / span, Vec::new());
    let (mut next, mut fits) = (starts.clone(), Ok(true));
    let scatter = Scatter {
        positions,
        span,
        next: &mut next,
        ends: &ends,
        marks: &mut marks,
        draw,
        interrupt,
        target,
        fits: &mut fits,
    };
    if streamed {
        widest(Streamed(scatter));
    } else {
        widest(Plain(scatter));
    }
    if !fits? {
        return Ok(None);
    }
    let bins = starts.into_iter().zip(next).map(|(start, next)| start..next).collect();
    Ok(Some(Roomy { elements, bins, first, marks }))
}

/// Invariant: room b is the places from its start to `ends[b]`; rooms follow each other in the memory at `target`, after which
/// there is room for a chunk of elements, or for all if they are fewer; before a chunk, `next[b]` is in room b, or its end, and
/// what lies before it in the room is written. So every place is within the memory, though perhaps in another room: then
/// `fits` says so in the end.
struct Scatter<'a, D: Elements> {
    positions: Range<usize>,
    span: u64,
    next: &'a mut [usize],
    ends: &'a [usize],
    marks: &'a mut Vec<usize>,
    draw: D,
    interrupt: Interrupt<'a>,
    target: *mut D::Element,
    fits: &'a mut Result<bool>,
}

/// With plain stores.
struct Plain<'a, D: Elements>(Scatter<'a, D>);

impl<D: Elements> Work for Plain<'_, D> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn run(self) {
        let target = self.0.target;
        let ahead = CACHE_LINE / size_of::<D::Element>().max(1);
        self.0.run(|_, place, element| {
            // Processors follow a few streams of stores by themselves, not as many as there are bins.
            prefetch(target.wrapping_add(place + ahead));
            // SAFETY: places are within the memory at `target`.
            unsafe { target.add(place).write(element) };
        });
    }
}

/// By whole lines, past the cache.
struct Streamed<'a, D: Elements>(Scatter<'a, D>);

impl<D: Elements> Work for Streamed<'_, D> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn run(self) {
        // SAFETY: places are within the memory at `target`.
        let mut lines = unsafe { Lines::new(self.0.target, self.0.next.to_vec()) };
        // SAFETY: `bin` is one of the bins, and its places follow each other from its start. If they leave its room, nobody
        // looks at any of them.
        let next = self.0.run(|bin, place, element| unsafe { lines.put(bin, place, element) });
        lines.finish(next.iter().copied());
    }
}

impl<'a, D: Elements> Scatter<'a, D> {
    /// Have every element `put` at its place in its bin's room, and remember whether all found one. The next places come back.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn run(self, mut put: impl FnMut(usize, usize, D::Element)) -> &'a [usize] {
        let Self { positions, span, next, ends, marks, draw, interrupt, fits, .. } = self;
        let bins = next.len();
        let (mut drawn, mut elements) = ([0; BLOCK], [D::Element::default(); BLOCK]);
        for start in positions.clone().step_by(BLOCK) {
            // Looking at rooms once a chunk rather than with every element saves 5 % of the time.
            if (start - positions.start).is_multiple_of(CHUNK) {
                *fits = interrupt.check().map(|()| fit(next, ends));
                if *fits != Ok(true) {
                    return next;
                }
            }
            if start > positions.start && (start as u64).is_multiple_of(span) {
                marks.extend_from_slice(next);
            }
            draw.bins(start, &mut drawn);
            draw.elements(start, &mut elements);
            let size = BLOCK.min(positions.end - start);
            let mut last = 0;
            for &bin in &drawn[..size] {
                last = bin.max(last);
            }
            if usize::from(last) >= bins {
                *fits = Ok(false);
                return next;
            }
            for way in 0..size {
                let bin = usize::from(drawn[way]);
                // SAFETY: every drawn bin is below the number of bins, as just checked.
                let next = unsafe { next.get_unchecked_mut(bin) };
                let place = *next;
                *next = place + 1;
                put(bin, place, draw.element(start + way, elements[way]));
            }
        }
        *fits = Ok(fit(next, ends));
        next
    }
}

/// Whether no bin has left its room.
fn fit(next: &[usize], ends: &[usize]) -> bool {
    next.iter().zip(ends).all(|(next, end)| next <= end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bin for every position below a number of bins, and what `make` gives for the position.
    #[derive(Clone, Copy)]
    struct Mixed<M>(usize, M);

    impl<M: Copy + Sync> Draw for Mixed<M> {
        fn bins(self, start: usize, bins: &mut [u16; BLOCK]) {
            *bins = std::array::from_fn(|i| ((start + i) * 7919 % self.0) as u16);
        }
    }

    impl<E: Copy + Default, M: Fn(usize) -> E + Copy + Sync> Elements for Mixed<M> {
        type Element = E;

        fn elements(self, start: usize, elements: &mut [E; BLOCK]) {
            *elements = std::array::from_fn(|i| self.1(start + i));
        }

        fn element(self, _: usize, said: E) -> E {
            said
        }
    }

    const WHOLE: u64 = 1 << 32;

    fn check<E>(positions: Range<usize>, bins: usize, make: impl Fn(usize) -> E + Copy + Sync)
    where
        E: Copy + Default + PartialEq + std::fmt::Debug,
    {
        let own = |bin| positions.clone().filter(move |&position| position * 7919 % bins == bin);
        let counts: Vec<usize> = (0..bins).map(|bin| own(bin).count()).collect();
        let draw = Mixed(bins, make);
        // Whatever it gives is made long enough.
        let memory = |len| vec![make(7); len / 2];
        for (spare, span) in [(0, WHOLE), (1, 1024), (100, 4096)] {
            let rooms: Vec<usize> = counts.iter().map(|count| count + spare).collect();
            let scattered =
                scatter_roomy(positions.clone(), &rooms, span, draw, memory, Interrupt::NEVER).unwrap().unwrap();
            assert!(scattered.elements.len() >= positions.len() + bins * spare);
            assert_eq!(scattered.only_span().is_some(), positions.len() <= 1 || span == WHOLE || positions.end <= 1024);
            for bin in 0..bins {
                let expected: Vec<(u64, E)> = own(bin).map(|at| (at as u64 / span, make(at))).collect();
                let found = scattered.segments(bin).flat_map(|(span, own)| own.iter().map(move |&own| (span, own)));
                assert_eq!(found.collect::<Vec<_>>(), expected);
                assert_eq!(scattered.bins[bin].len(), expected.len());
            }
        }
        if let Some(full) = counts.iter().position(|&count| count > 0) {
            let mut rooms = counts.clone();
            rooms[full] -= 1;
            assert!(scatter_roomy(positions.clone(), &rooms, WHOLE, draw, memory, Interrupt::NEVER).unwrap().is_none());
            assert!(
                scatter_roomy(positions, &counts[..full], WHOLE, draw, memory, Interrupt::NEVER).unwrap().is_none()
            );
        }
    }

    #[test]
    fn bins_hold_their_positions_in_order_and_know_where_spans_begin() {
        for (positions, bins) in [(0..0, 1), (0..1, 1), (0..5, 3), (0..1000, 7), (1024..5051, 11), (2048..50_003, 700)]
        {
            check(positions.clone(), bins, |position| [position as u32]);
            check(positions.clone(), bins, |position| [position as u32, 5]);
            check(positions, bins, |position| [position as u64, 7]);
        }
    }

    #[test]
    fn a_caller_that_wants_to_stop_is_heard() {
        let stop = || false;
        let draw = Mixed(1, |position| position);
        let scattered = scatter_roomy(0..9, &[9], WHOLE, draw, |len| vec![0; len], Interrupt::new(&stop));
        assert_eq!(scattered.err(), Some(crate::Error::Interrupted));
    }
}
