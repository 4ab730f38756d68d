//! The only module with unsafe code: memory that is written once, from several threads, without being cleared first.
//!
//! Why: a plan's largest cost is moving samples to their bins. Safe code would clear the arrays first (0.3 ns a sample),
//! check every position (0.3 ns), could not write to interleaved positions from several threads at all, and has no way to
//! write past the cache (3 ns a sample at 10^8 samples). Everything here is sound for any argument: what the unsafe blocks
//! rely on is established in the same type, never by the caller.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Mutex;

use crate::parallel::run;
use crate::rng::LANES;
use crate::{Error, Interrupt, Result};

/// Samples between two looks at the interrupt.
const CHUNK: usize = 1 << 18;
/// A lane is at most so long, so that it counts in 32 bits.
const LANE: usize = 1 << 31;
/// Bytes that move between cache and memory at once.
const LINE: usize = 64;
/// Above so many bytes the result does not stay in a cache, and is written past it.
const STREAM_BYTES: usize = 64 << 20;
/// Above so many bins plain stores fight for the same cache sets.
const STREAM_BINS: usize = 512;

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
    /// Ask `four` for the bins of four positions at a time: of `position`, a multiple of four, and the three after it.
    ///
    /// # Errors
    /// Interrupted.
    pub(crate) fn draw(
        n: usize,
        bins: usize,
        threads: usize,
        four: impl Fn(usize) -> [u16; 4] + Copy + Sync,
        interrupt: Interrupt<'_>,
    ) -> Result<Self> {
        let lanes = if threads == 1 { 1 } else { (4 * threads).min(n / CHUNK + 1) }.max(n.div_ceil(LANE));
        let lane = n.div_ceil(lanes).next_multiple_of(4);
        let whole = n.next_multiple_of(4);
        let mut digits = Vec::with_capacity(whole);
        let spare = &mut digits.spare_capacity_mut()[..whole];
        let tasks: Vec<_> = spare.chunks_mut(lane.max(4)).enumerate().map(|(i, own)| Mutex::new((i, own))).collect();
        let done: Vec<Mutex<Option<Lane>>> = tasks.iter().map(|_| Mutex::new(None)).collect();
        run(threads, tasks.len(), &|task| {
            let (Ok(mut own), Ok(mut slot)) = (tasks[task].lock(), done[task].lock()) else {
                return Err(Error::Interrupted);
            };
            let start = own.0 * lane;
            let mut counts = Ok(Vec::new());
            widest(Count { digits: own.1, start, bins, four, interrupt, counts: &mut counts });
            let counts = counts?;
            *slot = Some(Lane { range: start..start + own.1.len(), counts });
            Ok(())
        })?;
        drop(tasks);
        let lanes: Option<Vec<Lane>> = done.into_iter().map(|slot| slot.into_inner().ok().flatten()).collect();
        let mut lanes = lanes.ok_or(Error::Interrupted)?;
        // SAFETY: every lane is present, so `count` has written all digits of its range, and the ranges cover 0..whole.
        unsafe { digits.set_len(whole) };
        if let Some(last) = lanes.last_mut() {
            digits.drain(n..).for_each(|digit: u16| last.counts[usize::from(digit)] -= 1);
            last.range.end = n;
        }
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
        let width = size_of::<E>();
        let lines = width > 0 && LINE % width == 0 && target.0 as usize % width == 0;
        let streamed = lines && (width * n > STREAM_BYTES || self.bins > STREAM_BINS);
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

/// Write the digits of the positions from `start` on, a multiple of four, and count them.
struct Count<'a, F> {
    digits: &'a mut [MaybeUninit<u16>],
    start: usize,
    bins: usize,
    four: F,
    interrupt: Interrupt<'a>,
    counts: &'a mut Result<Vec<usize>>,
}

