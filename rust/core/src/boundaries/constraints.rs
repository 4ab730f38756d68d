//! What boundaries must satisfy besides being cheap, and which one is to blame when they cannot.

use super::Candidates;
use crate::{Error, Result};

/// Constraints on the boundaries. The default is none.
#[derive(Debug, Clone, PartialEq)]
pub struct Constraints {
    /// The fewest samples in a bucket.
    pub min_count: u64,
    /// The largest ratio of a bound to the one before it (the first has none before it).
    pub max_ratio: f64,
    /// Bounds that must be present, ascending; the candidates hold them.
    pub include: Vec<u32>,
}

impl Default for Constraints {
    fn default() -> Self {
        Self { min_count: 0, max_ratio: f64::INFINITY, include: Vec::new() }
    }
}

impl Constraints {
    /// # Errors
    /// [`Error::Invalid`]: a ratio that is not a number, or not above 1.
    pub fn validate(&self) -> Result<()> {
        if self.max_ratio > 1.0 {
            return Ok(());
        }
        Err(Error::invalid(format!("max_ratio is {}, but must be above 1; bounds ascend", self.max_ratio)))
    }

    pub(super) fn none(&self) -> bool {
        *self == Self::default()
    }

    /// The constraints that are set, by name.
    fn names(&self) -> String {
        let mut names = Vec::new();
        if self.min_count > 0 {
            names.push(format!("min_count={}", self.min_count));
        }
        if self.max_ratio.is_finite() {
            names.push(format!("max_ratio={}", self.max_ratio));
        }
        if !self.include.is_empty() {
            names.push(format!("include={:?}", self.include));
        }
        names.join(" and ")
    }
}

/// Where the bucket that ends at a candidate may begin. All limits rise with the end, which keeps the Monge property.
///
/// Starts and ends are counted from 1; start 0 is the beginning of everything.
pub(super) struct Windows {
    /// The least start above 0, by ratio and included bounds.
    pub(super) earliest: Vec<u32>,
    /// One more than the greatest start, by the number of samples; 0 where no start leaves enough.
    pub(super) upto: Vec<u32>,
    /// The last end that may begin at 0, by included bounds.
    pub(super) from_zero: u32,
}

impl Windows {
    pub(super) fn new(candidates: &Candidates, constraints: &Constraints) -> Self {
        let (bounds, below) = (candidates.bounds(), candidates.below());
        let m = bounds.len();
        let mut include = constraints.include.iter().copied().peekable();
        let (mut start, mut open, mut included) = (1_usize, 0_usize, 0_usize);
        let mut windows = Self { earliest: vec![0], upto: vec![0], from_zero: m as u32 };
        for end in 1..=m {
            let bound = bounds[end - 1];
            while start < end && f64::from(bound) > constraints.max_ratio * f64::from(bounds[start - 1]) {
                start += 1;
            }
            while open < end && (below[end] - below[open]) as u64 >= constraints.min_count {
                open += 1;
            }
            windows.earliest.push(start.max(included) as u32);
            windows.upto.push(open as u32);
            if include.next_if_eq(&bound).is_some() {
                included = end;
                windows.from_zero = windows.from_zero.min(end as u32);
            }
        }
        windows
    }

    /// Whether any boundaries at all satisfy the windows.
    fn connected(&self) -> bool {
        // reached[end]: how many of the starts from 1 to end can be reached.
        let mut reached = vec![0_u32];
        for end in 1..self.upto.len() {
            let (earliest, upto) = (self.earliest[end] as usize, self.upto[end] as usize);
            let later = earliest < upto && reached[upto - 1] > reached[earliest - 1];
            reached.push(reached[end - 1] + u32::from(later || self.allow(0, end)));
        }
        reached.pop() > reached.pop()
    }

    /// Whether a bucket may hold the candidates in (start, end].
    pub(super) fn allow(&self, start: usize, end: usize) -> bool {
        let early = if start == 0 { end as u32 <= self.from_zero } else { start as u32 >= self.earliest[end] };
        early && (start as u32) < self.upto[end]
    }
}

