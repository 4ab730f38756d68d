//! Plans keep their promises over random lengths, layouts and settings; the fuzz target of the core, in `cargo test`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say so at once")]

use lengthwise_core::rng::mix;
use lengthwise_core::{
    Batch, Interrupt, LastBatch, Limits, Order, Overlong, PadTo, Padded, Plan, Planner, Remainder, Settings, Spare,
};
use proptest::prelude::*;

#[derive(Debug, Clone)]
struct Case {
    lengths: Vec<u32>,
    layout: Padded,
    settings: Settings,
    epoch: u64,
}

/// Lengths of every kind: a few values, token data, and up to the largest.
fn lengths() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        prop::collection::vec(0_u32..40, 1..200),
        prop::collection::vec(1_u32..9000, 1..120),
        prop::collection::vec(prop_oneof![1_u32..100, 60_000_u32..70_000, Just(i32::MAX as u32)], 1..60),
        (1_u32..500, 1_usize..100).prop_map(|(length, n)| vec![length; n]),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    let max_tokens = prop_oneof![1_u64..3000, 60_000_u64..80_000, Just(u64::MAX / 2)];
    let max_samples = prop_oneof![1_u32..20, Just(u32::MAX)];
    (max_tokens, max_samples, prop_oneof![Just(1_u32), 1_u32..70], prop_oneof![Just(1_u32), 1_u32..9]).prop_map(
        |(max_tokens, max_samples, multiple_of, samples_multiple_of)| Limits {
            max_tokens,
            max_samples,
            multiple_of: multiple_of.min(max_tokens as u32),
            samples_multiple_of: samples_multiple_of.min(max_samples),
        },
    )
}

fn cases() -> impl Strategy<Value = Case> {
    let layout = (
        limits(),
        prop::collection::btree_set(prop_oneof![1_u32..60, 1_u32..9000, 1_u32..=i32::MAX as u32], 1..12),
        prop_oneof![Just(PadTo::Longest), Just(PadTo::Boundary)],
        prop_oneof![Just(Order::Bucketed), Just(Order::Shuffled), Just(Order::Sorted)],
        prop_oneof![Just(LastBatch::Keep), Just(LastBatch::Merge), Just(LastBatch::Drop)],
        any::<bool>(),
    );
    let settings = (
        any::<u64>(),
        prop_oneof![Just(1_u32), 1_u32..9],
        prop_oneof![3 => Just(1_u32), 1 => 1_u32..4],
        prop_oneof![
            Just(Overlong::Error),
            Just(Overlong::Drop),
            Just(Overlong::Truncate),
            Just(Overlong::Split),
            Just(Overlong::Alone)
        ],
        prop_oneof![Just(Remainder::Split), Just(Remainder::Repeat), Just(Remainder::Drop)],
    );
    (lengths(), layout, settings, any::<u64>()).prop_map(|(lengths, layout, settings, epoch)| {
        let (limits, boundaries, pad_to, order, last_batch, longest_first) = layout;
        // Fixed shapes beyond the budget are refused: see `bounds_beyond_the_budget_are_refused`.
        let fits = |&bound: &u32| pad_to == PadTo::Longest || bound <= limits.longest();
        let mut boundaries: Vec<u32> = boundaries.into_iter().filter(fits).collect();
        if boundaries.is_empty() {
            boundaries.push(limits.longest());
        }
        let (seed, world_size, accumulate, overlong, remainder) = settings;
        Case {
            lengths,
            layout: Padded { limits, boundaries, pad_to, order, last_batch, longest_first },
            settings: Settings { seed, world_size, accumulate, overlong, remainder, threads: 1, count_tokens: false },
            epoch,
        }
    })
}

/// Memory that others have used.
fn used(samples: usize) -> Spare<u32> {
    let spare = Spare::new(1);
    spare.keep(vec![u32::MAX; 4 * samples + 1000]);
    spare
}

impl Case {
    fn plan(&self, threads: u32) -> Option<Plan<u32>> {
        let settings = Settings { threads, ..self.settings };
        // Pieces of a sample of 2^31 tokens are too many for a test.
        let limit = self.layout.limits.longest().min(*self.layout.boundaries.last().unwrap());
        let pieces: u64 = self.lengths.iter().map(|&length| u64::from(length / limit)).sum();
        if self.settings.overlong == Overlong::Split && pieces > 10_000 {
            return None;
        }
        let planner = Planner::new(&self.lengths, self.layout.clone(), settings, Interrupt::NEVER).ok()?;
        planner.plan(&self.lengths, self.epoch, &used(self.lengths.len()), Interrupt::NEVER).ok()
    }

    fn limit(&self) -> u32 {
        self.layout.limits.longest().min(*self.layout.boundaries.last().unwrap())
    }
}

