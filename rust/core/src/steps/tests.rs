use proptest::prelude::*;

use super::*;
use crate::batch::Batch;
use crate::limits::Limits;
use crate::ranks::Remainder;
use crate::rng::Words;

/// Batches of one budget in buckets of very different lengths.
#[derive(Debug, Clone)]
struct Owned {
    sizes: Vec<u32>,
    padded_lengths: Vec<u32>,
    tokens: Vec<u64>,
    costs: Vec<f64>,
}

impl Owned {
    fn new(batches: usize, seed: u64) -> Self {
        let mut words = Words::new(Key::new(seed, 0, Stream::Reference));
        let lengths: Vec<u32> = (0..batches).map(|_| [400, 900, 1700, 2600, 4300][words.below(5) as usize]).collect();
        let sizes: Vec<u32> = lengths.iter().map(|length| 65_536 / length).collect();
        let fills: Vec<u64> = (0..batches).map(|_| 80 + words.below(20)).collect();
        let tokens = sizes.iter().zip(&lengths).zip(&fills).map(|((&s, &l), f)| u64::from(s * l) * f / 100).collect();
        let costs =
            sizes.iter().zip(&lengths).map(|(&s, &l)| f64::from(s * l) * (1.0 + f64::from(l) / 8192.0)).collect();
        Self { sizes, padded_lengths: lengths, tokens, costs }
    }

    fn table(&self) -> Table<'_> {
        Table { sizes: &self.sizes, padded_lengths: &self.padded_lengths, tokens: &self.tokens, costs: &self.costs }
    }

    fn means(&self, order: &[u32], step: usize) -> Vec<f64> {
        order.chunks(step).map(|batches| self.mean(batches)).collect()
    }

    fn mean(&self, batches: &[u32]) -> f64 {
        let tokens: u64 = batches.iter().map(|&b| self.tokens[b as usize]).sum();
        let samples: u64 = batches.iter().map(|&b| u64::from(self.sizes[b as usize])).sum();
        tokens as f64 / samples as f64
    }

    /// What the slowest rank of each step pays.
    fn slowest(&self, order: &[u32], ranks: Ranks<'_>) -> Vec<f64> {
        let per_rank = |step: &[u32], rank: usize| {
            let cost: f64 = step.iter().skip(rank).step_by(ranks.world_size).map(|&b| self.costs[b as usize]).sum();
            cost / ranks.speeds.get(rank).copied().unwrap_or(1.0)
        };
        order
            .chunks(ranks.step())
            .map(|step| (0..ranks.world_size).map(|rank| per_rank(step, rank)).fold(0.0, f64::max))
            .collect()
    }
}

fn ranks(world_size: usize, accumulate: usize) -> Ranks<'static> {
    Ranks { world_size, accumulate, speeds: &[] }
}

const METHODS: [Method; 5] =
    [Method::Shuffled, Method::Stratified, Method::Windowed(4), Method::SameShape, Method::Routed];

