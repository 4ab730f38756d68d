//! Packing against its short twins.

use proptest::prelude::*;

use super::best_fit::best_fit;
use super::bounds::lower_bound;
use super::classes::Classes;
use super::first_fit::first_fit;
use super::next_fit::next_fit;
use super::recipe::Recipe;
use super::worst_fit::fewest;
use super::*;
use crate::{Interrupt, Overlong};

/// Which open pack a sample goes to.
#[derive(Clone, Copy, PartialEq)]
enum Fit {
    Next,
    First,
    Best,
}

/// The textbook: samples from the longest down, one by one.
fn naive(lengths: &[u32], capacity: u32, max_samples: usize, fit: Fit) -> Vec<Vec<u32>> {
    let mut order = lengths.to_vec();
    order.sort_unstable_by(|a, b| b.cmp(a));
    let mut packs: Vec<Vec<u32>> = Vec::new();
    for length in order {
        let room = |pack: &Vec<u32>| capacity - pack.iter().sum::<u32>();
        let fits = |pack: &Vec<u32>| room(pack) >= length && pack.len() < max_samples;
        let from = if fit == Fit::Next { packs.len().saturating_sub(1) } else { 0 };
        let candidates = packs.iter_mut().skip(from).filter(|pack| fits(pack));
        let chosen =
            if fit == Fit::Best { candidates.min_by_key(|pack| room(pack)) } else { candidates.into_iter().next() };
        match chosen {
            Some(pack) => pack.push(length),
            None => packs.push(vec![length]),
        }
    }
    packs
}

/// The fewest packs, by trying everything.
fn exact(lengths: &[u32], capacity: u32, max_samples: u32) -> u64 {
    fn put(lengths: &[u32], packs: &mut Vec<(u32, u32)>, limits: (u32, u32), best: &mut usize) {
        let Some((&length, rest)) = lengths.split_first() else {
            *best = packs.len();
            return;
        };
        for i in 0..packs.len() {
            if packs[i].0 + length <= limits.0 && packs[i].1 < limits.1 {
                packs[i] = (packs[i].0 + length, packs[i].1 + 1);
                put(rest, packs, limits, best);
                packs[i] = (packs[i].0 - length, packs[i].1 - 1);
            }
        }
        if packs.len() + 1 < *best {
            packs.push((length, 1));
            put(rest, packs, limits, best);
            packs.pop();
        }
    }
    let mut best = lengths.len() + 1;
    put(lengths, &mut Vec::new(), (capacity, max_samples), &mut best);
    best as u64
}

fn classes(lengths: &[u32]) -> Classes {
    let mut order = lengths.to_vec();
    order.sort_unstable();
    let runs = order.chunk_by(|a, b| a == b);
    let (sizes, counts) = runs.map(|run| (run[0], run.len() as u32)).unzip();
    Classes { sizes, counts }
}

/// The recipe written out as lengths, with checks that it is a partition within the limits.
fn written(recipe: &Recipe, classes: &Classes, capacity: u32, max_samples: u32) -> Vec<Vec<u32>> {
    let mut used = vec![0; classes.counts.len()];
    let (mut packs, mut content) = (Vec::new(), Vec::new());
    for &(pack, times) in &recipe.packs {
        recipe.read(pack, &mut content);
        let mut lengths = Vec::new();
        for &(class, count) in &content {
            used[class as usize] += count * times;
            lengths.extend(std::iter::repeat_n(classes.sizes[class as usize], count as usize));
        }
        assert!(lengths.iter().sum::<u32>() <= capacity);
        assert!(lengths.len() <= max_samples as usize && !lengths.is_empty() && times > 0);
        packs.extend(std::iter::repeat_n(lengths, times as usize));
    }
    assert_eq!(used, classes.counts);
    packs
}

fn rooms(packs: &[Vec<u32>], capacity: u32) -> Vec<u32> {
    let mut rooms: Vec<u32> = packs.iter().map(|pack| capacity - pack.iter().sum::<u32>()).collect();
    rooms.sort_unstable();
    rooms
}

