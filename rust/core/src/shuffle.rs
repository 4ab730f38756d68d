//! An exactly uniform shuffle of a slice that fits a cache.
//!
//! Method: Fisher-Yates, many bounded draws at a time: Lemire's multiply-and-reject test on whole vectors, the rare
//! rejections redrawn one by one, so that every permutation has exactly the same probability (given ideal bits).
//! Cost: about 1 ns an item in the second-level cache; large slices are first scattered into bins (see `scatter`).
//! Source: Fisher-Yates as in Knuth, TAOCP 2, algorithm 3.4.2P; Lemire, ACM TOMACS 29 (2019).

use crate::raw::{CACHE_LINE, Work, prefetch, swap_chosen, widest};
use crate::rng::{Key, LANES, Lanes, Words};

/// Where the words for redraws and for the last few items start: past the ones that seed the lanes.
const SCALAR_PART: u64 = 1 << 20;
/// Choices made at once: enough for a loop of vectors, and few enough that the processor makes them while the swaps before
/// wait for the cache.
const ROUND: usize = 4 * LANES;

/// Shuffle `items` uniformly with the bits of `key`.
pub fn shuffle<T: Copy>(items: &mut [T], key: Key) {
    shuffle_before(items, &[], key);
}

/// Shuffle `items` uniformly with the bits of `key`. Meanwhile `next` is brought into the cache: what will be shuffled after.
pub(crate) fn shuffle_before<T: Copy>(items: &mut [T], next: &[T], key: Key) {
    widest(FisherYates { items, next, key });
}

struct FisherYates<'a, T> {
    items: &'a mut [T],
    next: &'a [T],
    key: Key,
}

impl<T: Copy> Work for FisherYates<'_, T> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn run(self) {
        let Self { items, next, key } = self;
        let mut scalar = Words::new(key.child(SCALAR_PART));
        let mut left = items.len();
        while left > u32::MAX as usize {
            swap_one(items, left, &mut scalar);
            left -= 1;
        }
        if left > LANES {
            let mut lanes = Lanes::new(key);
            let mut ahead = next[..next.len().min(left)].chunks(ROUND);
            let mut chosen = [0; ROUND];
            while left > LANES {
                let chosen = &mut chosen[..ROUND.min((left - 1) / LANES * LANES)];
                choose(chosen, &mut lanes, &mut scalar, left as u32);
                let stride = (CACHE_LINE / size_of::<T>().max(1)).max(1);
                for item in ahead.next().unwrap_or_default().iter().step_by(stride) {
                    prefetch(item);
                }
                swap_chosen(items, left, chosen);
                left -= chosen.len();
            }
        }
        while left > 1 {
            swap_one(items, left, &mut scalar);
            left -= 1;
        }
    }
}

/// Swap one of the first `left` items with the last of them.
#[inline]
fn swap_one<T>(items: &mut [T], left: usize, scalar: &mut Words) {
    items.swap(scalar.below(left as u64) as usize, left - 1);
}

/// One uniform choice below each of `left`, `left - 1`, ...: as many as `chosen` has room for, a multiple of the lanes.
#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
fn choose(chosen: &mut [u32], lanes: &mut Lanes, scalar: &mut Words, left: u32) {
    let mut drawn = [0; ROUND];
    let drawn = &mut drawn[..chosen.len()];
    for drawn in drawn.chunks_exact_mut(LANES) {
        drawn.copy_from_slice(&lanes.draw());
    }
    let mut doubtful = false;
    for i in 0..chosen.len() {
        let bound = left - i as u32;
        chosen[i] = ((u64::from(drawn[i]) * u64::from(bound)) >> 32) as u32;
        doubtful |= drawn[i].wrapping_mul(bound) < bound;
    }
    if doubtful {
        redraw(chosen, drawn, scalar, left);
    }
}

/// Replace the choices that would make some values more likely than others.
#[cold]
fn redraw(chosen: &mut [u32], drawn: &[u32], scalar: &mut Words, left: u32) {
    for (i, (chosen, drawn)) in chosen.iter_mut().zip(drawn).enumerate() {
        let bound = left - i as u32;
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
