//! Samples scattered to bins: the digits that choose the bins, their counts, and the scatter that they make safe.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Mutex;

use super::lines::Lines;
use super::memory::ask_for_large_pages;
use super::vector::{CACHE_LINE, Work, prefetch, widest};
use crate::parallel::run;
use crate::{Error, Interrupt, Result};

/// Samples between two looks at the interrupt.
pub(super) const CHUNK: usize = 1 << 18;
/// A lane is at most so long, so that it counts in 32 bits.
const LANE: usize = 1 << 31;
/// Above so many bytes the result does not stay in a cache, and is written past it.
pub(super) const STREAM_BYTES: usize = 64 << 20;
/// Above so many bins plain stores fight for the same cache sets.
pub(super) const STREAM_BINS: usize = 512;

/// Positions whose bins are drawn at once: in vectors, and apart from the loop that uses them, which takes half the time.
pub(crate) const BLOCK: usize = 1 << 10;

/// Who says which bin a position belongs to.
pub(crate) trait Draw: Copy + Sync {
    /// The bins of the positions from `start` on, a multiple of [`BLOCK`]; anything past the last position. Must be inlined
    /// always (a closure cannot be).
    fn bins(self, start: usize, bins: &mut [u16; BLOCK]);
}

/// A bin number for every position, and how many positions each bin has.
///
/// Invariant: `of` is below `bins` everywhere; every lane's `counts` are those of the digits of its range; the ranges follow each
/// other and cover all positions.
pub(crate) struct Digits {
    of: Vec<u16>,
    bins: usize,
    lanes: Vec<Lane>,
}

struct Lane {
    range: Range<usize>,
    counts: Vec<usize>,
}

impl Digits {
    /// Ask `draw` for the bins of all positions below `n`.
    ///
    /// # Errors
    /// Interrupted.
    pub(crate) fn draw(
        n: usize,
        bins: usize,
        threads: usize,
        draw: impl Draw,
        interrupt: Interrupt<'_>,
    ) -> Result<Self> {
        let lanes = if threads == 1 { 1 } else { (4 * threads).min(n / CHUNK + 1) }.max(n.div_ceil(LANE));
        let lane = n.div_ceil(lanes).next_multiple_of(4);
        let mut digits = Vec::with_capacity(n);
        let spare = &mut digits.spare_capacity_mut()[..n];
        let tasks: Vec<_> = spare.chunks_mut(lane.max(4)).enumerate().map(|(i, own)| Mutex::new((i, own))).collect();
        let done: Vec<Mutex<Option<Lane>>> = tasks.iter().map(|_| Mutex::new(None)).collect();
        run(threads, tasks.len(), &|task| {
            let (Ok(mut own), Ok(mut slot)) = (tasks[task].lock(), done[task].lock()) else {
                return Err(Error::Interrupted);
            };
            let start = own.0 * lane;
            let mut counts = Ok(Vec::new());
            widest(Count { digits: own.1, start, bins, draw, interrupt, counts: &mut counts });
            let counts = counts?;
            *slot = Some(Lane { range: start..start + own.1.len(), counts });
            Ok(())
        })?;
        drop(tasks);
        let lanes: Option<Vec<Lane>> = done.into_iter().map(|slot| slot.into_inner().ok().flatten()).collect();
        let lanes = lanes.ok_or(Error::Interrupted)?;
        // SAFETY: every lane is present, so `count` has written all digits of its range, and the ranges cover 0..n.
        unsafe { digits.set_len(n) };
        Ok(Self { of: digits, bins, lanes })
    }

