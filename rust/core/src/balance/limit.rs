//! Parts that must not hold more than a limit: find divisions that keep it, then balance within it.
//!
//! Whether one exists is bin packing. Tried in turn: each item to the lightest part with room; best fit by descending
//! size; differencing, where it happens to keep the limit. All that succeed are refined within the limit; the best wins.

use std::collections::BTreeSet;

use super::counts::Counts;
use super::refine::refine;
use super::sorted::Sorted;
use super::{Limit, Rule, karmarkar_karp};
use crate::{Error, Interrupt, Result};

/// The part of each rank, none above the limit.
pub(super) fn within(
    items: &Sorted,
    parts: usize,
    rule: Rule<'_>,
    limit: Limit<'_>,
    bound: u64,
    interrupt: Interrupt<'_>,
) -> Result<Vec<u32>> {
    check(items, parts, limit)?;
    let sizes: Vec<u64> = items.ids.iter().map(|&id| limit.sizes[id as usize]).collect();
    let mut best: Option<(u64, Vec<u32>)> = None;
    for attempt in [Attempt::Lightest, Attempt::BestFit, Attempt::Differencing] {
        let counts = Counts::new(sizes.len(), parts, rule.equal_count);
        let found = match attempt {
            Attempt::Lightest => lightest_with_room(items, parts, &sizes, limit.most, counts),
            Attempt::BestFit => best_fit(parts, &sizes, limit.most, counts),
            Attempt::Differencing => Some(karmarkar_karp::assign(items, parts, rule.equal_count, interrupt)?)
                .filter(|part_of| keeps(part_of, parts, &sizes, limit.most)),
        };
        let Some(mut part_of) = found else { continue };
        let reached = refine(items, parts, &mut part_of, rule, bound, interrupt)?;
        if best.as_ref().is_none_or(|&(sum, _)| reached < sum) {
            best = Some((reached, part_of));
        }
        if reached <= bound {
            break;
        }
    }
    best.map(|found| found.1).ok_or_else(|| {
        Error::invalid(format!(
            "capacity is {}, but no division into parts={parts} was found that keeps it (the sizes add up to {} of {} \
             that fit); give more parts or more capacity",
            limit.most,
            sizes.iter().sum::<u64>(),
            u128::from(limit.most) * parts as u128,
        ))
    })
}

#[derive(Clone, Copy)]
enum Attempt {
    Lightest,
    BestFit,
    Differencing,
}

fn check(items: &Sorted, parts: usize, Limit { sizes, most }: Limit<'_>) -> Result<()> {
    if sizes.len() != items.costs.len() {
        return Err(Error::invalid(format!("sizes has {} items, but costs has {}", sizes.len(), items.costs.len())));
    }
    if let Some(index) = sizes.iter().position(|&size| size > most) {
        return Err(Error::invalid(format!("sizes[{index}] is {}, but a part holds capacity={most}", sizes[index])));
    }
    let total: u128 = sizes.iter().map(|&size| u128::from(size)).sum();
    if total > u128::from(most) * parts as u128 {
        let fewest = total.div_ceil(u128::from(most.max(1)));
        return Err(Error::invalid(format!(
            "parts is {parts}, but sizes that add up to {total} need at least {fewest} parts of capacity={most}"
        )));
    }
    Ok(())
}

/// Each item, by descending cost, to the lightest part that has room for it.
fn lightest_with_room(items: &Sorted, parts: usize, sizes: &[u64], most: u64, mut counts: Counts) -> Option<Vec<u32>> {
    let mut order: BTreeSet<(u64, u32)> = (0..parts as u32).map(|part| (0, part)).collect();
    let mut held = vec![0_u64; parts];
    let mut part_of = Vec::with_capacity(sizes.len());
    for (&cost, &size) in items.costs.iter().zip(sizes) {
        let fits = |&&(_, part): &&(u64, u32)| held[part as usize] + size <= most && counts.admits(part);
        let &(sum, part) = order.iter().find(fits)?;
        order.remove(&(sum, part));
        order.insert((sum + cost, part));
        held[part as usize] += size;
        counts.add(part);
        part_of.push(part);
    }
    Some(part_of)
}

/// Each item, by descending size, to the fullest part that has room for it.
fn best_fit(parts: usize, sizes: &[u64], most: u64, mut counts: Counts) -> Option<Vec<u32>> {
    let mut ranks: Vec<u32> = (0..sizes.len() as u32).collect();
    ranks.sort_by(|&a, &b| sizes[b as usize].cmp(&sizes[a as usize]));
    let mut free: BTreeSet<(u64, u32)> = (0..parts as u32).map(|part| (most, part)).collect();
    let mut part_of = vec![0_u32; sizes.len()];
    for rank in ranks {
        let size = sizes[rank as usize];
        let &(room, part) = free.range((size, 0)..).find(|&&(_, part)| counts.admits(part))?;
        free.remove(&(room, part));
        free.insert((room - size, part));
        counts.add(part);
        part_of[rank as usize] = part;
    }
    Some(part_of)
}

fn keeps(part_of: &[u32], parts: usize, sizes: &[u64], most: u64) -> bool {
    let mut held = vec![0_u64; parts];
    part_of.iter().zip(sizes).for_each(|(&part, &size)| held[part as usize] += size);
    held.iter().all(|&sum| sum <= most)
}