proptest! {
    #[test]
    fn every_batch_runs_once(steps in 0_usize..20, world_size in 1_usize..9, accumulate in 1_usize..5, which in 0..METHODS.len(), seed: u64) {
        let owned = Owned::new(steps * world_size * accumulate, seed);
        let who = ranks(world_size, accumulate);
        let mut order = arrange(owned.table(), who, METHODS[which], true, seed, 1).unwrap();
        prop_assert_eq!(&order, &arrange(owned.table(), who, METHODS[which], true, seed, 1).unwrap());
        order.sort_unstable();
        prop_assert_eq!(order, (0..owned.sizes.len() as u32).collect::<Vec<_>>());
    }

    #[test]
    fn windows_lose_no_more_than_their_bound(steps in 1_usize..40, world_size in 1_usize..9, window in 1_usize..9, seed: u64) {
        let owned = Owned::new(steps * world_size, seed);
        let who = ranks(world_size, 1);
        let order = arrange(owned.table(), who, Method::Windowed(window), false, seed, 0).unwrap();
        let lost: f64 = owned.slowest(&order, who).iter().sum::<f64>() - owned.costs.iter().sum::<f64>() / world_size as f64;
        let low = owned.costs.iter().copied().fold(f64::MAX, f64::min);
        let high = owned.costs.iter().copied().fold(0.0, f64::max);
        let windows = steps.div_ceil(window) as f64;
        prop_assert!(lost <= windows * (high - low) + 1e-6 * high, "{lost} of {}", windows * (high - low));
    }

    #[test]
    fn steps_of_one_shape_lose_nothing(
        sizes in (1_u32..30).prop_flat_map(|most| prop::collection::vec((1..=most, 0_usize..4), 1..60)),
        world_size in 1_usize..5,
        accumulate in 1_usize..4,
        which in 0_usize..3,
    ) {
        let remainder = [Remainder::Split, Remainder::Repeat, Remainder::Drop][which];
        let limits = Limits { max_tokens: 1 << 20, max_samples: 64, multiple_of: 1, samples_multiple_of: 1 };
        let mut start = 0;
        let batches: Vec<Batch> = sizes
            .iter()
            .map(|&(size, shape)| {
                let batch = Batch { start, size, padded_length: [16, 64, 256, 1024][shape], ..Batch::default() };
                start += u64::from(size);
                batch
            })
            .collect();
        let Ok(made) = of_one_shape(&batches, world_size, accumulate, remainder, &limits) else {
            prop_assert!(remainder != Remainder::Repeat, "one batch can be repeated as often as is needed");
            return Ok(());
        };
        prop_assert_eq!(made.batches.len() % (world_size * accumulate), 0);
        let samples: u64 = made.batches.iter().map(|batch| u64::from(batch.size)).sum();
        prop_assert_eq!(samples, start + made.repeated - made.dropped);
        let mut seen: Vec<u64> = made.batches.iter().flat_map(|b| b.start..b.start + u64::from(b.size)).collect();
        seen.sort_unstable();
        if remainder == Remainder::Split {
            prop_assert_eq!(seen, (0..start).collect::<Vec<_>>());
        }
        // Lengths with enough samples for all ranks have whole groups, save for one that lends batches to those without.
        let (mut scarce, mut uneven) = (0, 0);
        for length in [16, 64, 256, 1024] {
            let before: u64 = batches.iter().filter(|b| b.padded_length == length).map(|b| u64::from(b.size)).sum();
            let after = made.batches.iter().filter(|b| b.padded_length == length).count();
            let present = batches.iter().filter(|b| b.padded_length == length).count();
            let enough = before >= present.next_multiple_of(world_size) as u64;
            scarce += usize::from(!enough);
            uneven += usize::from(enough && after % world_size != 0);
        }
        prop_assert!(uneven <= usize::from(scarce > 0 && remainder == Remainder::Split), "{uneven} lengths");
    }
}

#[test]
fn stratified_steps_have_the_mean_length_of_the_epoch() {
    let owned = Owned::new(8 * 500, 3);
    let spread = |method| {
        let order = arrange(owned.table(), ranks(8, 1), method, false, 3, 0).unwrap();
        let means = owned.means(&order, 8);
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        (means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / means.len() as f64).sqrt() / mean
    };
    assert!(spread(Method::Stratified) < 0.1 * spread(Method::Shuffled), "{}", spread(Method::Stratified));
    assert!(spread(Method::Routed) < 0.1 * spread(Method::Shuffled));
}

/// Longest processing time with equal counts as it is written down: the deviations of the steps.
fn twin(deviations: &[f64], step: usize) -> Vec<f64> {
    let (low, high) = deviations.iter().fold((0.0_f64, 0.0_f64), |(low, high), &d| (low.min(d), high.max(d)));
    let mut costs: Vec<f64> =
        deviations.iter().map(|&deviation| if -low > high { high - deviation } else { deviation - low }).collect();
    costs.sort_by(|a, b| b.total_cmp(a));
    let mut steps = vec![(0.0_f64, 0); costs.len() / step];
    for cost in costs {
        let open = steps.iter_mut().filter(|(_, held)| *held < step);
        let Some(lightest) = open.min_by(|a, b| a.0.total_cmp(&b.0)) else { break };
        *lightest = (lightest.0 + cost, lightest.1 + 1);
    }
    steps.into_iter().map(|(sum, _)| sum).collect()
}