    /// What `make` gives for every position, by bin, in ascending order of positions inside each; where the bins start.
    ///
    /// # Errors
    /// Interrupted.
    pub(crate) fn scatter<E: Copy + Send>(
        self,
        threads: usize,
        make: impl Fn(usize) -> E + Copy + Sync,
        interrupt: Interrupt<'_>,
    ) -> Result<(Vec<E>, Vec<usize>)> {
        let n = self.of.len();
        let mut starts = Vec::with_capacity(self.bins + 1);
        let mut next = vec![Vec::with_capacity(self.bins); self.lanes.len()];
        let mut total = 0;
        for bin in 0..self.bins {
            starts.push(total);
            for (lane, next) in self.lanes.iter().zip(&mut next) {
                next.push(total);
                total += lane.counts[bin];
            }
        }
        starts.push(total);
        let mut scattered: Vec<E> = Vec::with_capacity(n);
        ask_for_large_pages(scattered.as_mut_ptr(), n);
        let target = Target(scattered.as_mut_ptr());
        let streamed = Lines::fit(target.0) && (size_of::<E>() * n > STREAM_BYTES || self.bins > STREAM_BINS);
        let next: Vec<_> = next.into_iter().map(Mutex::new).collect();
        run(threads, self.lanes.len(), &|task| {
            let Ok(mut next) = next[task].lock() else { return Err(Error::Interrupted) };
            let range = self.lanes[task].range.clone();
            // SAFETY: this lane's positions in bin d are next[d]..next[d] + counts[d]: below `n`, apart from those of every
            // other bin and lane, and as many as the lane has digits d. The lock is held, so no other thread runs the lane.
            unsafe {
                if streamed {
                    scatter_lines(&self.of, range, &mut next, target, make, interrupt)
                } else {
                    scatter_plain(&self.of, range, &mut next, target, make, interrupt)
                }
            }
        })?;
        // SAFETY: all lanes have run to their end, and together they have written each of the `n` positions.
        unsafe { scattered.set_len(n) };
        Ok((scattered, starts))
    }
}

/// Write the digits of the positions from `start`, a multiple of four, on, and count them.
struct Count<'a, F> {
    digits: &'a mut [MaybeUninit<u16>],
    start: usize,
    bins: usize,
    draw: F,
    interrupt: Interrupt<'a>,
    counts: &'a mut Result<Vec<usize>>,
}

impl<F: Draw> Work for Count<'_, F> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn run(self) {
        *self.counts = count(self.digits, self.start, self.bins, self.draw, self.interrupt);
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
fn count(
    digits: &mut [MaybeUninit<u16>],
    start: usize,
    bins: usize,
    draw: impl Draw,
    interrupt: Interrupt<'_>,
) -> Result<Vec<usize>> {
    // Four counters a bin: neighbours often share a bin, and one counter would wait for its own store.
    let mut counts = vec![[0_u32; 4]; bins];
    let mut drawn = [0; BLOCK];
    for (block, own) in digits.chunks_mut(BLOCK).enumerate() {
        if block % (CHUNK / BLOCK) == 0 {
            interrupt.check()?;
        }
        draw.bins(start + block * BLOCK, &mut drawn);
        for (quad, drawn) in own.chunks_mut(4).zip(drawn.chunks_exact(4)) {
            for (way, digit) in quad.iter_mut().enumerate() {
                counts[usize::from(drawn[way])][way] += 1;
                digit.write(drawn[way]);
            }
        }
    }
    Ok(counts.iter().map(|ways| ways.iter().map(|&count| count as usize).sum()).collect())
}

/// Where scattered elements go: shared by threads that write to different positions.
struct Target<E>(*mut E);

impl<E> Clone for Target<E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<E> Copy for Target<E> {}

// SAFETY: the pointer is only written through, at positions that no two threads share; elements may change threads.
unsafe impl<E: Send> Sync for Target<E> {}

/// Scatter one lane with plain stores.
///
/// # Safety
/// For every digit d, `target` may be written from position `next[d]` on as often as d occurs in `digits[range]`; digits
/// are below the number of `next`.
unsafe fn scatter_plain<E: Copy>(
    digits: &[u16],
    range: Range<usize>,
    next: &mut [usize],
    target: Target<E>,
    make: impl Fn(usize) -> E,
    interrupt: Interrupt<'_>,
) -> Result<()> {
    let ahead = CACHE_LINE / size_of::<E>().max(1);
    let put = |_, place, position| {
        // Processors follow a few streams of stores by themselves, not as many as there are bins.
        prefetch(target.0.wrapping_add(place + ahead));
        // SAFETY: the place is the caller's promise.
        unsafe { target.0.add(place).write(make(position)) };
    };
    // SAFETY: the caller answers for the digits.
    unsafe { place_each(digits, range, next, interrupt, put) }
}