impl<F: Fn(usize) -> [u16; 4]> Work for Count<'_, F> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn run(self) {
        *self.counts = count(self.digits, self.start, self.bins, self.four, self.interrupt);
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
fn count(
    digits: &mut [MaybeUninit<u16>],
    start: usize,
    bins: usize,
    four: impl Fn(usize) -> [u16; 4],
    interrupt: Interrupt<'_>,
) -> Result<Vec<usize>> {
    // Four counters a bin: neighbours often share a bin, and one counter would wait for its own store.
    let mut counts = vec![[0_u32; 4]; bins];
    for (i, chunk) in digits.chunks_mut(CHUNK).enumerate() {
        interrupt.check()?;
        let mut position = start + i * CHUNK;
        for quad in chunk.chunks_exact_mut(4) {
            let drawn = four(position);
            for way in 0..4 {
                counts[usize::from(drawn[way])][way] += 1;
                quad[way].write(drawn[way]);
            }
            position += 4;
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
/// For every digit d, `target` may be written from position `next[d]` on as often as d occurs in `digits[range]`.
unsafe fn scatter_plain<E: Copy>(
    digits: &[u16],
    range: Range<usize>,
    next: &mut [usize],
    target: Target<E>,
    make: impl Fn(usize) -> E,
    interrupt: Interrupt<'_>,
) -> Result<()> {
    for start in range.clone().step_by(CHUNK) {
        interrupt.check()?;
        let stop = range.end.min(start + CHUNK);
        for (position, &digit) in (start..stop).zip(&digits[start..stop]) {
            // SAFETY: digits are below the number of bins (invariant of `Digits`); the position is the caller's promise.
            unsafe {
                let next = next.get_unchecked_mut(usize::from(digit));
                target.0.add(*next).write(make(position));
                *next += 1;
            }
        }
    }
    Ok(())
}

/// One cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "read through pointers to elements")] [u8; LINE]);

/// Scatter one lane by whole cache lines, gathered beside and written past the cache.
///
/// # Safety
/// As [`scatter_plain`].
unsafe fn scatter_lines<E: Copy>(
    digits: &[u16],
    range: Range<usize>,
    next: &mut [usize],
    target: Target<E>,
    make: impl Fn(usize) -> E,
    interrupt: Interrupt<'_>,
) -> Result<()> {
    let width = LINE / size_of::<E>();
    // Positions are counted from the start of the line that `target` lies in, so that lines are aligned in memory.
    let offset = target.0 as usize % LINE / size_of::<E>();
    let mut lines = vec![Line([0; LINE]); next.len()];
    let gathered = lines.as_mut_ptr().cast::<E>();
    let first: Vec<usize> = next.to_vec();
    let copy_out = |bin: usize, from: usize, to: usize| {
        for position in from.max(first[bin])..to {
            let slot = (position + offset) % width;
            // SAFETY: the slot holds what was made for `position`, which the caller lets this lane write.
            unsafe { target.0.add(position).write(gathered.add(bin * width + slot).read()) };
        }
    };
    for start in range.clone().step_by(CHUNK) {
        interrupt.check()?;
        let stop = range.end.min(start + CHUNK);
        for (position, &digit) in (start..stop).zip(&digits[start..stop]) {
            let bin = usize::from(digit);
            // SAFETY: digits are below the number of bins (invariant of `Digits`), and there is a line for every bin.
            let (place, slot) = unsafe {
                let next = next.get_unchecked_mut(bin);
                let place = *next;
                let slot = (place + offset) % width;
                gathered.add(bin * width + slot).write(make(position));
                *next += 1;
                (place, slot)
            };
            if slot + 1 == width {
                // SAFETY: `bin` is below the number of bins.
                let own = unsafe { *first.get_unchecked(bin) };
                if place + 1 >= own + width {
                    // SAFETY: the whole line is this lane's own: positions place + 1 - width..=place, aligned by `offset`.
                    unsafe { stream_line(target.0.add(place + 1 - width).cast(), gathered.add(bin * width).cast()) };
                } else {
                    copy_out(bin, own, place + 1);
                }
            }
        }
    }
    for (bin, &stop) in next.iter().enumerate() {
        let begun = (stop + offset) % width;
        copy_out(bin, stop.saturating_sub(begun), stop);
    }
    end_stream();
    Ok(())
}

/// Write one line past the cache.
///
/// # Safety
/// Both point to a line, aligned as such; `to` may be written.
#[inline]
unsafe fn stream_line(to: *mut Line, from: *const Line) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 belongs to x86-64; the caller answers for both pointers.
    unsafe {
        use std::arch::x86_64::{__m128i, _mm_load_si128, _mm_stream_si128};
        let (to, from) = (to.cast::<__m128i>(), from.cast::<__m128i>());
        for part in 0..LINE / 16 {
            _mm_stream_si128(to.add(part), _mm_load_si128(from.add(part)));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller answers for both pointers.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, 1);
    }
}

/// Make streamed lines visible to other threads in the usual order.
fn end_stream() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE belongs to x86-64.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Exchange `items[left - 1 - lane]` with `items[chosen[lane]]` for every lane, in order.
///
/// Without the checks a shuffle in cache takes 0.9 instead of 1.3 ns an item.
#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
pub(crate) fn swap_lanes<T: Copy>(items: &mut [T], left: usize, chosen: &[u32; LANES]) {
    let bound = items.len().min(u32::MAX as usize) as u32;
    let mut outside = false;
    for &other in chosen {
        outside |= other >= bound;
    }
    if outside || left < LANES || left > items.len() {
        return;
    }
    let start = items.as_mut_ptr();
    for (lane, &other) in chosen.iter().enumerate() {
        // SAFETY: LANES <= left <= items.len(), and every choice is below items.len(), as just checked.
        unsafe {
            let (one, other) = (start.add(left - 1 - lane), start.add(other as usize));
            let kept = one.read();
            one.write(other.read());
            other.write(kept);
        }
    }
}

/// Bring `item` into the first-level cache, if the machine can be asked to.
#[inline]
pub(crate) fn prefetch<T>(item: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect that a program can see; SSE belongs to x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = item;
}

/// What [`widest`] can compile several times: `run` must be inlined always (a closure cannot be).
pub(crate) trait Work {
    /// Do it.
    fn run(self);
}

/// Run `work`, compiled for the widest vectors that this machine has. The result is the same: only integers are decided.
///
/// A shuffle in cache takes 0.9 instead of 1.5 ns an item.
#[inline]
pub(crate) fn widest(work: impl Work) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2")]
        fn wide(work: impl Work) {
            work.run();
        }
        if std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("bmi1")
            && std::is_x86_feature_detected!("bmi2")
        {
            // SAFETY: the machine has the features, as just asked.
            return unsafe { wide(work) };
        }
    }
    work.run();
}

