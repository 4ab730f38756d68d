//! What the processor offers beside plain loads and stores.

/// Put `next[i]` at the place `chosen[i]`, and what was there at the place `done + i`, for every i in order. Nothing happens
/// where something is out of range.
///
/// Without a check for every item a shuffle in cache takes 1.1 instead of 1.3 ns an item.
#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
pub(crate) fn insert_chosen<T: Copy>(places: &mut [T], done: usize, chosen: &[u32], next: &[T]) {
    let mut last = 0;
    for &other in chosen {
        last = other.max(last);
    }
    let Some(own) = places.len().checked_sub(done) else { return };
    if chosen.len() > own || chosen.len() != next.len() || last as usize >= places.len() {
        return;
    }
    for (i, (&chosen, &next)) in chosen.iter().zip(next).enumerate() {
        // SAFETY: done + i < done + chosen.len() <= places.len(); every choice is below places.len(), as just checked.
        unsafe {
            let moved = *places.get_unchecked(chosen as usize);
            *places.get_unchecked_mut(done + i) = moved;
            *places.get_unchecked_mut(chosen as usize) = next;
        }
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
        let mut places: [u8; 40] = std::array::from_fn(|i| i as u8);
        let untouched = places;
        insert_chosen(&mut places, 41, &[], &[]);
        insert_chosen(&mut places, 39, &[0; 2], &[7; 2]);
        insert_chosen(&mut places, 3, &[0; 2], &[7; 3]);
        insert_chosen(&mut places, 3, &[40; 1], &[7; 1]);
        insert_chosen::<u8>(&mut [], 0, &[0], &[7]);
        assert_eq!(places, untouched);
        insert_chosen(&mut places, 5, &[2, 6, 2], &[50, 51, 52]);
        let mut expected = untouched;
        (expected[5], expected[6], expected[7], expected[2]) = (2, 51, 50, 52);
        assert_eq!(places, expected);
    }
}
