//! Exchanges between the heaviest part and lighter ones until a bound is met or nothing helps.
//!
//! An exchange gives an item of the heavy part for a smaller one of the light part (or for none, where counts are free):
//! the best one moves half of the gap. Both parts are kept in order of cost, so that one walk with two pointers finds it:
//! O(n / k) an exchange, and at most 16 exchanges a part: O(n + k log k) in all.

use std::collections::BTreeSet;

use super::sorted::Sorted;
use super::{Limit, Rule};
use crate::{Interrupt, Result};

/// How many of the lightest parts are tried before the heaviest is taken as settled.
const TRIES: usize = 8;

/// Improve `part_of` in place; the largest sum that was reached.
pub(super) fn refine(
    items: &Sorted,
    parts: usize,
    part_of: &mut [u32],
    rule: Rule<'_>,
    bound: u64,
    interrupt: Interrupt<'_>,
) -> Result<u64> {
    let mut table = Table::new(items, parts, part_of, rule);
    for round in 0..16 * parts + 256 {
        if round % 64 == 0 {
            interrupt.check()?;
        }
        let Some(&(top, heavy)) = table.order.last() else { return Ok(0) };
        if top <= bound {
            break;
        }
        let found = table.order.iter().take(TRIES.min(parts - 1)).find_map(|&(_, light)| {
            table.best_exchange(heavy as usize, light as usize).map(|exchange| (light as usize, exchange))
        });
        let Some((light, exchange)) = found else { break };
        table.apply(heavy as usize, light, &exchange);
    }
    for (list, part) in table.lists.iter().zip(0_u32..) {
        for &rank in list {
            part_of[rank as usize] = part;
        }
    }
    Ok(table.order.last().map_or(0, |&(sum, _)| sum))
}

/// Positions in the lists of the heavy and of the light part; `take` is None where nothing comes back.
struct Exchange {
    give: usize,
    take: Option<usize>,
}

struct Table<'a> {
    costs: &'a [u64],
    /// The ranks in each part, ascending: costs descending.
    lists: Vec<Vec<u32>>,
    sums: Vec<u64>,
    order: BTreeSet<(u64, u32)>,
    moves: bool,
    /// What each rank takes of the limit, what each part holds, and the limit.
    room: Option<(Vec<u64>, Vec<u64>, u64)>,
}

impl<'a> Table<'a> {
    fn new(items: &'a Sorted, parts: usize, part_of: &[u32], rule: Rule<'_>) -> Self {
        let mut lists: Vec<Vec<u32>> = vec![Vec::with_capacity(items.costs.len() / parts + 1); parts];
        let mut sums = vec![0_u64; parts];
        for ((&part, rank), &cost) in part_of.iter().zip(0_u32..).zip(&items.costs) {
            lists[part as usize].push(rank);
            sums[part as usize] += cost;
        }
        let room = rule.limit.map(|Limit { sizes, most }| {
            let sizes: Vec<u64> = items.ids.iter().map(|&id| sizes[id as usize]).collect();
            let held = lists.iter().map(|list| list.iter().map(|&rank| sizes[rank as usize]).sum()).collect();
            (sizes, held, most)
        });
        let order = sums.iter().copied().zip(0_u32..).collect();
        Self { costs: &items.costs, lists, sums, order, moves: !rule.equal_count, room }
    }

    /// The exchange that moves the cost nearest to half the gap; None where none lowers the larger sum.
    fn best_exchange(&self, heavy: usize, light: usize) -> Option<Exchange> {
        let gap = self.sums[heavy] - self.sums[light];
        let half = gap / 2;
        let cost = |rank: u32| self.costs[rank as usize];
        let (mut best, mut found) = (gap, None);
        let mut consider = |give: usize, take: Option<usize>, moved: u64| {
            let miss = gap.abs_diff(2 * moved);
            if moved > 0 && miss < best && self.fits(heavy, light, give, take) {
                (best, found) = (miss, Some(Exchange { give, take }));
            }
        };
        let others = &self.lists[light];
        let mut at = 0;
        for (give, &rank) in self.lists[heavy].iter().enumerate() {
            let given = cost(rank);
            if self.moves {
                consider(give, None, given);
            }
            // `at` is the first whose return moves half the gap or more; the one before it moves less.
            while at < others.len() && cost(others[at]) + half > given {
                at += 1;
            }
            for take in [at.wrapping_sub(1), at] {
                if let Some(&other) = others.get(take) {
                    consider(give, Some(take), given.saturating_sub(cost(other)));
                }
            }
        }
        found
    }

    fn fits(&self, heavy: usize, light: usize, give: usize, take: Option<usize>) -> bool {
        let Some((sizes, held, most)) = &self.room else { return true };
        let given = sizes[self.lists[heavy][give] as usize];
        let taken = take.map_or(0, |at| sizes[self.lists[light][at] as usize]);
        held[light] + given - taken <= *most && held[heavy] + taken - given <= *most
    }

    fn apply(&mut self, heavy: usize, light: usize, exchange: &Exchange) {
        for part in [heavy, light] {
            self.order.remove(&(self.sums[part], part as u32));
        }
        let given = self.lists[heavy].remove(exchange.give);
        let taken = exchange.take.map(|at| self.lists[light].remove(at));
        self.put(given, heavy, light);
        if let Some(rank) = taken {
            self.put(rank, light, heavy);
        }
        for part in [heavy, light] {
            self.order.insert((self.sums[part], part as u32));
        }
    }

    fn put(&mut self, rank: u32, from: usize, to: usize) {
        let cost = self.costs[rank as usize];
        self.sums[from] -= cost;
        self.sums[to] += cost;
        if let Some((sizes, held, _)) = &mut self.room {
            held[from] -= sizes[rank as usize];
            held[to] += sizes[rank as usize];
        }
        let list = &mut self.lists[to];
        let place = list.partition_point(|&other| other < rank);
        list.insert(place, rank);
    }
}