/// Scatter one lane by whole cache lines, past the cache.
///
/// # Safety
/// As [`scatter_plain`]; and lines fit `target`.
unsafe fn scatter_lines<E: Copy>(
    digits: &[u16],
    range: Range<usize>,
    next: &mut [usize],
    target: Target<E>,
    make: impl Fn(usize) -> E,
    interrupt: Interrupt<'_>,
) -> Result<()> {
    // SAFETY: the caller answers for the places.
    let mut lines = unsafe { Lines::new(target.0, next.to_vec()) };
    // SAFETY: there is such a bin, and the places of a bin follow each other.
    let put = |bin, place, position| unsafe { lines.put(bin, place, make(position)) };
    // SAFETY: the caller answers for the digits.
    unsafe { place_each(digits, range, next, interrupt, put)? };
    lines.finish(next.iter().copied());
    Ok(())
}

/// Have `put` write what belongs to every position of `range` at its place: `put(bin, place, position)`.
///
/// # Safety
/// Digits are below the number of `next`.
#[inline]
unsafe fn place_each(
    digits: &[u16],
    range: Range<usize>,
    next: &mut [usize],
    interrupt: Interrupt<'_>,
    mut put: impl FnMut(usize, usize, usize),
) -> Result<()> {
    for start in range.clone().step_by(CHUNK) {
        interrupt.check()?;
        let stop = range.end.min(start + CHUNK);
        for (position, &digit) in (start..stop).zip(&digits[start..stop]) {
            let bin = usize::from(digit);
            // SAFETY: the caller's promise.
            let next = unsafe { next.get_unchecked_mut(bin) };
            let place = *next;
            *next = place + 1;
            put(bin, place, position);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A digit for every position below a number of bins.
    #[derive(Clone, Copy)]
    struct Mixed(usize);

    impl Mixed {
        fn digit(self, position: usize) -> u16 {
            (position * 7919 % self.0) as u16
        }
    }

    impl Draw for Mixed {
        fn bins(self, start: usize, bins: &mut [u16; BLOCK]) {
            *bins = std::array::from_fn(|i| self.digit(start + i));
        }
    }

    fn check<E: Copy + Send + PartialEq + std::fmt::Debug>(
        n: usize,
        bins: usize,
        make: impl Fn(usize) -> E + Copy + Sync,
    ) {
        let digit = |position| Mixed(bins).digit(position);
        let mut expected: Vec<usize> = (0..n).collect();
        expected.sort_by_key(|&position| digit(position));
        for threads in [1, 3] {
            let digits = Digits::draw(n, bins, threads, Mixed(bins), Interrupt::NEVER).unwrap();
            let (scattered, starts) = digits.scatter(threads, make, Interrupt::NEVER).unwrap();
            assert!(scattered.iter().zip(&expected).all(|(got, &position)| *got == make(position)));
            assert_eq!((scattered.len(), starts.len(), starts[bins]), (n, bins + 1, n));
            assert!(
                (0..bins)
                    .all(|bin| expected[starts[bin]..starts[bin + 1]].iter().all(|&p| usize::from(digit(p)) == bin))
            );
        }
    }

    #[test]
    fn scattering_sorts_stably() {
        for (n, bins) in [(0, 1), (1, 1), (5, 3), (1000, 7), (300_001, 511), (600_003, 700), (100, 600)] {
            check(n, bins, |position| position as u32);
            check(n, bins, |position| [position as u32, 5]);
            check(n, bins, |position| [position as u64, 9]);
        }
    }
}
