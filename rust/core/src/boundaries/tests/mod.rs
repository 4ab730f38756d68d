//! Boundaries against every subset of the candidates.

mod constrained;
mod objectives;
mod striped;

use proptest::prelude::*;

use super::*;
use crate::{Histogram, Interrupt, MAX_LENGTH, Result};

fn histogram(lengths: &[u32]) -> Histogram {
    Histogram::of(lengths, Interrupt::NEVER).unwrap()
}

fn candidates(lengths: &[u32], multiple_of: u32) -> Candidates {
    Candidates::new(&histogram(lengths), multiple_of, &[]).unwrap()
}

fn exactly(candidates: &Candidates, costs: Option<&[u64]>, k: usize) -> Result<Solution> {
    let objective = costs.map_or(Objective::Boundary, Objective::Costs);
    optimal(candidates, objective, Number::Exactly(k), &Constraints::default(), Interrupt::NEVER)
}

/// The least cost for every number of boundaries, over all subsets of m candidates; `bucket` is what one costs, if it is
/// allowed.
fn brute_force(m: usize, bucket: impl Fn(usize, usize) -> Option<i128>) -> Vec<Option<i128>> {
    let mut best = vec![None; m];
    for subset in 1_u32 << (m - 1)..1 << m {
        let ends: Vec<usize> = (1..=m).filter(|end| subset >> (end - 1) & 1 == 1).collect();
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let Some(cost) = starts.zip(&ends).map(|(start, &end)| bucket(start, end)).sum::<Option<i128>>() else {
            continue;
        };
        let slot: &mut Option<i128> = &mut best[ends.len() - 1];
        *slot = Some(slot.map_or(cost, |least| least.min(cost)));
    }
    best
}

/// The cost of the samples in (start, end].
fn samples_cost(candidates: &Candidates, costs: &[u64], start: usize, end: usize) -> i128 {
    i128::from(candidates.below()[end] - candidates.below()[start]) * i128::from(costs[end - 1])
}

/// A few lengths, not all zero.
fn few_lengths() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(0_u32..12, 1..60).prop_filter("a sample above zero", |lengths| lengths.iter().any(|&l| l > 0))
}

/// Costs of every shape: flat stretches, jumps, up to beyond 64 bits for a total.
fn any_costs(m: usize) -> impl Strategy<Value = Vec<u64>> {
    let steps = prop_oneof![Just(0_u64), 0_u64..3, 0_u64..1000, 0_u64..1 << 57];
    prop::collection::vec(steps, m).prop_map(|steps| {
        steps
            .into_iter()
            .scan(0, |sum, step| {
                *sum += step;
                Some(*sum)
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn optimal_for_every_k(
        (lengths, costs) in few_lengths().prop_flat_map(|lengths| {
            let m = candidates(&lengths, 1).bounds().len();
            (Just(lengths), any_costs(m))
        }),
        overhead in 0_u64..2000,
    ) {
        let candidates = candidates(&lengths, 1);
        let best = brute_force(costs.len(), |start, end| Some(samples_cost(&candidates, &costs, start, end)));
        let curve = curve(&candidates, Objective::Costs(&costs), 100, &Constraints::default(), Interrupt::NEVER).unwrap();
        prop_assert_eq!(curve.len(), best.len());
        for ((k, best), on_curve) in (1..).zip(&best).zip(&curve) {
            let found = exactly(&candidates, Some(&costs), k).unwrap();
            prop_assert_eq!((found.bounds.len(), Some(found.cost), found.lower_bound), (k, *best, *best));
            prop_assert!(found.bounds.is_sorted_by(|a, b| a < b));
            prop_assert_eq!((on_curve.bounds.len(), Some(on_curve.cost), on_curve.lower_bound), (k, *best, *best));
        }
        let total = |(k, cost): (i128, &Option<i128>)| cost.unwrap() + k * i128::from(overhead);
        let objective = Objective::Costs(&costs);
        let auto = optimal(&candidates, objective, Number::Worth(overhead), &Constraints::default(), Interrupt::NEVER);
        let auto = auto.unwrap();
        prop_assert_eq!(Some(total((auto.bounds.len() as i128, &Some(auto.cost)))), (1..).zip(&best).map(total).min());
    }

    #[test]
    fn the_bound_proves_large_instances(
        lengths in prop::collection::vec(1_u32..60_000, 2000..12_000),
        k in prop_oneof![1_usize..40, 1_usize..1000],
    ) {
        let candidates = candidates(&lengths, 1);
        let k = k.min(candidates.bounds().len());
        let found = exactly(&candidates, None, k).unwrap();
        prop_assert_eq!((found.bounds.len(), Some(found.cost)), (k, found.lower_bound));
        let padded = lengths.iter().map(|length| i128::from(found.bounds[found.bounds.partition_point(|b| b < length)]));
        prop_assert_eq!(padded.sum::<i128>(), found.cost);
    }
}

#[test]
fn zero_length_samples_fall_in_the_first_bucket() {
    let candidates = candidates(&[0, 0, 3, 5], 1);
    assert_eq!((candidates.bounds(), candidates.below()), (&[3, 5][..], &[0, 3, 4][..]));
}

#[test]
fn aligned_and_included_bounds_are_candidates() {
    let candidates = Candidates::new(&histogram(&[0, 1, 8, 9, 40]), 8, &[64, 24, 16]).unwrap();
    assert_eq!((candidates.bounds(), candidates.below()), (&[8, 16, 24, 40, 64][..], &[0, 3, 4, 4, 5, 5][..]));
}

#[test]
fn bad_input_is_named() {
    let fails = |lengths: &[u32], multiple_of, include: &[u32], text: &str| {
        let error = Candidates::new(&histogram(lengths), multiple_of, include).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    };
    fails(&[], 1, &[], "lengths is empty");
    fails(&[0, 0], 1, &[], "only zeros");
    fails(&[1], 0, &[], "multiple_of is 0");
    fails(&[MAX_LENGTH], 8, &[], "multiple_of is 8");
    fails(&[1], 1, &[5, 0], "include[1] is 0");
    fails(&[1], 8, &[12], "use 16");
    let candidates = candidates(&[1, 2, MAX_LENGTH], 1);
    for (k, costs, text) in [
        (0, None, "k is 0"),
        (4, None, "at most 3"),
        (1, Some(&[1][..]), "costs has 1 values"),
        (1, Some(&[1, 3, 2]), "must not fall"),
        (1, Some(&[1, 3, 1 << 62]), "too large"),
    ] {
        let error = exactly(&candidates, costs, k).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}
