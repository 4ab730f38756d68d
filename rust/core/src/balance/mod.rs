//! Costs divided into parts of near-equal sums: the work of one step over its ranks.
//!
//! Problem: n costs, k parts, the largest sum as small as possible; optionally as many items in every part, or a limit on
//! what a part may hold. Strongly NP-hard. Method: longest-processing-time with counts ([`lpt`]), then exchanges between
//! the heaviest part and lighter ones ([`refine`]); unless that meets a lower bound, also Karmarkar-Karp differencing
//! ([`karmarkar_karp`]), refined where it is better: hence never worse than Karmarkar-Karp. Cost:
//! O(n log n) and the exchanges, each O(n / k). When it is wrong: never over a limit, but a limit that only a perfect
//! packing meets may be reported as impossible. Equal-count differencing alone is unsafe: its first tuple holds the k
//! largest costs, whose spread no later tuple can cancel (40 % left on skewed costs with many parts).
//! Sources: Graham 1969; Karmarkar & Karp 1982; Krause, Shen & Schwetman 1975 (counts); Michiels et al. 2003.

mod counts;
mod karmarkar_karp;
mod limit;
mod lpt;
mod refine;
mod sorted;

use crate::{Error, Interrupt, Result};
use refine::refine;
use sorted::Sorted;

/// More parts than any machine has ranks; a wild number must not take all memory.
const MOST_PARTS: usize = 1 << 24;

/// What else must hold for every part.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rule<'a> {
    /// The parts hold equally many items, or counts that differ by one where n is no multiple of k.
    pub equal_count: bool,
    /// No part holds more than this.
    pub limit: Option<Limit<'a>>,
}

/// The sizes in a part, another quantity than its cost or the same, add up to at most `most`.
#[derive(Clone, Copy, Debug)]
pub struct Limit<'a> {
    /// One size an item.
    pub sizes: &'a [u64],
    /// The most that a part may hold.
    pub most: u64,
}

/// A division of items into parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The items, part after part; within a part by descending cost.
    pub indices: Vec<u32>,
    /// Part p is `indices[offsets[p]..offsets[p + 1]]`.
    pub offsets: Vec<i64>,
    /// The cost of each part.
    pub sums: Vec<u64>,
    /// No division has a smaller largest sum than this.
    pub lower_bound: u64,
}

/// Divide items of the given costs into `parts` parts so that the largest sum is small.
///
/// # Errors
/// `parts` is 0, the costs add up past 2^63, or a limit was not met.
pub fn balance(costs: &[u64], parts: usize, rule: Rule<'_>, interrupt: Interrupt<'_>) -> Result<Parts> {
    check(costs, parts)?;
    let items = Sorted::by_descending(costs);
    interrupt.check()?;
    let lower_bound = lower_bound(&items, parts, rule);
    let part_of = match rule.limit {
        Some(limit) => limit::within(&items, parts, rule, limit, lower_bound, interrupt)?,
        None => best(&items, parts, rule, lower_bound, interrupt)?,
    };
    Ok(collect(&items, parts, &part_of, lower_bound))
}

/// The part of each item, equally many in each, refined until the largest sum is within `tolerance` of the mean: for the
/// few batches of one step.
pub(crate) fn share(costs: &[u64], parts: usize, tolerance: f64) -> Result<Vec<u32>> {
    let items = Sorted::by_descending(costs);
    let rule = Rule { equal_count: true, limit: None };
    let mean = costs.iter().sum::<u64>() as f64 / parts as f64;
    let bound = lower_bound(&items, parts, rule).max((mean * (1.0 + tolerance)) as u64);
    let mut part_of = lpt::assign(&items, parts, true);
    refine(&items, parts, &mut part_of, rule, bound, Interrupt::NEVER)?;
    let mut by_item = vec![0; costs.len()];
    for (&id, &part) in items.ids.iter().zip(&part_of) {
        by_item[id as usize] = part;
    }
    Ok(by_item)
}

/// The better of refined longest-processing-time and differencing, which is refined only where it leads: the exchanges
/// cost more than the differencing. The part of each item by rank.
fn best(items: &Sorted, parts: usize, rule: Rule<'_>, bound: u64, interrupt: Interrupt<'_>) -> Result<Vec<u32>> {
    let mut first = lpt::assign(items, parts, rule.equal_count);
    let reached = refine(items, parts, &mut first, rule, bound, interrupt)?;
    if reached <= bound {
        return Ok(first);
    }
    let mut second = karmarkar_karp::assign(items, parts, rule.equal_count, interrupt)?;
    if largest_sum(items, parts, &second) >= reached {
        return Ok(first);
    }
    refine(items, parts, &mut second, rule, bound, interrupt)?;
    Ok(second)
}

fn largest_sum(items: &Sorted, parts: usize, part_of: &[u32]) -> u64 {
    let mut sums = vec![0_u64; parts];
    part_of.iter().zip(&items.costs).for_each(|(&part, &cost)| sums[part as usize] += cost);
    sums.into_iter().max().unwrap_or(0)
}

/// The largest cost, the mean, two items in one part (when there are more items than parts), and with counts the largest
/// cost beside the smallest that must join it.
fn lower_bound(items: &Sorted, parts: usize, rule: Rule<'_>) -> u64 {
    let costs = &items.costs;
    let total: u64 = costs.iter().sum();
    let mean = total.div_ceil(parts as u64);
    let pair = if costs.len() > parts { costs[parts - 1] + costs[parts] } else { 0 };
    let company = if rule.equal_count { (costs.len() / parts).saturating_sub(1) } else { 0 };
    let largest = costs.first().copied().unwrap_or(0);
    let beside: u64 = costs.iter().rev().take(company).sum();
    mean.max(pair).max(largest + beside)
}

fn check(costs: &[u64], parts: usize) -> Result<()> {
    if parts == 0 {
        return Err(Error::invalid("parts is 0, but must be at least 1"));
    }
    if parts > MOST_PARTS {
        return Err(Error::invalid(format!("parts is {parts}, but must be at most {MOST_PARTS}")));
    }
    if u32::try_from(costs.len()).is_err() {
        return Err(Error::invalid(format!("costs has {} items, but must have fewer than 2^32", costs.len())));
    }
    let total = costs.iter().try_fold(0_u64, |sum, &cost| sum.checked_add(cost).filter(|&s| s < 1 << 63));
    if total.is_none() {
        return Err(Error::invalid("costs add up to more than 2^63; divide them by a constant"));
    }
    Ok(())
}

/// The parts of all ranks as arrays, by one counting pass.
fn collect(items: &Sorted, parts: usize, part_of: &[u32], lower_bound: u64) -> Parts {
    let mut offsets = vec![0_i64; parts + 1];
    let mut sums = vec![0_u64; parts];
    for (&part, &cost) in part_of.iter().zip(&items.costs) {
        offsets[part as usize + 1] += 1;
        sums[part as usize] += cost;
    }
    for part in 0..parts {
        offsets[part + 1] += offsets[part];
    }
    let mut next = offsets.clone();
    let mut indices = vec![0_u32; part_of.len()];
    for (&part, &id) in part_of.iter().zip(&items.ids) {
        let slot = &mut next[part as usize];
        indices[*slot as usize] = id;
        *slot += 1;
    }
    Parts { indices, offsets, sums, lower_bound }
}

#[cfg(test)]
mod tests;
