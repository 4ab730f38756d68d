//! An exactly uniform shuffle of a slice that fits a cache.
//!
//! Method: Fisher-Yates, 16 bounded draws at a time: Lemire's multiply-and-reject test on a whole vector, the rare
//! rejections redrawn one by one, so that every permutation has exactly the same probability (given ideal bits).
//! Cost: about 1 ns an item in the second-level cache; large slices are first scattered into bins (see `scatter`).
//! Source: Fisher-Yates as in Knuth, TAOCP 2, algorithm 3.4.2P; Lemire, ACM TOMACS 29 (2019).

use crate::raw::{Place, Work, prefetch, take_lanes, widest};
use crate::rng::{Key, LANES, Lanes, Words};

/// Where the words for redraws and for the last few items start: past the ones that seed the lanes.
const SCALAR_PART: u64 = 1 << 20;
/// How far before they are written columns are brought into the cache.
const AHEAD: usize = 8 * LANES;

/// Shuffle `items` uniformly with the bits of `key`.
pub fn shuffle<T: Copy>(items: &mut [T], key: Key) {
    widest(FisherYates { items, next: &[], place: InPlace, key });
}

/// Shuffle `items`, which are left in disorder, into two columns: the first part of every item to `first`, the second,
/// where there is one, to `second`. Meanwhile `next` is brought into the cache: what will be shuffled after.
pub(crate) fn shuffle_into<I: Copy, const W: usize>(
    items: &mut [[I; W]],
    first: &mut [I],
    second: &mut [I],
    next: &[[I; W]],
    key: Key,
) {
    // Of one length, as the compiler sees now, so that it need not check every position.
    let first = &mut first[..items.len()];
    let second = if W > 1 { &mut second[..items.len()] } else { second };
    widest(FisherYates { items, next, place: Columns { first, second }, key });
}

/// Where they came from.
struct InPlace;

impl<T: Copy> Place<T> for InPlace {
    fn ahead(&self, _: usize) {}

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn put(&mut self, items: &mut [T], position: usize, taken: T) {
        items[position] = taken;
    }
}

/// Elsewhere, each part of an item in a column of its own.
struct Columns<'a, I> {
    first: &'a mut [I],
    second: &'a mut [I],
}

impl<I: Copy, const W: usize> Place<[I; W]> for Columns<'_, I> {
    #[inline]
    fn ahead(&self, position: usize) {
        prefetch(self.first.as_ptr().wrapping_add(position).wrapping_sub(AHEAD));
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn put(&mut self, _: &mut [[I; W]], position: usize, taken: [I; W]) {
        self.first[position] = taken[0];
        if W > 1 {
            self.second[position] = taken[1];
        }
    }
}

struct FisherYates<'a, T, P> {
    items: &'a mut [T],
    next: &'a [T],
    place: P,
    key: Key,
}

impl<T: Copy, P: Place<T>> Work for FisherYates<'_, T, P> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn run(self) {
        fisher_yates(self.items, self.next, self.place, self.key);
    }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
fn fisher_yates<T: Copy>(items: &mut [T], next: &[T], mut place: impl Place<T>, key: Key) {
    let mut scalar = Words::new(key.child(SCALAR_PART));
    let mut left = items.len();
    while left > u32::MAX as usize {
        take_one(items, left, &mut place, &mut scalar);
        left -= 1;
    }
    if left > LANES {
        let mut lanes = Lanes::new(key);
        let mut ahead = next[..next.len().min(left)].chunks(LANES);
        while left > LANES {
            if let Some(items) = ahead.next() {
                items.iter().step_by((64 / size_of::<T>().max(1)).max(1)).for_each(|item| prefetch(item));
            }
            let chosen = choose(&mut lanes, &mut scalar, left as u32);
            place.ahead(left);
            take_lanes(items, left, &chosen, &mut place);
            left -= LANES;
        }
    }
    while left > 0 {
        take_one(items, left, &mut place, &mut scalar);
        left -= 1;
    }
}

/// Take one of the first `left` items, and put the last of them into its place.
#[inline]
fn take_one<T: Copy>(items: &mut [T], left: usize, place: &mut impl Place<T>, scalar: &mut Words) {
    let chosen = if left > 1 { scalar.below(left as u64) as usize } else { 0 };
    let (last, taken) = (items[left - 1], items[chosen]);
    items[chosen] = last;
    place.put(items, left - 1, taken);
}

/// One uniform choice below each of `left`, `left - 1`, ..., `left - 15`.
#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
fn choose(lanes: &mut Lanes, scalar: &mut Words, left: u32) -> [u32; LANES] {
    let drawn = lanes.draw();
    let (mut chosen, mut low) = ([0; LANES], [0; LANES]);
    let mut doubtful = false;
    for lane in 0..LANES {
        let bound = left - lane as u32;
        let product = u64::from(drawn[lane]) * u64::from(bound);
        chosen[lane] = (product >> 32) as u32;
        low[lane] = product as u32;
        doubtful |= low[lane] < bound;
    }
    if doubtful {
        redraw(&mut chosen, &low, scalar, left);
    }
    chosen
}

/// Replace the choices that would make some values more likely than others.
#[cold]
fn redraw(chosen: &mut [u32; LANES], low: &[u32; LANES], scalar: &mut Words, left: u32) {
    for lane in 0..LANES {
        let bound = left - lane as u32;
        if low[lane] < bound.wrapping_neg() % bound {
            chosen[lane] = scalar.below(u64::from(bound)) as u32;
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
    fn into_columns_as_in_place() {
        for n in [0_u32, 1, 2, 16, 17, 40, 1000] {
            let key = Key::new(3, 1, Stream::InBin);
            let mut items: Vec<[u32; 2]> = (0..n).map(|i| [i, 7 * i]).collect();
            let mut expected = items.clone();
            shuffle(&mut expected, key);
            let (mut first, mut second) = (vec![0; items.len()], vec![0; items.len()]);
            shuffle_into(&mut items, &mut first, &mut second, &expected, key);
            assert!(first.iter().zip(second).map(|(&a, b)| [a, b]).eq(expected));
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