#[test]
fn steps_are_as_even_as_those_of_longest_processing_time() {
    let spread = |sums: &[f64]| {
        let mean = sums.iter().sum::<f64>() / sums.len() as f64;
        (sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / sums.len() as f64).sqrt()
    };
    for (step, steps) in [(2, 300), (8, 200), (16, 40), (64, 20), (5, 1)] {
        let owned = Owned::new(step * steps, 21);
        let all: Vec<u32> = (0..owned.sizes.len() as u32).collect();
        let mean = owned.mean(&all);
        let deviation =
            |batch: u32| owned.tokens[batch as usize] as f64 - mean * f64::from(owned.sizes[batch as usize]);
        let exact = twin(&all.iter().map(|&batch| deviation(batch)).collect::<Vec<_>>(), step);
        let order = stratify::stratified(owned.table(), &all, step);
        let sums: Vec<f64> = order.chunks(step).map(|batches| batches.iter().map(|&b| deviation(b)).sum()).collect();
        let most = all.iter().map(|&batch| deviation(batch).abs()).fold(0.0, f64::max);
        assert!(spread(&sums) <= 1.05 * spread(&exact) + 0.001 * most, "{} {}", spread(&sums), spread(&exact));
    }
}

#[test]
fn the_order_of_steps_is_uniform_and_fresh() {
    let (steps, epochs) = (40, 20_000_u64);
    let mut owned = Owned::new(steps, 23);
    owned.padded_lengths.fill(64);
    owned.sizes.fill(1);
    owned.tokens = (0..steps as u64).map(|step| 1000 + step).collect();
    let (mut places, mut pairs, mut correlations) = (vec![0_u32; steps * steps], vec![0_u32; steps * steps], 0.0);
    for epoch in 0..epochs {
        let mut order: Vec<u32> = (0..steps as u32).collect();
        sequence::uncorrelated(owned.table(), &mut order, 1, false, Key::new(1, epoch, Stream::Steps));
        order.iter().enumerate().for_each(|(place, &step)| places[place * steps + step as usize] += 1);
        order.windows(2).for_each(|pair| pairs[pair[0] as usize * steps + pair[1] as usize] += 1);
        let middle = 1000.0 + (steps - 1) as f64 / 2.0;
        let value = |step: u32| 1000.0 + f64::from(step) - middle;
        correlations += order.windows(2).map(|pair| value(pair[0]) * value(pair[1])).sum::<f64>();
    }
    let uneven = |counts: &[u32], cells: usize, total: u64| {
        let expected = total as f64 / cells as f64;
        counts
            .iter()
            .filter(|&&count| count > 0)
            .map(|&count| (f64::from(count) / expected - 1.0).abs())
            .fold(0.0, f64::max)
    };
    // 500 of each are expected: 0.3 are 7 deviations.
    assert!(uneven(&places, steps * steps, epochs * steps as u64) < 0.3);
    assert!(uneven(&pairs, steps * (steps - 1), epochs * (steps as u64 - 1)) < 0.3);
    let square = (0..steps).map(|step| (step as f64 - (steps - 1) as f64 / 2.0).powi(2)).sum::<f64>();
    assert!((correlations / (square * epochs as f64)).abs() < 0.01);
}

#[test]
fn neighbouring_steps_do_not_correlate() {
    for (steps, seed) in [(200, 0), (500, 1), (4000, 2)] {
        let owned = Owned::new(4 * steps, seed);
        for method in [Method::Stratified, Method::Windowed(16), Method::SameShape] {
            let order = arrange(owned.table(), ranks(4, 1), method, true, seed, 0).unwrap();
            let means = owned.means(&order, 4);
            let (a, b) = (&means[..steps - 1], &means[1..]);
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            let (mean_a, mean_b) = (mean(a), mean(b));
            let product: f64 = a.iter().zip(b).map(|(x, y)| (x - mean_a) * (y - mean_b)).sum();
            let square = |values: &[f64], mean: f64| values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
            let correlation = product / (square(a, mean_a) * square(b, mean_b)).sqrt();
            assert!(correlation.abs() < 0.0101, "{method:?} of {steps}: {correlation}");
        }
    }
}

#[test]
fn one_shape_per_step() {
    let owned = Owned::new(8 * 100, 5);
    let order = arrange(owned.table(), ranks(4, 1), Method::SameShape, false, 5, 0).unwrap();
    let mixed = order.chunks(4).filter(|step| {
        let mut lengths = step.iter().map(|&batch| owned.padded_lengths[batch as usize]);
        let first = lengths.next();
        lengths.any(|length| Some(length) != first)
    });
    assert!(mixed.count() <= 4, "at most what is left of five lengths");
}

