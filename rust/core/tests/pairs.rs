//! Plans of samples with two lengths keep their promises over random lengths, layouts and settings.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say so at once")]

use lengthwise_core::{
    Batch, Interrupt, LastBatch, Limits, Overlong, PadTo, PaddedPairs, Padding, PairPlanner, Plan, Remainder, Settings,
    Spare,
};
use proptest::prelude::*;

#[derive(Debug, Clone)]
struct Case {
    lengths: Vec<[u32; 2]>,
    layout: PaddedPairs,
    settings: Settings,
}

/// Lengths that fit one integer together, and some that do not.
fn length() -> impl Strategy<Value = u32> {
    prop_oneof![6 => 0_u32..60, 1 => 60_000_u32..70_000, 1 => Just(i32::MAX as u32)]
}

fn cases() -> impl Strategy<Value = Case> {
    let limits = (
        prop_oneof![200_u64..3000, 100_000_u64..400_000, Just(u64::MAX / 2)],
        prop_oneof![8_u32..20, Just(u32::MAX)],
        prop_oneof![Just(1_u32), 1_u32..9],
    );
    let layout = (
        prop::collection::btree_set((1_u32..=1_u32 << 20, 1_u32..=1_u32 << 20), 0..6),
        [1_u32..4, 1_u32..4],
        [1_u32..9, 1_u32..9],
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    );
    let settings = (
        any::<u64>(),
        1_u32..5,
        1_u32..3,
        prop_oneof![Just(Overlong::Error), Just(Overlong::Drop), Just(Overlong::Alone)],
        prop_oneof![Just(Remainder::Split), Just(Remainder::Repeat), Just(Remainder::Drop)],
    );
    let lengths = prop::collection::vec([length(), length()], 1..150);
    (lengths, limits, layout, settings).prop_map(|(lengths, limits, layout, settings)| {
        let (max_tokens, max_samples, samples_multiple_of) = limits;
        let (cells, weights, multiple_of, longest, keep, longest_first) = layout;
        let (seed, world_size, accumulate, overlong, remainder) = settings;
        let padding = Padding { multiple_of, weights };
        // Fixed shapes beyond the budget are refused.
        let fits = |&[x, y]: &[u32; 2]| longest || u64::from(weights[0] * x + weights[1] * y) + 50 <= max_tokens;
        let cells = cells.into_iter().map(|(x, y)| [x % 80, y]).chain([[70, 70], [1 << 17, 1 << 17]]);
        let mut cells: Vec<[u32; 2]> = cells.map(|[x, y]| [x.max(1), y]).filter(fits).chain([[10, 20]]).collect();
        cells.sort_unstable();
        cells.dedup();
        Case {
            lengths,
            layout: PaddedPairs {
                limits: Limits { max_tokens, max_samples, multiple_of: 1, samples_multiple_of },
                padding,
                cells,
                pad_to: if longest { PadTo::Longest } else { PadTo::Boundary },
                last_batch: if keep { LastBatch::Keep } else { LastBatch::Drop },
                longest_first,
            },
            settings: Settings { seed, world_size, accumulate, overlong, remainder, threads: 1, count_tokens: false },
        }
    })
}

fn planned(case: &Case, threads: u32) -> Option<(Plan<u32>, Vec<[u32; 2]>)> {
    let settings = Settings { threads, ..case.settings };
    let planner = PairPlanner::new(&case.lengths, case.layout.clone(), settings, Interrupt::NEVER).ok()?;
    let spare = Spare::new(threads);
    if threads > 1 {
        // Memory that others have used.
        spare.keep(vec![u32::MAX; 4 * case.lengths.len() + 1000]);
    }
    planner.plan(&case.lengths, 3, &spare, Interrupt::NEVER).ok()
}

fn samples<'a>(plan: &'a Plan<u32>, batch: &Batch) -> &'a [u32] {
    &plan.indices[batch.start as usize..][..batch.size as usize]
}

fn padded(case: &Case, pair: [u32; 2]) -> [u32; 2] {
    let multiple_of = case.layout.padding.multiple_of;
    [0, 1].map(|side| pair[side].max(1).next_multiple_of(multiple_of[side]))
}

fn tokens(case: &Case, shape: [u32; 2]) -> u64 {
    let weights = case.layout.padding.weights;
    u64::from(weights[0]) * u64::from(shape[0]) + u64::from(weights[1]) * u64::from(shape[1])
}

/// The cheapest cell that holds the sample, if it fits a batch.
fn cell(case: &Case, pair: [u32; 2]) -> Option<[u32; 2]> {
    let most = case.layout.limits.max_tokens.min(i32::MAX as u64);
    let holds = |bounds: &&[u32; 2]| pair[0] <= bounds[0] && pair[1] <= bounds[1];
    let cells = case.layout.cells.iter().filter(holds).filter(|_| tokens(case, padded(case, pair)) <= most);
    cells.min_by_key(|&&bounds| (tokens(case, padded(case, bounds)), bounds)).copied()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn plans_of_pairs_keep_their_promises(case in cases()) {
        let made = planned(&case, 1);
        prop_assert_eq!(&made, &planned(&case, 3));
        let Some((plan, shapes)) = made else { return Ok(()) };
        let mut counting = case.clone();
        counting.settings.count_tokens = true;
        for batch in &planned(&counting, 1).unwrap().0.batches {
            let pairs = samples(&plan, batch).iter().map(|&sample| case.lengths[sample as usize]);
            prop_assert_eq!(batch.real_tokens, pairs.map(|pair| tokens(&case, pair).min(i32::MAX as u64)).sum::<u64>());
        }
        prop_assert_eq!(shapes.len(), plan.batches.len());
        let step = (case.settings.world_size * case.settings.accumulate) as usize;
        prop_assert_eq!(plan.batches.len() % step, 0);
        let limits = &case.layout.limits;
        let mut used = vec![0_u32; case.lengths.len()];
        for (batch, &shape) in plan.batches.iter().zip(&shapes) {
            let samples = samples(&plan, batch);
            for &sample in samples {
                used[sample as usize] += 1;
            }
            let pairs = || samples.iter().map(|&sample| case.lengths[sample as usize]);
            let longest = pairs().fold([0, 0], |a, b| [a[0].max(b[0]), a[1].max(b[1])]);
            let cells: Vec<_> = pairs().map(|pair| cell(&case, pair)).collect();
            prop_assert!(!cells.is_empty() && cells.iter().all(|&other| other == cells[0]), "of one cell");
            let fixed = cells[0].filter(|_| case.layout.pad_to == PadTo::Boundary);
            prop_assert_eq!(shape, padded(&case, fixed.unwrap_or(longest)));
            if cells[0].is_none() {
                prop_assert_eq!((case.settings.overlong, batch.size), (Overlong::Alone, 1));
                continue;
            }
            prop_assert!(u64::from(batch.size) * tokens(&case, shape) <= limits.max_tokens);
            prop_assert!(batch.size <= limits.max_samples);
            let unit = limits.samples_multiple_of;
            prop_assert!(batch.size < unit || batch.size % unit == 0);
        }
        let again: u64 = used.iter().map(|&times| u64::from(times.saturating_sub(1))).sum();
        let unused = used.iter().filter(|&&times| times == 0).count() as u64;
        prop_assert_eq!((again, unused), (plan.accounts.repeated, plan.accounts.dropped));
        if case.layout.longest_first && !shapes.is_empty() {
            let longest = shapes.iter().map(|&shape| tokens(&case, shape)).max();
            prop_assert_eq!(shapes[..step].iter().map(|&shape| tokens(&case, shape)).max(), longest);
        }
    }
}
