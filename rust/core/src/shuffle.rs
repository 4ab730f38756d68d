//! An exactly uniform shuffle of what fits a cache.
//!
//! Method: Fisher-Yates from the front, which reads one item after the other: each takes a random place among those before it
//! and its own, and what was there moves to the end. So what is shuffled may come from elsewhere, in one pass. Many bounded
//! draws are made at a time: Lemire's multiply-and-reject test on whole vectors, the rare rejections redrawn one by one, so that
//! every permutation has exactly the same probability (given ideal bits).
//! Cost: about 1 ns an item in the second-level cache; large slices are first scattered into bins (see `scatter`).
//! Source: Fisher-Yates as in Knuth, TAOCP 2, algorithm 3.4.2P, in its inside-out form; Lemire, ACM TOMACS 29 (2019).

use crate::raw::{Work, insert_chosen, widest};
use crate::rng::{Key, LANES, Lanes, Words};

/// Where the words for redraws and for few items start: past the ones that seed the lanes.
const SCALAR_PART: u64 = 1 << 20;
/// Choices made at once: enough for a loop of vectors, and few enough that the processor makes them while the stores before
/// wait for the cache.
pub(crate) const ROUND: usize = 4 * LANES;

/// What is shuffled, and where to.
pub(crate) trait Bin<T> {
    /// The items from number `done` on: `ROUND` of them or all that are left, and anything after those. They are asked for one
    /// round after the other. Must be inlined always.
    fn read(&mut self, done: usize, items: &mut [T; ROUND]);

    /// Where they go. Items that are still to be read must not lie before the place of the last one that was.
    fn places(&mut self) -> &mut [T];
}

/// Items that stay where they are.
impl<T: Copy> Bin<T> for &mut [T] {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn read(&mut self, done: usize, items: &mut [T; ROUND]) {
        read_first(items, &self[done..]);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn places(&mut self) -> &mut [T] {
        self
    }
}

/// Copy a round of items, or as many as there are.
#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
pub(crate) fn read_first<T: Copy>(items: &mut [T; ROUND], from: &[T]) {
    if let Some(round) = from.first_chunk() {
        *items = *round;
    } else {
        items[..from.len()].copy_from_slice(from);
    }
}

/// Shuffle `items` uniformly with the bits of `key`.
pub fn shuffle<T: Copy + Default>(items: &mut [T], key: Key) {
    shuffle_bin(items, key);
}

/// Shuffle a bin uniformly with the bits of `key`.
pub(crate) fn shuffle_bin<T: Copy + Default>(bin: impl Bin<T>, key: Key) {
    widest(FisherYates { bin, key, item: T::default() });
}

struct FisherYates<B, T> {
    bin: B,
    key: Key,
    item: T,
}

impl<T: Copy, B: Bin<T>> Work for FisherYates<B, T> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn run(self) {
        let Self { mut bin, key, item } = self;
        let mut scalar = Words::new(key.child(SCALAR_PART));
        let (total, mut done) = (bin.places().len(), 0);
        let mut next = [item; ROUND];
        if total > LANES {
            let mut lanes = Lanes::new(key);
            let mut chosen = [0; ROUND];
            while done < total.min(u32::MAX as usize - ROUND) {
                let size = ROUND.min(total - done);
                choose(&mut chosen[..size.next_multiple_of(LANES)], &mut lanes, &mut scalar, done as u32);
                bin.read(done, &mut next);
                insert_chosen(bin.places(), done, &chosen[..size], &next[..size]);
                done += size;
            }
        }
        while done < total {
            bin.read(done, &mut next);
            let places = bin.places();
            for &next in &next[..ROUND.min(total - done)] {
                let chosen = scalar.below(done as u64 + 1) as usize;
                places[done] = places[chosen];
                places[chosen] = next;
                done += 1;
            }
        }
    }
}

