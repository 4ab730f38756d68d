//! What the processor offers beside plain loads and stores.

use crate::rng::LANES;

/// Where shuffled items go, from the last position to the first.
pub(crate) trait Place<T> {
    /// Bring the places before `position` into the cache: they are next.
    fn ahead(&self, position: usize);

    /// `taken` belongs at `position`; `items` are those that it was taken from. Must be inlined always.
    fn put(&mut self, items: &mut [T], position: usize, taken: T);
}

/// Take `items[chosen[lane]]`, and put `items[left - 1 - lane]` where it was, for every lane in order. Nothing happens
/// where something is out of range.
///
/// Without a check for every lane a shuffle in cache takes 0.9 instead of 1.3 ns an item.
#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
pub(crate) fn take_lanes<T: Copy>(items: &mut [T], left: usize, chosen: &[u32; LANES], place: &mut impl Place<T>) {
    let bound = items.len().min(u32::MAX as usize) as u32;
    let mut outside = false;
    for &other in chosen {
        outside |= other >= bound;
    }
    if outside || left < LANES || left > items.len() {
        return;
    }
    for (lane, &other) in chosen.iter().enumerate() {
        let position = left - 1 - lane;
        // SAFETY: LANES <= left <= items.len(), and every choice is below items.len(), as just checked.
        let taken = unsafe {
            let last = *items.get_unchecked(position);
            std::mem::replace(items.get_unchecked_mut(other as usize), last)
        };
        place.put(items, position, taken);
    }
}

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

    struct List(Vec<(usize, u8)>);

    impl Place<u8> for List {
        fn ahead(&self, _: usize) {}

        fn put(&mut self, _: &mut [u8], position: usize, taken: u8) {
            self.0.push((position, taken));
        }
    }

    #[test]
    fn lanes_out_of_range_are_not_taken() {
        let mut items: [u8; 20] = std::array::from_fn(|i| i as u8);
        let untouched = items;
        let mut list = List(vec![]);
        take_lanes(&mut items, 21, &[0; LANES], &mut list);
        take_lanes(&mut items, 15, &[0; LANES], &mut list);
        take_lanes(&mut items, 20, &[20; LANES], &mut list);
        take_lanes(&mut [], 0, &[0; LANES], &mut list);
        assert_eq!((items, list.0.len()), (untouched, 0));
        take_lanes(&mut items, 20, &std::array::from_fn(|lane| lane as u32), &mut list);
        assert!(list.0.into_iter().eq((0..LANES).map(|lane| (19 - lane, lane as u8))));
        assert_eq!(items[..4], [19, 18, 17, 16]);
    }
}
