//! Boundaries for any lengths, objective and constraints: refused with an error, or allowed, and proven or brute-forced.

#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use lengthwise_core::boundaries::{Candidates, Constraints, Number, Objective, Solution, curve, descend, optimal};
use lengthwise_core::{Histogram, Interrupt, Limits, MAX_LENGTH};
use libfuzzer_sys::fuzz_target;

/// Candidates up to which every subset is tried.
const FEW: usize = 9;
/// Distinct lengths up to which no objective takes a grid of some: what is allowed does not depend on the number asked for.
const NO_GRID: usize = 150;
/// Distinct lengths for boundaries by descent, which always takes a grid.
const LONGEST: usize = 400;

#[derive(Debug)]
struct Case {
    lengths: Vec<u32>,
    counts: Vec<u64>,
    multiple_of: u32,
    k: usize,
    constraints: Constraints,
    cost: Cost,
    limits: Limits,
}

#[derive(Debug, Arbitrary)]
enum Cost {
    Boundary,
    Table(u8),
    Batches,
    Longest,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(from: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let multiple_of = if from.arbitrary()? { 1 } else { from.int_in_range(0..=600)? };
        let include = (0..from.int_in_range(0..=3)?).map(|_| from.int_in_range(0..=5000)).collect::<Result<_, _>>()?;
        let constraints = Constraints {
            min_count: if from.arbitrary()? { 0 } else { from.int_in_range(0..=300)? },
            max_ratio: if from.arbitrary()? {
                f64::INFINITY
            } else {
                1.0 + f64::from(from.int_in_range(1..=255_u8)?) / 64.0
            },
            include,
        };
        let limits = Limits {
            max_tokens: if from.arbitrary()? { from.int_in_range(1..=70_000)? } else { from.arbitrary()? },
            max_samples: if from.arbitrary()? { u32::MAX } else { from.int_in_range(1..=64)? },
            multiple_of: multiple_of.max(1),
            samples_multiple_of: if from.arbitrary()? { 1 } else { from.int_in_range(1..=9)? },
        };
        let (k, cost) = (from.int_in_range(0..=40)?, from.arbitrary()?);
        let (mut lengths, mut counts) = (Vec::new(), Vec::new());
        let mut next: u32 = from.int_in_range(0..=3)?;
        let most = if matches!(cost, Cost::Longest) { LONGEST } else { NO_GRID };
        while !from.is_empty() && lengths.len() < most && next <= MAX_LENGTH {
            let fullest = *from.choose(&[3, 500, 1 << 40])?;
            lengths.push(next);
            counts.push(from.int_in_range(0..=fullest)?);
            let widest = *from.choose(&[2, 60, 4000, MAX_LENGTH / 2])?;
            next = next.saturating_add(from.int_in_range(1..=widest)?);
        }
        Ok(Self { lengths, counts, multiple_of, k, constraints, cost, limits })
    }
}

impl Case {
    fn allows(&self, solution: &Solution, candidates: &Candidates) {
        let Constraints { min_count, max_ratio, include } = &self.constraints;
        let Solution { bounds, counts, .. } = solution;
        assert!(bounds.is_sorted_by(|a, b| a < b) && bounds.last() == candidates.bounds().last());
        assert!(bounds.iter().all(|bound| bound % self.multiple_of == 0));
        assert!(include.iter().all(|bound| bounds.contains(bound)));
        assert!(bounds.windows(2).all(|pair| f64::from(pair[1]) <= max_ratio * f64::from(pair[0])));
        assert!(counts.iter().all(|count| count >= min_count));
        assert_eq!(counts.iter().sum::<u64>() as i64, candidates.samples());
    }

    /// The least cost of `k` buckets that are allowed, over every subset of the candidates.
    fn brute_force(&self, candidates: &Candidates, k: usize, cost: impl Fn(usize, i64) -> i128) -> Option<i128> {
        let (bounds, below) = (candidates.bounds(), candidates.below());
        let m = bounds.len();
        let total = |subset: u32| {
            let (mut start, mut total) = (0, 0);
            for end in (1..=m).filter(|end| subset >> (end - 1) & 1 == 1) {
                let samples = below[end] - below[start];
                let ratio = start == 0
                    || f64::from(bounds[end - 1]) <= self.constraints.max_ratio * f64::from(bounds[start - 1]);
                let skipped = bounds[start..end - 1].iter().any(|bound| self.constraints.include.contains(bound));
                if !ratio || skipped || (samples as u64) < self.constraints.min_count {
                    return None;
                }
                total += cost(end - 1, samples);
                start = end;
            }
            Some(total)
        };
        let of_k = (1_u32 << (m - 1)..1 << m).filter(|subset| subset.count_ones() as usize == k);
        of_k.filter_map(total).min()
    }
}

fuzz_target!(|case: Case| {
    let Ok(histogram) = Histogram::from_counts(&case.lengths, &case.counts) else { return };
    let mut case = case;
    case.constraints.include.sort_unstable();
    case.constraints.include.dedup();
    let Ok(candidates) = Candidates::new(&histogram, case.multiple_of, &case.constraints.include) else { return };
    let bounds = candidates.bounds();
    let power = if let Cost::Table(power) = case.cost { u32::from(power % 3) } else { 1 };
    let table: Vec<u64> = bounds.iter().map(|&bound| u64::from(bound).pow(power)).collect();
    let objective = match case.cost {
        Cost::Boundary => Objective::Boundary,
        Cost::Table(_) => Objective::Costs(&table),
        Cost::Batches => Objective::Batches(&case.limits),
        Cost::Longest => Objective::Longest(&case.limits),
    };
    // The whole table of a grid is slow to cost.
    if matches!(case.cost, Cost::Longest) && bounds.len() > 60 {
        if let Ok(found) = descend(&candidates, &case.limits, Number::Exactly(case.k), Interrupt::NEVER) {
            assert!(found.len() == case.k && found.is_sorted_by(|a, b| a < b) && found.last() == bounds.last());
        }
        return;
    }
    let found = optimal(&candidates, objective, Number::Exactly(case.k), &case.constraints, Interrupt::NEVER);
    if let Ok(found) = &found {
        assert_eq!(found.bounds.len(), case.k);
        case.allows(found, &candidates);
        match (found.lower_bound, &case.cost) {
            (None, cost) => assert!(matches!(cost, Cost::Longest)),
            (Some(bound), Cost::Batches) => {
                assert!(bound <= found.cost && found.cost <= bound + case.k as i128, "{bound} {found:?}");
            }
            (Some(bound), _) => assert_eq!(bound, found.cost),
        }
    }
    if found.as_ref().is_err_and(|error| error.to_string().contains("too large")) {
        return;
    }
    if bounds.len() <= FEW && case.k > 0 && !matches!(case.cost, Cost::Longest) && case.limits.validate().is_ok() {
        let rows = |end: usize| i128::from(case.limits.rows(bounds[end]));
        let best = case.brute_force(&candidates, case.k, |end, samples| match case.cost {
            Cost::Batches => (i128::from(samples) + rows(end) - 1) / rows(end),
            _ => i128::from(samples) * i128::from(table[end]),
        });
        assert_eq!(found.as_ref().ok().map(|found| found.cost), best);
    }
    if let Ok(every) = curve(&candidates, objective, 40, &case.constraints, Interrupt::NEVER) {
        every.iter().for_each(|solution| case.allows(solution, &candidates));
        let same = every.iter().find(|solution| solution.bounds.len() == case.k);
        assert_eq!(same.map(|same| same.cost), found.ok().map(|found| found.cost));
    }
});