#[test]
fn routed_ranks_get_their_lengths() {
    let owned = Owned::new(12 * 50, 7);
    let order = arrange(owned.table(), ranks(4, 3), Method::Routed, false, 7, 0).unwrap();
    for step in order.chunks(12) {
        let longest_of = |rank: usize| step.iter().skip(rank).step_by(4).map(|&b| owned.mean(&[b])).fold(0.0, f64::max);
        let shortest_of =
            |rank: usize| step.iter().skip(rank).step_by(4).map(|&b| owned.mean(&[b])).fold(f64::MAX, f64::min);
        for rank in 0..3 {
            assert!(longest_of(rank) <= shortest_of(rank + 1));
        }
    }
}

#[test]
fn accumulated_batches_are_shared_evenly_and_fast_ranks_get_more() {
    let owned = Owned::new(32 * 60, 9);
    let lost = |order: &[u32], who: Ranks<'_>| {
        let ideal: f64 =
            owned.costs.iter().sum::<f64>() / if who.speeds.is_empty() { 8.0 } else { who.speeds.iter().sum() };
        owned.slowest(order, who).iter().sum::<f64>() / ideal - 1.0
    };
    let plain: Vec<u32> = (0..owned.sizes.len() as u32).collect();
    let who = ranks(8, 4);
    let even = arrange(owned.table(), who, Method::Shuffled, false, 9, 0).unwrap();
    assert!(lost(&even, who) < 0.03 && lost(&even, who) < 0.15 * lost(&plain, who), "{}", lost(&even, who));
    let speeds = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.4];
    let who = Ranks { speeds: &speeds, ..who };
    let uneven = arrange(owned.table(), who, Method::Shuffled, false, 9, 0).unwrap();
    assert!(lost(&uneven, who) < lost(&even, who), "{} {}", lost(&uneven, who), lost(&even, who));
    for step in even.chunks(32) {
        for rank in 0..8 {
            let costs: Vec<f64> = step.iter().skip(rank).step_by(8).map(|&b| owned.costs[b as usize]).collect();
            assert!(costs.windows(2).all(|pair| pair[0] >= pair[1]), "the costliest first");
        }
    }
}

#[test]
fn ranks_share_the_heavy_batches() {
    let owned = Owned::new(8 * 400, 11);
    let order = arrange(owned.table(), ranks(4, 2), Method::Stratified, false, 11, 0).unwrap();
    let cost = |rank: usize| order.iter().skip(rank).step_by(4).map(|&b| owned.costs[b as usize]).sum::<f64>();
    let mean = owned.costs.iter().sum::<f64>() / 4.0;
    assert!((0..4).all(|rank| (cost(rank) / mean - 1.0).abs() < 0.02));
}

#[test]
fn the_longest_batch_comes_first() {
    let mut owned = Owned::new(64, 13);
    owned.padded_lengths[37] = 9000;
    for method in &METHODS[1..] {
        let order = arrange(owned.table(), ranks(4, 2), *method, true, 13, 0).unwrap();
        assert!(order[..8].contains(&37), "{method:?}");
    }
}

#[test]
fn the_stream_is_pinned() {
    let owned = Owned::new(24, 17);
    let order = |method| arrange(owned.table(), ranks(4, 1), method, false, 17, 2).unwrap();
    assert_eq!(order(Method::Stratified)[..8], [3, 21, 17, 19, 7, 12, 11, 20]);
    assert_eq!(order(Method::Windowed(2))[..8], [1, 16, 17, 9, 18, 6, 11, 3]);
}

#[test]
fn bad_requests_say_what_is_wrong() {
    let owned = Owned::new(6, 1);
    let says = |ranks: Ranks<'_>, table: Table<'_>, text: &str| {
        let message = arrange(table, ranks, Method::Stratified, false, 0, 0).err().map(|e| e.to_string());
        assert!(message.as_deref().unwrap_or_default().contains(text), "{message:?}");
    };
    says(ranks(4, 1), owned.table(), "6 batches, which fill no whole number of steps of world_size=4");
    says(Ranks { speeds: &[1.0], ..ranks(2, 1) }, owned.table(), "rank_speed has 1 values");
    says(Ranks { speeds: &[1.0, 0.0], ..ranks(2, 1) }, owned.table(), "rank_speed[1] is 0");
    says(ranks(2, 1), Table { costs: &[0.0], ..owned.table() }, "different lengths");
    says(ranks(2, 1), Table { costs: &[0.0, 1.0, f64::NAN, 0.0, 0.0, 0.0], ..owned.table() }, "cost of batch 2 is NaN");
}