/// The tokens that entry `position` of the plan stands for.
fn tokens(case: &Case, plan: &Plan<u32>, position: usize) -> u32 {
    match &plan.segments {
        Some(segments) => segments[position][1] - segments[position][0],
        None => case.lengths[plan.indices[position] as usize],
    }
}

fn step(case: &Case) -> usize {
    (case.settings.world_size * case.settings.accumulate) as usize
}

fn check_limits(case: &Case, plan: &Plan<u32>) -> Result<(), TestCaseError> {
    let limits = &case.layout.limits;
    for batch in &plan.batches {
        let longest = batch.positions().map(|position| tokens(case, plan, position)).max().unwrap();
        prop_assert!(batch.size > 0 && longest <= batch.padded_length);
        prop_assert_eq!(batch.padded_length % limits.multiple_of, 0);
        if longest > case.limit() {
            prop_assert_eq!((case.settings.overlong, batch.size), (Overlong::Alone, 1));
            prop_assert_eq!(batch.padded_length, limits.padded(longest));
            continue;
        }
        prop_assert!(batch.tokens() <= limits.max_tokens);
        prop_assert!(batch.size <= limits.max_samples);
        let unit = limits.samples_multiple_of;
        prop_assert!(batch.size < unit || batch.size % unit == 0);
        match case.layout.pad_to {
            PadTo::Longest => prop_assert_eq!(batch.padded_length, limits.padded(longest)),
            PadTo::Boundary => {
                let mut bounds = case.layout.boundaries.iter().map(|&bound| limits.padded(bound));
                prop_assert!(bounds.any(|bound| bound == batch.padded_length));
                prop_assert!(batch.size <= limits.rows(batch.padded_length));
            }
        }
    }
    Ok(())
}

/// Every token of every sample is used once, or its absence or repetition is counted.
fn check_accounts(case: &Case, plan: &Plan<u32>) -> Result<(), TestCaseError> {
    let mut used = vec![0_u32; plan.indices.len()];
    plan.batches.iter().flat_map(Batch::positions).for_each(|position| used[position] += 1);
    let again: u64 = used.iter().map(|&times| u64::from(times.saturating_sub(1))).sum();
    prop_assert_eq!(again, plan.accounts.repeated);
    let unused = used.iter().filter(|&&times| times == 0).count() as u64;
    prop_assert_eq!(unused, plan.accounts.dropped);
    let overlong = case.lengths.iter().filter(|&&length| length > case.limit()).count() as u64;
    let accounts = plan.accounts;
    let counted = match case.settings.overlong {
        Overlong::Error => 0,
        Overlong::Drop => overlong,
        Overlong::Truncate => accounts.truncated,
        Overlong::Split => accounts.split,
        Overlong::Alone => accounts.alone,
    };
    prop_assert_eq!(counted, overlong);
    // Entries are all samples once, or all their pieces.
    let mut tokens_of: Vec<u64> = vec![0; case.lengths.len()];
    for (position, &sample) in plan.indices.iter().enumerate() {
        tokens_of[sample as usize] += u64::from(tokens(case, plan, position));
    }
    let cut = |&length: &u32| {
        let truncated = case.settings.overlong == Overlong::Truncate;
        u64::from(if truncated { length.min(case.limit()) } else { length })
    };
    prop_assert_eq!(tokens_of, case.lengths.iter().map(cut).collect::<Vec<_>>());
    Ok(())
}