/// Why no `k` boundaries satisfy the constraints; `range` are the fewest and most that do, if any number does.
pub(super) fn explain(
    candidates: &Candidates,
    constraints: &Constraints,
    k: Option<usize>,
    range: Option<(usize, usize)>,
) -> Error {
    let wanted = k.unwrap_or(1);
    let blame = too_few_samples(candidates, constraints.min_count, wanted)
        .or_else(|| too_many_included(candidates, &constraints.include, k))
        .or_else(|| gap(candidates, constraints.max_ratio, wanted));
    Error::invalid(blame.unwrap_or_else(|| match (range, k) {
        (Some((fewest, most)), Some(k)) => format!(
            "k is {k} boundaries, but {} together allow only {fewest} to {most}; change k or loosen one of them",
            constraints.names()
        ),
        _ => together(candidates, constraints),
    }))
}

/// Constraints that cannot hold together, for any number of boundaries.
fn together(candidates: &Candidates, constraints: &Constraints) -> String {
    let with = |min_count| Constraints { min_count, ..constraints.clone() };
    let holds = |min_count| Windows::new(candidates, &with(min_count)).connected();
    if constraints.min_count > 0 && holds(0) {
        let most = largest(constraints.min_count, holds);
        let others = with(0).names();
        return format!("min_count is {}, but beside {others} it can be at most {most}", constraints.min_count);
    }
    // From the first included bound on, one follows the other until a gap.
    let first = constraints.include.first().copied().unwrap_or_default();
    let bounds = candidates.bounds();
    let ratio = |pair: &[u32]| f64::from(pair[1]) / f64::from(pair[0]);
    let gaps = bounds.windows(2).filter(|pair| pair[0] >= first).max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    let gap = gaps.map_or_else(String::new, |gap| {
        format!("; no length lies between {} and {}, so max_ratio must be at least {:.4}", gap[0], gap[1], ratio(gap))
    });
    format!("{} cannot hold together for any number of boundaries{gap}", constraints.names())
}

/// The largest number below `fails` that holds, where 0 does.
fn largest(mut fails: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let mut fits = 0;
    while fails - fits > 1 {
        let middle = fits + (fails - fits) / 2;
        if holds(middle) {
            fits = middle;
        } else {
            fails = middle;
        }
    }
    fits
}

/// `min_count` alone: buckets filled from the shortest sample on are as many as can be.
fn too_few_samples(candidates: &Candidates, min_count: u64, k: usize) -> Option<String> {
    let samples = candidates.samples() as u64;
    if min_count > samples {
        return Some(format!("min_count is {min_count} samples in each bucket, but there are only {samples}"));
    }
    let most = most_buckets(candidates, min_count);
    if most >= k {
        return None;
    }
    let (mut fits, mut fails) = (0, min_count);
    while fails - fits > 1 {
        let middle = fits + (fails - fits) / 2;
        if most_buckets(candidates, middle) >= k { fits = middle } else { fails = middle }
    }
    Some(format!(
        "min_count is {min_count} samples in each bucket, but then there can be at most {most} boundaries, not k={k}; \
         with {k} it can be at most {fits}"
    ))
}

/// The most buckets of at least `min_count` samples each.
fn most_buckets(candidates: &Candidates, min_count: u64) -> usize {
    let (mut buckets, mut start) = (0, 0);
    for &below in &candidates.below()[1..] {
        if (below - start) as u64 >= min_count {
            (buckets, start) = (buckets + 1, below);
        }
    }
    buckets
}

/// `include` alone: each included bound is one, and the longest candidate another.
fn too_many_included(candidates: &Candidates, include: &[u32], k: Option<usize>) -> Option<String> {
    let last = candidates.bounds().last().copied().unwrap_or_default();
    let fewest = include.len() + usize::from(include.last() != Some(&last));
    let k = k.filter(|&k| k < fewest)?;
    Some(format!(
        "include holds {} bounds and the last bound is {last}, which makes at least {fewest} boundaries, but k is {k}",
        include.len()
    ))
}

/// `max_ratio` alone: from the longest bound down, one follows the other until a gap.
fn gap(candidates: &Candidates, max_ratio: f64, k: usize) -> Option<String> {
    let bounds = candidates.bounds();
    let at = bounds.windows(2).rposition(|pair| f64::from(pair[1]) > max_ratio * f64::from(pair[0]))?;
    let (most, low, high) = (bounds.len() - 1 - at, bounds[at], bounds[at + 1]);
    (most < k).then(|| {
        format!(
            "max_ratio is {max_ratio}, but no length lies between {low} and {high}, {:.4} times as long; that allows at \
             most {most} boundaries, not k={k}",
            f64::from(high) / f64::from(low)
        )
    })
}
