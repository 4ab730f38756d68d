//! Stores gathered to whole cache lines, and written past the cache.

/// Bytes that are gathered: several lines of 64 bytes, as no processor can foresee which element of a random bin will fill
/// them, and such a surprise costs it as much as five elements. With 64 bytes scattering takes 1.1 ns longer an element of
/// 8 bytes; with 512 the lines of many bins leave the first-level cache.
const LINE: usize = 256;

/// Cache lines that follow each other.
#[derive(Clone, Copy)]
#[repr(align(256))]
struct Line(#[expect(dead_code, reason = "read through pointers to elements")] [u8; LINE]);

/// For every bin the line that it is about to fill.
pub(super) struct Lines<E> {
    target: *mut E,
    /// The place of each bin's first element: what is before it in its line is not ours.
    first: Vec<usize>,
    gathered: Vec<Line>,
    /// Places are counted from the start of the line that `target` lies in, so that lines are aligned in memory.
    offset: usize,
}

impl<E: Copy> Lines<E> {
    /// Elements in a line.
    const WIDTH: usize = if size_of::<E>() == 0 { 1 } else { LINE / size_of::<E>() };

    /// Whether lines hold whole elements, and elements at `target` do not straddle them.
    pub(super) fn fit(target: *const E) -> bool {
        let size = size_of::<E>();
        size > 0 && LINE.is_multiple_of(size) && target.addr().is_multiple_of(size)
    }

    /// Lines for bins whose first elements are at the places `first`.
    ///
    /// # Safety
    /// `target` [fits](Self::fit), and every place that is [`put`](Self::put) may be written.
    pub(super) unsafe fn new(target: *mut E, first: Vec<usize>) -> Self {
        let offset = target.addr() % LINE / size_of::<E>().max(1);
        Self { target, gathered: vec![Line([0; LINE]); first.len()], first, offset }
    }

    /// Write `element` at `place` of the memory at `target`, now or later.
    ///
    /// # Safety
    /// There is such a bin; its places come one after the other from its first, and may be written. Where they belong to another
    /// bin too, either may lose.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    pub(super) unsafe fn put(&mut self, bin: usize, place: usize, element: E) {
        let slot = (place + self.offset) % Self::WIDTH;
        // SAFETY: there is a line for every bin, and the slot is below its width.
        let line = unsafe {
            let line = self.gathered.as_mut_ptr().add(bin);
            line.cast::<E>().add(slot).write(element);
            line
        };
        if slot + 1 == Self::WIDTH {
            // SAFETY: there is such a bin.
            let first = unsafe { *self.first.get_unchecked(bin) };
            if place + 1 >= first + Self::WIDTH {
                // SAFETY: the whole line is this bin's own: places place + 1 - WIDTH..=place, aligned by `offset`.
                unsafe { stream_line(self.target.add(place + 1 - Self::WIDTH).cast(), line) };
            } else {
                self.copy_out(bin, first, place + 1);
            }
        }
    }

    /// Write what is still gathered. `next` are the places after the last of each bin.
    pub(super) fn finish(self, next: impl Iterator<Item = usize>) {
        for (bin, stop) in next.enumerate().take(self.first.len()) {
            let begun = (stop + self.offset) % Self::WIDTH;
            self.copy_out(bin, stop.saturating_sub(begun), stop);
        }
        end_stream();
    }

    fn copy_out(&self, bin: usize, from: usize, to: usize) {
        for place in from.max(self.first[bin])..to {
            let slot = (place + self.offset) % Self::WIDTH;
            // SAFETY: the slot holds what was put at `place`, which may be written.
            unsafe { self.target.add(place).write(self.gathered.as_ptr().add(bin).cast::<E>().add(slot).read()) };
        }
    }
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