/// One uniform choice among `done + 1` places, `done + 2`, ...: as many as `chosen` has room for, a multiple of the lanes.
#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
fn choose(chosen: &mut [u32], lanes: &mut Lanes, scalar: &mut Words, done: u32) {
    let mut drawn = [0; ROUND];
    let drawn = &mut drawn[..chosen.len()];
    for drawn in drawn.chunks_exact_mut(LANES) {
        drawn.copy_from_slice(&lanes.draw());
    }
    let mut doubtful = false;
    for i in 0..chosen.len() {
        let bound = done + 1 + i as u32;
        chosen[i] = ((u64::from(drawn[i]) * u64::from(bound)) >> 32) as u32;
        doubtful |= drawn[i].wrapping_mul(bound) < bound;
    }
    if doubtful {
        redraw(chosen, drawn, scalar, done);
    }
}

/// Replace the choices that would make some values more likely than others.
#[cold]
fn redraw(chosen: &mut [u32], drawn: &[u32], scalar: &mut Words, done: u32) {
    for (i, (chosen, drawn)) in chosen.iter_mut().zip(drawn).enumerate() {
        let bound = done + 1 + i as u32;
        if drawn.wrapping_mul(bound) < bound.wrapping_neg() % bound {
            *chosen = scalar.below(u64::from(bound)) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::rng::Stream;

    #[test]
    fn every_permutation_is_equally_likely() {
        for n in [4_u8, 5, 6] {
            let trials = 240_000;
            let mut seen: HashMap<Vec<u8>, u64> = HashMap::new();
            for trial in 0..trials {
                let mut items: Vec<u8> = (0..n).collect();
                shuffle(&mut items, Key::new(trial, 0, Stream::InBin));
                *seen.entry(items).or_default() += 1;
            }
            let permutations: usize = (1..=usize::from(n)).product();
            assert_eq!(seen.len(), permutations);
            let expected = trials as f64 / permutations as f64;
            let chi2: f64 = seen.values().map(|&count| (count as f64 - expected).powi(2) / expected).sum();
            let degrees = permutations as f64 - 1.0;
            assert!((chi2 - degrees).abs() < 4.0 * (2.0 * degrees).sqrt(), "n={n}: chi2 {chi2} of {degrees}");
        }
    }

    #[test]
    fn where_items_come_from_changes_nothing() {
        struct Elsewhere<'a>(&'a [u32], &'a mut [u32]);

        impl Bin<u32> for Elsewhere<'_> {
            fn read(&mut self, done: usize, items: &mut [u32; ROUND]) {
                read_first(items, &self.0[done..]);
            }

            fn places(&mut self) -> &mut [u32] {
                self.1
            }
        }

        for n in [0, 1, 2, 15, 16, 17, 63, 64, 65, 130, 1000] {
            let items: Vec<u32> = (0..n).collect();
            let (mut inside, mut elsewhere) = (items.clone(), vec![n; n as usize]);
            shuffle(&mut inside, Key::new(1, 0, Stream::InBin));
            shuffle_bin(Elsewhere(&items, &mut elsewhere), Key::new(1, 0, Stream::InBin));
            assert_eq!(inside, elsewhere);
            inside.sort_unstable();
            assert_eq!(inside, items);
        }
    }

    #[test]
    fn positions_and_neighbours_are_uniform_on_the_vector_path() {
        let (n, trials) = (40, 60_000);
        let (mut positions, mut pairs) = (vec![0_u32; n * n], vec![0_u32; n * n]);
        for trial in 0..trials {
            let mut items: Vec<usize> = (0..n).collect();
            shuffle(&mut items, Key::new(trial, 7, Stream::InBin));
            items.iter().enumerate().for_each(|(position, &item)| positions[position * n + item] += 1);
            items.windows(2).for_each(|pair| pairs[pair[0] * n + pair[1]] += 1);
        }
        let z = |counts: &[u32], cells: usize, total: u64, degrees: f64| {
            let expected = total as f64 / cells as f64;
            let used = counts.iter().filter(|&&count| count > 0);
            let chi2: f64 = used.map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
            (chi2 - degrees) / (2.0 * degrees).sqrt()
        };
        assert!(z(&positions, n * n, trials * n as u64, ((n - 1) * (n - 1)) as f64).abs() < 4.0);
        assert!(z(&pairs, n * (n - 1), trials * (n as u64 - 1), (n * (n - 1) - 1) as f64).abs() < 4.0);
    }
}
