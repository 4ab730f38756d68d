//! What the processor offers beside plain loads and stores.

use crate::rng::LANES;

/// Swap `items[left - 1 - i]` with `items[chosen[i]]`, for every i in order; `chosen` are whole lanes. Nothing happens where
/// something is out of range.
///
/// Without a check for every item a shuffle in cache takes 1.1 instead of 1.3 ns an item.
#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
pub(crate) fn swap_chosen<T: Copy>(items: &mut [T], left: usize, chosen: &[u32]) {
    let mut last = 0;
    for &other in chosen {
        last = other.max(last);
    }
    if left < chosen.len() || left > items.len() || last as usize >= items.len() {
        return;
    }
    let mut left = left;
    for lanes in chosen.chunks_exact(LANES) {
        for (lane, &other) in lanes.iter().enumerate() {
            let position = left - 1 - lane;
            // SAFETY: `left` was at most items.len(), and at least chosen.len(); it falls by less than that. Every choice is
            // below items.len(), as just checked.
            unsafe {
                let last = *items.get_unchecked(position);
                let taken = std::mem::replace(items.get_unchecked_mut(other as usize), last);
                *items.get_unchecked_mut(position) = taken;
            }
        }
        left -= LANES;
    }
}

/// Bytes that move between memory and cache at once.
pub(crate) const CACHE_LINE: usize = 64;

/// Bring `item`, wherever it points, into the first-level cache, if the machine can be asked to.
#[inline]
pub(crate) fn prefetch<T>(item: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect that a program can see; SSE belongs to x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(item.cast());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_out_of_range_are_not_taken() {
        let mut items: [u8; 40] = std::array::from_fn(|i| i as u8);
        let untouched = items;
        swap_chosen(&mut items, 41, &[0; LANES]);
        swap_chosen(&mut items, 15, &[0; LANES]);
        swap_chosen(&mut items, 31, &[0; 2 * LANES]);
        swap_chosen(&mut items, 40, &[40; LANES]);
        swap_chosen::<u8>(&mut [], 0, &[0; LANES]);
        assert_eq!(items, untouched);
        let chosen: [u32; 2 * LANES] = std::array::from_fn(|i| i as u32 / 2);
        swap_chosen(&mut items, 36, &chosen);
        let mut expected = untouched;
        chosen.iter().enumerate().for_each(|(i, &other)| expected.swap(35 - i, other as usize));
        assert_eq!(items, expected);
    }
}