/// Arrays from this size on ask for large pages.
const WORTHWHILE: usize = 4 << 20;

/// `len` zeros, in large pages where that helps.
pub(crate) fn zeros<T: Copy + Default>(len: usize) -> Vec<T> {
    let mut array = vec![T::default(); len];
    ask_for_large_pages(array.as_mut_ptr(), len);
    array
}

/// Advise that `len` elements from `start` on be kept in pages of 2 MiB, where that helps and the system has them.
///
/// A fresh array costs one page fault for every 4 KiB that is written, 0.3 to 2 us each on virtual machines: for 10 million
/// samples more than all planning; and random writes over it then miss the processor's table of pages. Naming 10 million
/// samples in packs takes 69 ms with it and 146 ms without (processor time, Zen 4, KVM).
fn ask_for_large_pages<T>(start: *mut T, len: usize) {
    #[cfg(target_os = "linux")]
    {
        use std::ffi::{c_int, c_void};
        unsafe extern "C" {
            fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int;
        }
        const PAGE: usize = 4096;
        const MADV_HUGEPAGE: c_int = 14;
        let bytes = len * size_of::<T>();
        let first = start.addr().next_multiple_of(PAGE);
        let stop = (start.addr() + bytes) / PAGE * PAGE;
        if bytes >= WORTHWHILE && first < stop {
            let address = start.cast::<c_void>().with_addr(first);
            // SAFETY: MADV_HUGEPAGE changes neither contents nor validity of memory, whatever the address. A refusal (an old
            // kernel, the feature off) leaves everything as it was, so the result is not looked at.
            unsafe { madvise(address, stop - first, MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (start, len);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<E: Copy + Send + PartialEq + std::fmt::Debug>(
        n: usize,
        bins: usize,
        make: impl Fn(usize) -> E + Copy + Sync,
    ) {
        let digit = |position: usize| (position * 7919 % bins) as u16;
        let four = |position: usize| std::array::from_fn(|way| digit(position + way));
        let mut expected: Vec<usize> = (0..n).collect();
        expected.sort_by_key(|&position| digit(position));
        for threads in [1, 3] {
            let digits = Digits::draw(n, bins, threads, four, Interrupt::NEVER).unwrap();
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

    #[test]
    fn swaps_out_of_range_change_nothing() {
        let mut items = [1_u8; 20];
        swap_lanes(&mut items, 21, &[0; LANES]);
        swap_lanes(&mut items, 15, &[0; LANES]);
        swap_lanes(&mut items, 20, &[20; LANES]);
        swap_lanes::<u8>(&mut [], 0, &[0; LANES]);
        assert_eq!(items, [1; 20]);
    }
}
