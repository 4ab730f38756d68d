//! Constraints against every subset of the candidates that satisfies them.

use super::*;

fn solve(candidates: &Candidates, costs: &[u64], number: Number, constraints: &Constraints) -> Result<Solution> {
    optimal(candidates, Objective::Costs(costs), number, constraints, Interrupt::NEVER)
}

/// The definition of the constraints.
fn allowed(candidates: &Candidates, constraints: &Constraints, start: usize, end: usize) -> bool {
    let (bounds, below) = (candidates.bounds(), candidates.below());
    let ratio = start == 0 || f64::from(bounds[end - 1]) <= constraints.max_ratio * f64::from(bounds[start - 1]);
    let skipped = bounds[start..end - 1].iter().any(|bound| constraints.include.contains(bound));
    ratio && !skipped && (below[end] - below[start]) as u64 >= constraints.min_count
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn optimal_among_those_allowed(
        lengths in few_lengths(),
        exponent in 1_u32..4,
        min_count in prop_oneof![Just(0_u64), 1_u64..12],
        max_ratio in prop_oneof![Just(f64::INFINITY), 1.05_f64..3.0],
        include in prop::collection::btree_set(1_u32..14, 0..3),
        overhead in 0_u64..300,
    ) {
        let include: Vec<u32> = include.into_iter().collect();
        let candidates = Candidates::new(&histogram(&lengths), 1, &include).unwrap();
        let costs: Vec<u64> = candidates.bounds().iter().map(|&bound| u64::from(bound).pow(exponent)).collect();
        let constraints = Constraints { min_count, max_ratio, include };
        let best = brute_force(costs.len(), |start, end| {
            allowed(&candidates, &constraints, start, end).then(|| samples_cost(&candidates, &costs, start, end))
        });
        for (k, best) in (1..).zip(&best) {
            match solve(&candidates, &costs, Number::Exactly(k), &constraints) {
                Ok(found) => {
                    prop_assert_eq!((found.bounds.len(), Some(found.cost), found.lower_bound), (k, *best, *best));
                    let ends = found.bounds.iter().map(|bound| candidates.bounds().binary_search(bound).unwrap() + 1);
                    let ends: Vec<usize> = ends.collect();
                    let starts = std::iter::once(0).chain(ends.iter().copied());
                    prop_assert!(starts.zip(&ends).all(|(start, &end)| allowed(&candidates, &constraints, start, end)));
                }
                Err(error) => {
                    prop_assert_eq!(*best, None, "{}", error);
                    let text = error.to_string();
                    prop_assert!(["min_count", "max_ratio", "include"].iter().any(|name| text.contains(name)), "{}", text);
                }
            }
        }
        let curve = curve(&candidates, Objective::Costs(&costs), best.len(), &constraints, Interrupt::NEVER);
        let costs_by_k = curve.iter().flatten().map(|found| (found.bounds.len(), found.cost, found.lower_bound));
        let allowed_by_k = (1..).zip(&best).filter_map(|(k, best)| Some((k, (*best)?, *best)));
        prop_assert!(costs_by_k.eq(allowed_by_k));
        let total = |(k, cost): (i128, &Option<i128>)| cost.map(|cost| cost + k * i128::from(overhead));
        let auto = solve(&candidates, &costs, Number::Worth(overhead), &constraints);
        let auto = auto.ok().and_then(|auto| total((auto.bounds.len() as i128, &Some(auto.cost))));
        prop_assert_eq!(auto, (1..).zip(&best).filter_map(total).min());
    }
}

#[test]
fn the_constraint_to_blame_is_named_with_how_far() {
    let candidates = candidates(&[10, 10, 11, 12, 30, 31, 40], 1);
    let fails = |k, constraints: Constraints, text: &str| {
        let costs: Vec<u64> = (1..=candidates.bounds().len() as u64).collect();
        let error = solve(&candidates, &costs, Number::Exactly(k), &constraints).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    };
    let none = Constraints::default;
    fails(2, Constraints { min_count: 8, ..none() }, "there are only 7");
    fails(3, Constraints { min_count: 3, ..none() }, "at most 2 boundaries, not k=3; with 3 it can be at most 2");
    fails(1, Constraints { include: vec![11, 30], ..none() }, "at least 3 boundaries, but k is 1");
    fails(
        5,
        Constraints { max_ratio: 1.5, ..none() },
        "between 12 and 30, 2.5000 times as long; that allows at most 3",
    );
    fails(1, Constraints { max_ratio: 1.0, ..none() }, "must be above 1");
    fails(1, Constraints { max_ratio: f64::NAN, ..none() }, "must be above 1");
    fails(3, Constraints { max_ratio: 1.5, include: vec![12], ..none() }, "must be at least 2.5000");
    let three = Constraints { min_count: 3, max_ratio: 2.6, include: vec![11] };
    fails(2, three, "min_count is 3, but beside max_ratio=2.6 and include=[11] it can be at most 1");
    let both = Constraints { min_count: 2, max_ratio: 1.3, ..none() };
    fails(3, both, "min_count=2 and max_ratio=1.3 together allow only 1 to 1");
}

#[test]
fn a_number_that_no_charge_leads_to_is_found() {
    // Two boundaries save little and three save much: the cost is not convex in their number.
    let lengths: Vec<u32> = [vec![1; 50], vec![45, 90, 100]].concat();
    let candidates = candidates(&lengths, 1);
    let costs: Vec<u64> = candidates.bounds().iter().map(|&bound| bound.into()).collect();
    let constraints = Constraints { max_ratio: 2.0, ..Constraints::default() };
    let found = solve(&candidates, &costs, Number::Exactly(2), &constraints).unwrap();
    assert_eq!(found.bounds, [90, 100]);
    assert_eq!(solve(&candidates, &costs, Number::Exactly(3), &constraints).unwrap().bounds, [45, 90, 100]);
}

#[test]
fn large_instances_keep_their_proof() {
    let lengths: Vec<u32> = (0..50_000_u32).map(|i| i.wrapping_mul(2_654_435_761) % 90 * (i % 97 + 1) + 60).collect();
    let candidates = Candidates::new(&histogram(&lengths), 1, &[2048]).unwrap();
    let costs: Vec<u64> = candidates.bounds().iter().map(|&bound| bound.into()).collect();
    let constraints = Constraints { min_count: 800, max_ratio: 1.9, include: vec![2048] };
    for k in [9, 16, 40] {
        let found = solve(&candidates, &costs, Number::Exactly(k), &constraints).unwrap();
        assert_eq!((found.bounds.len(), Some(found.cost)), (k, found.lower_bound));
        assert!(found.bounds.contains(&2048) && found.counts.iter().all(|&count| count >= 800));
        assert!(found.bounds.windows(2).all(|pair| f64::from(pair[1]) <= 1.9 * f64::from(pair[0])));
    }
}