/// The rule that a batch is closed by the first sample that would break a limit, written down naively.
fn naive_fill(lengths: &[u32], limits: &Limits) -> Vec<(usize, u32)> {
    let (mut batches, mut first) = (Vec::new(), 0);
    while first < lengths.len() {
        let fits = |size: usize| {
            let longest = lengths[first..first + size].iter().copied().max().unwrap();
            size as u64 <= u64::from(limits.rows(limits.padded(longest)))
        };
        let mut size = 1;
        while first + size < lengths.len() && fits(size + 1) {
            size += 1;
        }
        let unit = limits.samples_multiple_of as usize;
        if size >= unit {
            size -= size % unit;
        }
        let longest = lengths[first..first + size].iter().copied().max().unwrap();
        batches.push((size, limits.padded(longest)));
        first += size;
    }
    batches
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn promises_hold(case in cases()) {
        let Some(plan) = case.plan(1) else { return Ok(()) };
        prop_assert_eq!(plan.batches.len() % step(&case), 0);
        check_limits(&case, &plan)?;
        check_accounts(&case, &plan)?;
        for threads in [2, 5] {
            let other = case.plan(threads);
            prop_assert_eq!(Some(&plan), other.as_ref());
        }
        if case.layout.longest_first {
            let step = &plan.batches[..step(&case).min(plan.batches.len())];
            let longest = |batches: &[Batch]| batches.iter().map(|batch| batch.padded_length).max();
            prop_assert_eq!(longest(step), longest(&plan.batches));
        }
    }

    #[test]
    fn batches_are_filled_as_the_naive_rule_says(case in cases()) {
        let mut case = case;
        (case.settings.world_size, case.settings.accumulate) = (1, 1);
        case.layout.pad_to = PadTo::Longest;
        case.layout.last_batch = LastBatch::Keep;
        case.settings.overlong = Overlong::Truncate;
        let Some(plan) = case.plan(1) else { return Ok(()) };
        let mut batches = plan.batches.clone();
        batches.sort_by_key(|batch| batch.start);
        let lengths: Vec<u32> = (0..plan.indices.len()).map(|position| tokens(&case, &plan, position)).collect();
        let bounds: &[u32] = if case.layout.order == Order::Bucketed { &case.layout.boundaries } else { &[u32::MAX] };
        let bucket = |length: &u32| bounds.partition_point(|bound| bound < length);
        let groups = lengths.chunk_by(|a, b| bucket(a) == bucket(b));
        let expected: Vec<(usize, u32)> = groups.flat_map(|group| naive_fill(group, &case.layout.limits)).collect();
        let found: Vec<_> = batches.iter().map(|batch| (batch.size as usize, batch.padded_length)).collect();
        prop_assert_eq!(found, expected);
        if case.layout.order == Order::Sorted {
            prop_assert!(lengths.is_sorted_by(|a, b| a >= b));
        }
    }

    #[test]
    fn counting_tokens_changes_nothing_else(case in cases()) {
        let mut case = case;
        let plain = case.plan(1);
        case.settings.count_tokens = true;
        for threads in [1, 3] {
            let mut counted = case.plan(threads);
            if let Some(plan) = &mut counted {
                for batch in &plan.batches {
                    let each = batch.positions().map(|entry| u64::from(tokens(&case, plan, entry)));
                    prop_assert_eq!(batch.real_tokens, each.sum::<u64>());
                }
                plan.batches.iter_mut().for_each(|batch| batch.real_tokens = 0);
            }
            prop_assert_eq!(&counted, &plain);
        }
    }

    #[test]
    fn indices_of_both_widths_agree(case in cases()) {
        let Some(narrow) = case.plan(1) else { return Ok(()) };
        let planner = Planner::new(&case.lengths, case.layout.clone(), case.settings, Interrupt::NEVER).unwrap();
        let wide: Plan<u64> = planner.plan(&case.lengths, case.epoch, &Spare::new(0), Interrupt::NEVER).unwrap();
        prop_assert_eq!(wide.indices, narrow.indices.iter().map(|&index| u64::from(index)).collect::<Vec<_>>());
        prop_assert_eq!((wide.batches, wide.segments, wide.accounts), (narrow.batches, narrow.segments, narrow.accounts));
    }
}

fn simple(max_tokens: u64, boundaries: Vec<u32>) -> (Padded, Settings) {
    let limits = Limits { max_tokens, max_samples: u32::MAX, multiple_of: 1, samples_multiple_of: 1 };
    let layout = Padded {
        limits,
        boundaries,
        pad_to: PadTo::Longest,
        order: Order::Bucketed,
        last_batch: LastBatch::Keep,
        longest_first: false,
    };
    let settings = Settings {
        seed: 0,
        world_size: 1,
        accumulate: 1,
        overlong: Overlong::Error,
        remainder: Remainder::Split,
        threads: 1,
        count_tokens: false,
    };
    (layout, settings)
}

#[test]
fn bounds_beyond_the_budget_are_refused() {
    let (layout, settings) = simple(100, vec![50, 101]);
    let layout = Padded { pad_to: PadTo::Boundary, ..layout };
    let error = Planner::new(&[10_u32, 20], layout, settings, Interrupt::NEVER).unwrap_err();
    assert!(error.to_string().starts_with("boundaries[1] is 101"), "{error}");
    // The longest length is one multiple short of where this bound would be rounded to.
    let (layout, settings) = simple(u64::MAX, vec![i32::MAX as u32]);
    let limits = Limits { multiple_of: 58_950_531, ..layout.limits };
    let layout = Padded { pad_to: PadTo::Boundary, limits, ..layout };
    let error = Planner::new(&[0_u32; 16], layout, settings, Interrupt::NEVER).unwrap_err();
    assert!(error.to_string().starts_with("boundaries[0] is 2147483647 (2181169647 after rounding"), "{error}");
}

