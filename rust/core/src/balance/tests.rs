use proptest::prelude::*;

use super::*;

/// Karmarkar-Karp as it is written down: dense states, a scan for the two largest spreads.
fn twin(costs: &[u64], parts: usize, counted: bool) -> u64 {
    let mut order: Vec<u64> = costs.to_vec();
    order.sort_unstable_by(|a, b| b.cmp(a));
    let dense = |chunk: &[u64]| {
        let mut state = chunk.to_vec();
        state.resize(parts, 0);
        state
    };
    let mut states: Vec<Vec<u64>> = order.chunks(if counted { parts } else { 1 }).map(dense).collect();
    let spread = |state: &Vec<u64>| state[0] - state[parts - 1];
    while states.len() > 1 {
        states.sort_by_key(|state| (spread(state), state[0]));
        let (Some(a), Some(b)) = (states.pop(), states.pop()) else { break };
        let mut joined: Vec<u64> = a.iter().zip(b.iter().rev()).map(|(x, y)| x + y).collect();
        joined.sort_unstable_by(|a, b| b.cmp(a));
        states.push(joined);
    }
    states.pop().map_or(0, |state| state[0])
}

/// The smallest largest sum over all divisions.
fn optimum(costs: &[u64], parts: usize, counted: bool) -> u64 {
    let (least, most) = if counted { (costs.len() / parts, costs.len().div_ceil(parts)) } else { (0, costs.len()) };
    place(costs, &mut vec![0; parts], &mut vec![0; parts], (least, most))
}

fn place(costs: &[u64], sums: &mut [u64], counts: &mut [usize], (least, most): (usize, usize)) -> u64 {
    let Some((&cost, rest)) = costs.split_first() else {
        let equal = counts.iter().all(|&count| count >= least);
        return if equal { sums.iter().copied().max().unwrap_or(0) } else { u64::MAX };
    };
    let mut best = u64::MAX;
    for part in 0..sums.len() {
        if counts[part] < most {
            sums[part] += cost;
            counts[part] += 1;
            best = best.min(place(rest, sums, counts, (least, most)));
            sums[part] -= cost;
            counts[part] -= 1;
        }
    }
    best
}

fn largest(parts: &Parts) -> u64 {
    parts.sums.iter().copied().max().unwrap_or(0)
}

fn assert_divides(found: &Parts, costs: &[u64], parts: usize) {
    assert_eq!(found.offsets.len(), parts + 1);
    let mut seen = found.indices.clone();
    seen.sort_unstable();
    assert_eq!(seen, (0..costs.len() as u32).collect::<Vec<_>>());
    for (part, window) in found.offsets.windows(2).enumerate() {
        let items = &found.indices[window[0] as usize..window[1] as usize];
        assert_eq!(items.iter().map(|&i| costs[i as usize]).sum::<u64>(), found.sums[part]);
    }
    assert!(largest(found) >= found.lower_bound);
}

fn assert_equal_counts(found: &Parts) {
    let counts: Vec<i64> = found.offsets.windows(2).map(|window| window[1] - window[0]).collect();
    assert!(counts.iter().max().unwrap_or(&0) - counts.iter().min().unwrap_or(&0) <= 1, "{counts:?}");
}

fn some_costs() -> impl Strategy<Value = Vec<u64>> {
    prop_oneof![
        prop::collection::vec(0_u64..6, 0..40),
        prop::collection::vec(0_u64..1000, 0..120),
        prop::collection::vec((0_u32..40).prop_map(|bits| 1_u64 << bits), 0..60),
        prop::collection::vec(0_u64..=1 << 50, 0..60),
    ]
}

