//! Objectives that count batches against their definitions.

use super::*;
use crate::Limits;

fn limits(max_tokens: u64, max_samples: u32) -> Limits {
    Limits { max_tokens, max_samples, multiple_of: 1, samples_multiple_of: 1 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn whole_batches_are_fewest(
        lengths in few_lengths(),
        max_tokens in 4_u64..60,
        max_samples in prop_oneof![Just(u32::MAX), 1_u32..9],
    ) {
        let (candidates, limits) = (candidates(&lengths, 1), limits(max_tokens, max_samples));
        let best = brute_force(candidates.bounds().len(), |start, end| {
            let samples = candidates.below()[end] - candidates.below()[start];
            Some((samples as u64).div_ceil(limits.rows(candidates.bounds()[end - 1]).into()).into())
        });
        let objective = Objective::Batches(&limits);
        let curve = curve(&candidates, objective, 100, &Constraints::default(), Interrupt::NEVER).unwrap();
        for ((k, best), on_curve) in (1..).zip(best).zip(curve) {
            let found =
                optimal(&candidates, objective, Number::Exactly(k), &Constraints::default(), Interrupt::NEVER).unwrap();
            prop_assert_eq!(Some(found.cost), best);
            let bound = found.lower_bound.unwrap();
            prop_assert!(bound <= found.cost && found.cost < bound + k as i128, "{} {} {}", bound, found.cost, k);
            prop_assert_eq!(found, on_curve);
        }
    }

    #[test]
    fn expected_tokens_are_those_of_every_sequence_of_draws(
        lengths in prop::collection::vec(1_u32..12, 1..60),
        max_tokens in 8_u64..80,
        max_samples in prop_oneof![Just(u32::MAX), 1_u32..9],
    ) {
        let (candidates, limits) = (candidates(&lengths, 1), limits(max_tokens, max_samples));
        let expected = expected_tokens(&candidates, &limits);
        // One bucket: its cost is one cell of the table.
        let found = optimal(
            &candidates, Objective::Longest(&limits), Number::Exactly(1), &Constraints::default(), Interrupt::NEVER,
        );
        prop_assert!((found.unwrap().cost as f64 - expected).abs() <= 0.5 + 1e-4 * expected);
    }

    #[test]
    fn descent_ends_between_the_optimum_and_its_start(
        lengths in prop::collection::vec(1_u32..60, 1..200),
        max_tokens in 60_u64..400,
        k in 1_usize..6,
    ) {
        let (candidates, limits) = (candidates(&lengths, 1), limits(max_tokens, u32::MAX));
        let k = k.min(candidates.bounds().len());
        let solve = |objective| {
            optimal(&candidates, objective, Number::Exactly(k), &Constraints::default(), Interrupt::NEVER).unwrap()
        };
        let cost = |bounds: &[u32]| longest::total(&candidates, bounds, &limits);
        let found = descend(&candidates, &limits, Number::Exactly(k), Interrupt::NEVER).unwrap();
        prop_assert_eq!(found.len(), k);
        prop_assert!(found.is_sorted_by(|a, b| a < b) && found.last() == candidates.bounds().last());
        let (best, start) = (solve(Objective::Longest(&limits)), solve(Objective::Boundary));
        let slack = 1.0 + 1e-9;
        prop_assert!(cost(&best.bounds) <= cost(&found) * slack && cost(&found) <= cost(&start.bounds) * slack);
    }
}

/// Tokens of one bucket of all samples: every state (samples, longest) of a batch with its probability.
fn expected_tokens(candidates: &Candidates, limits: &Limits) -> f64 {
    let (bounds, all) = (candidates.bounds(), candidates.samples());
    let chance: Vec<f64> = candidates.below().windows(2).map(|pair| (pair[1] - pair[0]) as f64 / all as f64).collect();
    let rows = |cell: usize| limits.rows(bounds[cell]).min(all as u32);
    let (mut first, mut ratio) = (chance.clone(), 0.0);
    for _ in 0..2 {
        let (mut size, mut state) = (1, std::mem::replace(&mut first, vec![0.0; bounds.len()]));
        let (mut samples, mut tokens) = (0.0, 0.0);
        while state.iter().sum::<f64>() > 0.0 {
            let mut next = vec![0.0; bounds.len()];
            for (longest, &share) in state.iter().enumerate() {
                for (drawn, &chance) in chance.iter().enumerate() {
                    if size < rows(longest.max(drawn)) {
                        next[longest.max(drawn)] += share * chance;
                    } else {
                        samples += share * chance * f64::from(size);
                        tokens += share * chance * f64::from(size) * f64::from(bounds[longest]);
                        first[drawn] += share * chance;
                    }
                }
            }
            (size, state) = (size + 1, next);
        }
        ratio = tokens / samples;
    }
    all as f64 * ratio
}

#[test]
fn rare_giants_among_samples_of_which_many_fit_a_batch() {
    let one = |lengths: &[u32], counts: &[u64], max_tokens| {
        let candidates = Candidates::new(&Histogram::from_counts(lengths, counts).unwrap(), 1, &[]).unwrap();
        let (one, all) = (Number::Exactly(1), Constraints::default());
        let limits = limits(max_tokens, u32::MAX);
        let found = optimal(&candidates, Objective::Longest(&limits), one, &all, Interrupt::NEVER).unwrap();
        (found.cost as f64, candidates, limits)
    };
    for giants in [1, 4, 40] {
        let (cost, candidates, limits) = one(&[1, 3, 2000], &[200_000, 1000, giants], 40_000);
        let expected = expected_tokens(&candidates, &limits);
        assert!((cost / expected - 1.0).abs() < 1e-3, "{cost} {expected}");
    }
    // Four billion sizes of a batch, one after the other, would take minutes.
    let (cost, ..) = one(&[3, 1_073_741_623], &[1 << 40, 2], 54_975_581_388_800);
    assert!(cost > 3.0 * (1_u64 << 40) as f64, "{cost}");
}

#[test]
fn more_boundaries_than_a_grid_holds_are_refused() {
    let candidates = candidates(&(1..2000).collect::<Vec<_>>(), 1);
    let limits = limits(5000, u32::MAX);
    let error = optimal(
        &candidates,
        Objective::Longest(&limits),
        Number::Exactly(1500),
        &Constraints::default(),
        Interrupt::NEVER,
    );
    assert!(error.unwrap_err().to_string().contains("at most 1024"));
}

#[test]
fn as_many_batches_as_are_worth_their_overhead() {
    let candidates = candidates(&(0..5000).map(|i| i * i % 700 + 1).collect::<Vec<_>>(), 1);
    let limits = limits(4096, u32::MAX);
    for (objective, overhead) in [(Objective::Batches(&limits), 3), (Objective::Longest(&limits), 9000)] {
        let solve =
            |number| optimal(&candidates, objective, number, &Constraints::default(), Interrupt::NEVER).unwrap();
        let total = |found: &Solution| found.cost + i128::from(overhead) * found.bounds.len() as i128;
        let auto = solve(Number::Worth(overhead));
        let k = auto.bounds.len();
        assert!(k > 1 && (1..k + 5).all(|k| total(&auto) <= total(&solve(Number::Exactly(k))) + 1));
    }
}

/// A grid has a few of the candidates, but what satisfies the constraints among all of them is found, or refused by all.
#[test]
fn constraints_that_all_candidates_satisfy_are_satisfied_on_a_grid() {
    let lengths: Vec<u32> =
        (0..60_000_u32).map(|i| i.wrapping_mul(2_654_435_761) % 8000 * (i % 7 + 1) / 7 + 60).collect();
    let candidates = candidates(&lengths, 1);
    assert!(candidates.bounds().len() > 6000);
    let limits = limits(65_536, u32::MAX);
    let none = Constraints::default;
    let cases = [
        (60, Constraints { max_ratio: 1.1, ..none() }),
        (120, Constraints { max_ratio: 1.05, ..none() }),
        (8, Constraints { min_count: 7485, ..none() }),
        (12, Constraints { min_count: 2000, max_ratio: 1.7, include: vec![candidates.bounds()[1234]] }),
    ];
    for (k, constraints) in cases {
        for objective in [Objective::Batches(&limits), Objective::Longest(&limits)] {
            let solve = |number| optimal(&candidates, objective, number, &constraints, Interrupt::NEVER);
            let found = solve(Number::Exactly(k)).unwrap();
            let Constraints { min_count, max_ratio, include } = &constraints;
            assert!(found.bounds.len() == k && found.counts.iter().all(|count| count >= min_count));
            assert!(found.bounds.windows(2).all(|pair| f64::from(pair[1]) <= max_ratio * f64::from(pair[0])));
            assert!(include.iter().all(|bound| found.bounds.contains(bound)));
            assert!(found.lower_bound.is_none_or(|bound| found.cost <= bound + k as i128), "{found:?}");
            assert!(solve(Number::Worth(0)).is_ok() && solve(Number::Worth(u64::MAX)).is_ok());
            let most = if k < 20 { 20 } else { 0 };
            let numbers = |objective| {
                let curve = curve(&candidates, objective, most, &constraints, Interrupt::NEVER);
                curve.map(|curve| curve.iter().map(|found| found.bounds.len()).collect::<Vec<_>>())
            };
            assert_eq!(numbers(objective), numbers(Objective::Boundary));
        }
    }
    let fails = |constraints: &Constraints| {
        let objective = Objective::Longest(&limits);
        optimal(&candidates, objective, Number::Exactly(8), constraints, Interrupt::NEVER).unwrap_err().to_string()
    };
    let few = Constraints { min_count: 7500, ..none() };
    let all = optimal(&candidates, Objective::Boundary, Number::Exactly(8), &few, Interrupt::NEVER).unwrap_err();
    assert_eq!(fails(&few), all.to_string());
}
