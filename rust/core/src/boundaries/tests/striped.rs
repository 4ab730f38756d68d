//! Stripes against every way to cut a small plane.

use super::*;

/// The least cost for every number of cells, over all stripes and all cells in each.
fn every_cut(plane: &Plane<'_>) -> Vec<Option<i128>> {
    let rows = plane.counts.len() / plane.width;
    let mut best: Vec<Vec<Option<i128>>> = vec![vec![Some(0)]];
    for end in 1..=rows {
        let mut here = vec![None; plane.counts.len() + 1];
        for (start, reached) in best.iter().enumerate() {
            for (used, before) in reached.iter().enumerate() {
                for (k, cells) in (1..).zip(stripe(plane, start, end)) {
                    if let (Some(before), Some(cells)) = (before, cells) {
                        let slot: &mut Option<i128> = &mut here[used + k];
                        *slot = Some(slot.map_or(before + cells, |least| least.min(before + cells)));
                    }
                }
            }
        }
        best.push(here);
    }
    best.pop().unwrap().split_off(1)
}

/// The least cost for every number of cells of one stripe; all cells hold samples.
fn stripe(plane: &Plane<'_>, start: usize, end: usize) -> Vec<Option<i128>> {
    let samples = |column: usize| (start..end).map(|row| plane.counts[row * plane.width + column]).sum::<u64>();
    let columns: Vec<usize> = (0..plane.width).filter(|&column| samples(column) > 0).collect();
    brute_force(columns.len(), |from, to| {
        let held: u64 = columns[from..to].iter().map(|&column| samples(column)).sum();
        Some(i128::from(held) * i128::from(plane.costs[(end - 1) * plane.width + columns[to - 1]]))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn stripes_reach_their_bound_or_come_near(
        counts in prop::collection::vec(prop_oneof![Just(0_u64), 1_u64..20], 16),
        (x, y) in (1_u64..9, 0_u64..9),
    ) {
        let rows: Vec<&[u64]> = counts.chunks(4).filter(|row| row.iter().any(|&count| count > 0)).collect();
        prop_assume!(!rows.is_empty());
        let counts = rows.concat();
        let costs: Vec<u64> = (0..counts.len() as u64).map(|cell| x * (cell / 4 + 1) + y * (cell % 4 + 1)).collect();
        let plane = Plane { counts: &counts, costs: &costs, width: 4 };
        let occupied = counts.iter().filter(|&&count| count > 0).count();
        for (k, best) in (1..).zip(every_cut(&plane)).take(occupied) {
            let Some(best) = best else { continue };
            let found = plane.stripes(k, Interrupt::NEVER).unwrap();
            prop_assert_eq!(found.stripes.iter().map(|(_, cells)| cells.len()).sum::<usize>(), k);
            prop_assert!(found.lower_bound <= best && best <= found.cost, "{:?} {}", found, best);
            // Between two numbers of cells that a charge leads to, the stripes of either need not be the best.
            prop_assert!(found.cost as f64 <= 2.0 * best as f64, "{:?} {}", found, best);
            if found.cost == found.lower_bound {
                prop_assert_eq!(found.cost, best);
            }
        }
    }
}

#[test]
fn bad_planes_are_named() {
    let fails = |counts: &[u64], costs: &[u64], width, k, text: &str| {
        let error = Plane { counts, costs, width }.stripes(k, Interrupt::NEVER).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    };
    fails(&[], &[], 1, 1, "rows of 1");
    fails(&[1, 1, 1], &[1, 2, 3], 2, 1, "rows of 2");
    fails(&[1, 0, 0, 0], &[1, 2, 3, 4], 2, 1, "row 1 of counts holds no sample");
    fails(&[1, 1], &[2, 1], 2, 1, "fall with a length");
    fails(&[1, 1], &[2, 1], 1, 1, "fall with a length");
    fails(&[1, 1], &[1, 2], 2, 0, "k is 0");
    fails(&[1, 0, 1], &[1, 2, 3], 3, 3, "lie in 2");
    fails(&[1 << 61, 1 << 61], &[1, 1 << 62], 2, 1, "2^93");
}