proptest! {
    #[test]
    fn never_worse_than_karmarkar_karp(costs in some_costs(), parts in 1_usize..20, counted: bool) {
        let rule = Rule { equal_count: counted, limit: None };
        let found = balance(&costs, parts, rule, Interrupt::NEVER).unwrap();
        assert_divides(&found, &costs, parts);
        prop_assert!(largest(&found) <= twin(&costs, parts, counted));
        if counted {
            assert_equal_counts(&found);
        }
    }

    #[test]
    fn the_sparse_form_equals_the_dense_one(costs in some_costs(), parts in 1_usize..20, counted: bool) {
        let items = Sorted::by_descending(&costs);
        let part_of = karmarkar_karp::assign(&items, parts, counted, Interrupt::NEVER).unwrap();
        let found = collect(&items, parts, &part_of, 0);
        prop_assert_eq!(largest(&found), twin(&costs, parts, counted));
    }

    #[test]
    fn close_to_the_optimum_of_small_cases(costs in prop::collection::vec(1_u64..60, 1..9), parts in 1_usize..4, counted: bool) {
        let rule = Rule { equal_count: counted, limit: None };
        let found = balance(&costs, parts, rule, Interrupt::NEVER).unwrap();
        let best = optimum(&costs, parts, counted);
        prop_assert!(found.lower_bound <= best);
        prop_assert!(largest(&found) * 6 <= best * 7, "{} against {best}", largest(&found));
    }

    #[test]
    fn a_limit_is_kept_or_refused(costs in some_costs(), parts in 1_usize..12, slack in 0_u64..100, counted: bool) {
        let sizes: Vec<u64> = costs.iter().map(|cost| cost % 97 + 1).collect();
        let longest = sizes.iter().copied().max().unwrap_or(0);
        let most = sizes.iter().sum::<u64>().div_ceil(parts as u64).max(longest) + slack;
        let rule = Rule { equal_count: counted, limit: Some(Limit { sizes: &sizes, most }) };
        match balance(&costs, parts, rule, Interrupt::NEVER) {
            Ok(found) => {
                assert_divides(&found, &costs, parts);
                for window in found.offsets.windows(2) {
                    let items = &found.indices[window[0] as usize..window[1] as usize];
                    prop_assert!(items.iter().map(|&i| sizes[i as usize]).sum::<u64>() <= most);
                }
                if counted {
                    assert_equal_counts(&found);
                }
            }
            // Without counts, best fit cannot fail once every part has room for one more of the longest.
            Err(error) => prop_assert!(counted || slack < longest, "{error}"),
        }
    }

    #[test]
    fn sorting_is_the_same_for_small_and_huge_costs(costs in prop::collection::vec(0_u64..9, 0..50)) {
        let small = Sorted::by_descending(&costs);
        let huge = Sorted::by_descending(&costs.iter().map(|cost| cost << 60).collect::<Vec<_>>());
        prop_assert_eq!(small.ids, huge.ids);
    }
}

#[test]
fn bad_requests_say_what_is_wrong() {
    let says = |result: Result<Parts>, text: &str| {
        let message = result.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(message.contains(text), "{message}");
    };
    says(balance(&[1], 0, Rule::default(), Interrupt::NEVER), "parts is 0");
    says(balance(&[u64::MAX, 1], 1, Rule::default(), Interrupt::NEVER), "more than 2^63");
    let limit = |sizes: &'static [u64], most| Rule { equal_count: false, limit: Some(Limit { sizes, most }) };
    says(balance(&[1, 2], 2, limit(&[1], 9), Interrupt::NEVER), "sizes has 1 items, but costs has 2");
    says(balance(&[1, 2], 2, limit(&[1, 10], 9), Interrupt::NEVER), "sizes[1] is 10");
    says(balance(&[1, 2, 3], 2, limit(&[7, 7, 7], 9), Interrupt::NEVER), "need at least 3 parts");
    says(balance(&[1, 2, 3], 2, limit(&[5, 5, 5], 9), Interrupt::NEVER), "no division into parts=2");
}

#[test]
fn skewed_costs_over_many_parts_of_equal_count() {
    // Lognormal costs from a fixed stream: where differencing alone leaves 40 %.
    let mut state = 7_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    let costs: Vec<u64> = (0..2048)
        .map(|_| {
            let normal = (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
            let length = (1600.0 * normal.exp()).min(32768.0) as u64 + 1;
            24576 * length + length * length
        })
        .collect();
    let found = balance(&costs, 64, Rule { equal_count: true, limit: None }, Interrupt::NEVER).unwrap();
    assert_divides(&found, &costs, 64);
    let mean = costs.iter().sum::<u64>() as f64 / 64.0;
    let bound = mean.max(costs.iter().copied().max().unwrap() as f64);
    assert!((largest(&found) as f64) < 1.0002 * bound, "{}", largest(&found) as f64 / bound);
    assert!(twin(&costs, 64, true) as f64 > 1.2 * bound, "{}", twin(&costs, 64, true) as f64 / bound);
    assert!(found.offsets.windows(2).all(|window| window[1] - window[0] == 32));
}