#[test]
fn sums_past_the_largest_integers() {
    let lengths = vec![i32::MAX as u32; 64];
    let (layout, settings) = simple(u64::MAX, vec![i32::MAX as u32]);
    let planner = Planner::new(&lengths, layout, settings, Interrupt::NEVER).unwrap();
    let plan: Plan<u32> = planner.plan(&lengths, u64::MAX, &Spare::new(0), Interrupt::NEVER).unwrap();
    assert_eq!((plan.batches.len(), plan.batches[0].size, plan.batches[0].tokens()), (1, 64, 64 * i32::MAX as u64));
}

#[test]
fn one_giant_among_many() {
    let mut lengths = vec![1_u16; 10_000];
    lengths[5000] = u16::MAX;
    let (layout, settings) = simple(65_535, vec![1, 65_535]);
    let planner = Planner::new(&lengths, layout, settings, Interrupt::NEVER).unwrap();
    let plan: Plan<u32> = planner.plan(&lengths, 0, &Spare::new(0), Interrupt::NEVER).unwrap();
    let mut sizes: Vec<u32> = plan.batches.iter().map(|batch| batch.size).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 9999]);
}

#[test]
fn interrupts_are_heard() {
    let lengths = vec![7_u16; 100_000];
    let (layout, settings) = simple(700, vec![7]);
    let planner = Planner::new(&lengths, layout, settings, Interrupt::NEVER).unwrap();
    for threads in [1, 3] {
        let planner =
            Planner::new(&lengths, simple(700, vec![7]).0, Settings { threads, ..settings }, Interrupt::NEVER).unwrap();
        let stopped = planner.plan::<_, u32>(&lengths, 0, &Spare::new(0), Interrupt::new(&|| false));
        assert_eq!(stopped, Err(lengthwise_core::Error::Interrupted));
    }
    assert!(planner.plan::<_, u32>(&lengths[1..], 0, &Spare::new(0), Interrupt::NEVER).is_err());
}

/// Samples travel to their bins in integers of one width or another, without the bits that can be told from where they lie.
/// What comes out must not show it: lengths of more bits give the same plan.
#[test]
fn plans_are_the_same_however_samples_are_packed() {
    let scaled = |samples: u64, shift: u32, threads: u32| {
        let lengths: Vec<u32> = (0..samples).map(|i| ((1 + mix(i) % 900) as u32) << shift).collect();
        let (layout, settings) = simple(20_000 << shift, vec![100 << shift, 350 << shift, 900 << shift]);
        let planner = Planner::new(&lengths, layout, Settings { threads, ..settings }, Interrupt::NEVER).unwrap();
        let plan: Plan<u32> = planner.plan(&lengths, 3, &Spare::new(0), Interrupt::NEVER).unwrap();
        let wide: Plan<u64> = planner.plan(&lengths, 3, &Spare::new(0), Interrupt::NEVER).unwrap();
        assert!(plan.indices.iter().map(|&index| u64::from(index)).eq(wide.indices));
        assert_eq!(plan.batches, wide.batches);
        let unscaled = |batch: &Batch| Batch { padded_length: batch.padded_length >> shift, ..*batch };
        (plan.indices, plan.batches.iter().map(unscaled).collect::<Vec<_>>())
    };
    // Spans of 2^22, 2^15 and 2^12 samples; and too short to be worth it.
    for (samples, shifts) in [(600_001, [0, 7, 13, 21]), (100_001, [0, 7, 12, 21])] {
        let first = scaled(samples, 0, 1);
        for shift in shifts {
            assert!([1, 3].into_iter().all(|threads| scaled(samples, shift, threads) == first), "{shift}");
        }
    }
}

/// Every order of the samples of one bucket is equally likely, through all stages of the plan.
#[test]
fn samples_are_shuffled_uniformly() {
    let lengths = [5_u16, 5, 5, 5, 9, 9];
    let (layout, settings) = simple(1000, vec![5, 9]);
    let planner = Planner::new(&lengths, layout, settings, Interrupt::NEVER).unwrap();
    let epochs = 48_000;
    let mut seen = std::collections::HashMap::new();
    for epoch in 0..epochs {
        let plan: Plan<u32> = planner.plan(&lengths, epoch, &Spare::new(0), Interrupt::NEVER).unwrap();
        *seen.entry((plan.indices, plan.batches[0].start)).or_insert(0_u32) += 1;
    }
    // 4! orders of the first bucket, 2! of the second, 2 of the batches.
    assert_eq!(seen.len(), 96);
    let expected = epochs as f64 / 96.0;
    let chi2: f64 = seen.values().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
    assert!((chi2 - 95.0).abs() < 4.0 * (2.0 * 95.0_f64).sqrt(), "chi2 {chi2} of 95 degrees");
}