fn case() -> impl Strategy<Value = (u32, Vec<u32>)> {
    (1_u32..60)
        .prop_flat_map(|capacity| (Just(capacity), 0..=capacity))
        .prop_flat_map(|(capacity, longest)| (Just(capacity), prop::collection::vec(0..=longest, 0..120)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn packs_are_the_textbooks((capacity, lengths) in case(), cap in prop_oneof![Just(u32::MAX), 1_u32..6]) {
        let classes = classes(&lengths);
        let limit = cap.min(10_000) as usize;
        let first = first_fit(&classes, capacity, cap, Interrupt::NEVER).unwrap();
        prop_assert_eq!(written(&first, &classes, capacity, cap), naive(&lengths, capacity, limit, Fit::First));
        let next = next_fit(&classes, capacity, cap);
        prop_assert_eq!(written(&next, &classes, capacity, cap), naive(&lengths, capacity, limit, Fit::Next));
        let best = written(&best_fit(&classes, capacity, cap, Interrupt::NEVER).unwrap(), &classes, capacity, cap);
        if cap == u32::MAX {
            prop_assert_eq!(rooms(&best, capacity), rooms(&naive(&lengths, capacity, limit, Fit::Best), capacity));
        }
        let bound = lower_bound(&classes, capacity, cap);
        prop_assert!(bound <= best.len() as u64 && bound >= classes.units().div_ceil(u64::from(capacity)));
        if let Some(spread) = fewest(&classes, capacity, cap, bound, best.len() as u64, Interrupt::NEVER).unwrap() {
            let spread = written(&spread, &classes, capacity, cap);
            prop_assert!(spread.len() < best.len() && bound <= spread.len() as u64);
        }
    }

    #[test]
    fn bounds_are_true_and_optimal_is_near(
        lengths in prop::collection::vec(1_u32..30, 1..9), capacity in 30_u32..60, cap in prop_oneof![Just(u32::MAX), 1_u32..4],
    ) {
        let fewest = exact(&lengths, capacity, cap);
        let options = PackOptions {
            capacity, method: Method::Optimal, max_samples: cap, multiple_of: 1, overlong: Overlong::Error, work: 1 << 24,
        };
        let packer = Packer::new(&lengths, options, Interrupt::NEVER).unwrap();
        prop_assert!(packer.lower_bound() <= fewest && fewest <= packer.packs());
        prop_assert!(packer.packs() <= fewest + 1);
    }

    #[test]
    fn every_sample_is_packed_once_within_the_limits(
        lengths in prop::collection::vec(0_u32..200, 0..200),
        capacity in 1_u32..120,
        multiple_of in 1_u32..9,
        cap in prop_oneof![Just(u32::MAX), 1_u32..6],
        overlong in prop_oneof![Just(Overlong::Drop), Just(Overlong::Truncate), Just(Overlong::Split)],
        method in prop_oneof![Just(Method::SumOfSquares), Just(Method::BestFit), Just(Method::FirstFit), Just(Method::NextFit), Just(Method::Optimal), Just(Method::Auto)],
    ) {
        prop_assume!(multiple_of <= capacity);
        let options = PackOptions { capacity, method, max_samples: cap, multiple_of, overlong, work: 1 << 24 };
        let packer = Packer::new(&lengths, options, Interrupt::NEVER).unwrap();
        let packs = packer.packs_of(&lengths, None, Interrupt::NEVER).unwrap();
        let number = packs.rows.offsets.len() as u64 - 1;
        prop_assert!(method == Method::SumOfSquares || number == packer.packs());
        prop_assert!(packer.lower_bound() <= number);
        let mut parts = vec![Vec::new(); lengths.len()];
        let mut real_tokens = 0;
        for pack in packs.rows.offsets.windows(2) {
            let entries = pack[0] as usize..pack[1] as usize;
            prop_assert!(!entries.is_empty() && entries.len() <= cap as usize);
            let mut occupied = 0;
            for entry in entries {
                let sample = packs.rows.indices[entry] as usize;
                let [start, stop] = packs.segments.as_ref().map_or([0, lengths[sample]], |segments| segments[entry]);
                parts[sample].push((start, stop));
                real_tokens += u64::from(stop - start);
                occupied += (stop - start).next_multiple_of(multiple_of);
            }
            prop_assert!(occupied <= capacity);
        }
        prop_assert_eq!(real_tokens, packer.real_tokens());
        let usable = capacity - capacity % multiple_of;
        for (sample, (&length, parts)) in lengths.iter().zip(&mut parts).enumerate() {
            parts.sort_unstable();
            let dropped = packs.dropped.contains(&(sample as u32));
            let expected: Vec<(u32, u32)> = match overlong {
                _ if length <= usable => vec![(0, length)],
                Overlong::Truncate => vec![(0, usable)],
                Overlong::Split => (0..length.div_ceil(usable)).map(|i| (i * usable, ((i + 1) * usable).min(length))).collect(),
                _ => vec![],
            };
            prop_assert_eq!(&*parts, &expected);
            prop_assert_eq!(dropped, expected.is_empty());
        }
    }
}

#[test]
fn huge_capacities_and_lengths_need_no_table() {
    let lengths = [i32::MAX as u32, 5, 0, 1 << 30, 1 << 30, 7];
    let options = PackOptions {
        capacity: i32::MAX as u32,
        method: Method::BestFit,
        max_samples: u32::MAX,
        multiple_of: 1,
        overlong: Overlong::Error,
        work: 0,
    };
    let packer = Packer::new(&lengths, options, Interrupt::NEVER).unwrap();
    assert_eq!((packer.packs(), packer.lower_bound()), (3, 3));
    let packs = packer.packs_of(&lengths, None, Interrupt::NEVER).unwrap();
    assert_eq!(packs.rows.indices.len(), lengths.len());
}
