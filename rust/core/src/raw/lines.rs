//! Scattering by whole cache lines, past the cache.

use std::ops::Range;

use super::digits::{CHUNK, Target};
use crate::{Interrupt, Result};

/// Bytes that move between cache and memory at once.
pub(super) const LINE: usize = 64;

/// One cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "read through pointers to elements")] [u8; LINE]);

/// Scatter one lane by whole cache lines, gathered beside and written past the cache.
///
/// # Safety
/// As [`scatter_plain`].
pub(super) unsafe fn scatter_lines<E: Copy>(
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
