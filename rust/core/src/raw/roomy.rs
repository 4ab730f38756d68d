//! Samples scattered to bins in one pass: bins have room to spare, so that nobody has to count first.

use std::ops::Range;

use super::digits::{BLOCK, CHUNK, Draw, STREAM_BINS, STREAM_BYTES};
use super::lines::Lines;
use super::memory::ask_for_large_pages;
use super::vector::{CACHE_LINE, Work, prefetch, widest};
use crate::{Interrupt, Result};

/// Elements by bin, with room between the bins.
pub(crate) struct Roomy<E> {
    /// All of them; what lies in no bin has no meaning.
    pub(crate) elements: Vec<E>,
    /// Where each bin is, in ascending order.
    pub(crate) bins: Vec<Range<usize>>,
}

/// What `make` gives for every one of `positions`, which start at a multiple of four, and its tokens: by bin, in ascending
/// order of positions inside each. `None` where a bin would hold more than its `rooms` say.
///
/// Counting first takes a pass of its own, 1.3 ns a sample: twice what drawing the bins does.
///
/// # Errors
/// Interrupted.
pub(crate) fn scatter_roomy<E: Copy>(
    positions: Range<usize>,
    rooms: &[usize],
    draw: impl Draw,
    make: impl Fn(usize, u32) -> E + Copy,
    interrupt: Interrupt<'_>,
) -> Result<Option<Roomy<E>>> {
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
    let mut elements: Vec<E> = Vec::with_capacity(total + CHUNK.min(positions.len()));
    ask_for_large_pages(elements.as_mut_ptr(), total);
    let target = elements.as_mut_ptr();
    let streamed =
        Lines::<E>::fit(target) && (size_of::<E>() * positions.len() > STREAM_BYTES || rooms.len() > STREAM_BINS);
    let mut next = starts.clone();
    let mut fits = Ok(true);
    let scatter = Scatter { positions, next: &mut next, ends: &ends, draw, make, interrupt, target, fits: &mut fits };
    if streamed {
        widest(Streamed(scatter));
    } else {
        widest(Plain(scatter));
    }
    if !fits? {
        return Ok(None);
    }
    for (&next, &end) in next.iter().zip(&ends) {
        elements.spare_capacity_mut()[next..end].fill(std::mem::MaybeUninit::new(make(0, 0)));
    }
    // SAFETY: the rooms tile 0..total; each is written from its start to `next`, and from there to its end just now.
    unsafe { elements.set_len(total) };
    Ok(Some(Roomy { elements, bins: starts.into_iter().zip(next).map(|(start, next)| start..next).collect() }))
}

/// Invariant: room b is the places from its start to `ends[b]`; rooms follow each other in the memory at `target`, after which
/// there is room for a chunk of elements, or for all if they are fewer; before a chunk, `next[b]` is in room b, or its end, and
/// what lies before it in the room is written. So every place is within the memory, though perhaps in another room: then
/// `fits` says so in the end.
struct Scatter<'a, E, F, M> {
    positions: Range<usize>,
    next: &'a mut [usize],
    ends: &'a [usize],
    draw: F,
    make: M,
    interrupt: Interrupt<'a>,
    target: *mut E,
    fits: &'a mut Result<bool>,
}

/// With plain stores.
struct Plain<'a, E, F, M>(Scatter<'a, E, F, M>);

impl<E: Copy, F: Draw, M: Fn(usize, u32) -> E + Copy> Work for Plain<'_, E, F, M> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn run(self) {
        let target = self.0.target;
        let ahead = CACHE_LINE / size_of::<E>().max(1);
        self.0.run(|_, place, element| {
            // Processors follow a few streams of stores by themselves, not as many as there are bins.
            prefetch(target.wrapping_add(place + ahead));
            // SAFETY: places are within the memory at `target`.
            unsafe { target.add(place).write(element) };
        });
    }
}

/// By whole lines, past the cache.
struct Streamed<'a, E, F, M>(Scatter<'a, E, F, M>);

impl<E: Copy, F: Draw, M: Fn(usize, u32) -> E + Copy> Work for Streamed<'_, E, F, M> {
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

impl<'a, E: Copy, F: Draw, M: Fn(usize, u32) -> E + Copy> Scatter<'a, E, F, M> {
    /// Have every element `put` at its place in its bin's room, and remember whether all found one. The next places come back.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn run(self, mut put: impl FnMut(usize, usize, E)) -> &'a [usize] {
        let Self { positions, next, ends, draw, make, interrupt, fits, .. } = self;
        let bins = next.len();
        let (mut drawn, mut tokens) = ([0; BLOCK], [0; BLOCK]);
        for start in positions.clone().step_by(BLOCK) {
            // Looking at rooms once a chunk rather than with every element saves 5 % of the time.
            if (start - positions.start).is_multiple_of(CHUNK) {
                *fits = interrupt.check().map(|()| fit(next, ends));
                if *fits != Ok(true) {
                    return next;
                }
            }
            draw.block(start, &mut drawn, &mut tokens);
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
                put(bin, place, make(start + way, tokens[way]));
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

    #[derive(Clone, Copy)]
    struct Mixed(usize);

    impl Draw for Mixed {
        fn block(self, start: usize, bins: &mut [u16; BLOCK], tokens: &mut [u32; BLOCK]) {
            *bins = std::array::from_fn(|i| ((start + i) * 7919 % self.0) as u16);
            *tokens = std::array::from_fn(|i| 3 * (start + i) as u32);
        }
    }

    fn check<E: Copy + PartialEq + std::fmt::Debug>(n: usize, bins: usize, make: impl Fn(usize, u32) -> E + Copy) {
        let expected = |bin| {
            (0..n)
                .filter(|&position| position * 7919 % bins == bin)
                .map(|position| make(position, 3 * position as u32))
                .collect::<Vec<E>>()
        };
        let counts: Vec<usize> = (0..bins).map(|bin| expected(bin).len()).collect();
        for spare in [0, 1, 100] {
            let rooms: Vec<usize> = counts.iter().map(|count| count + spare).collect();
            let scattered = scatter_roomy(0..n, &rooms, Mixed(bins), make, Interrupt::NEVER).unwrap().unwrap();
            assert_eq!(scattered.elements.len(), n + bins * spare);
            for (bin, range) in scattered.bins.into_iter().enumerate() {
                assert_eq!(scattered.elements[range], expected(bin));
            }
        }
        if let Some(full) = counts.iter().position(|&count| count > 0) {
            let mut rooms = counts.clone();
            rooms[full] -= 1;
            assert!(scatter_roomy(0..n, &rooms, Mixed(bins), make, Interrupt::NEVER).unwrap().is_none());
            assert!(scatter_roomy(0..n, &counts[..full], Mixed(bins), make, Interrupt::NEVER).unwrap().is_none());
        }
    }

    #[test]
    fn bins_hold_their_positions_in_order() {
        for (n, bins) in [(0, 1), (1, 1), (5, 3), (1000, 7), (2051, 11), (50_003, 700)] {
            check(n, bins, |position, _| [position as u32]);
            check(n, bins, |position, tokens| [position as u32, tokens]);
            check(n, bins, |position, tokens| [position as u64, tokens.into()]);
        }
    }

    #[test]
    fn a_caller_that_wants_to_stop_is_heard() {
        let stop = || false;
        let scattered = scatter_roomy(0..9, &[9], Mixed(1), |position, _| position, Interrupt::new(&stop));
        assert_eq!(scattered.err(), Some(crate::Error::Interrupted));
    }
}
