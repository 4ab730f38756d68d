//! Which rank runs which batches of a step.
//!
//! Equal ranks: with several batches each, longest processing time with equal counts and exchanges until the slowest rank
//! is within 0.1 % of the mean; who gets which share is random. Unequal ranks: the fastest take the costliest. Each rank
//! runs its costliest batch first, so that ranks that meet after every batch wait least.

use super::{Method, Ranks, Table};
use crate::Result;
use crate::balance::share;
use crate::rng::Key;
use crate::shuffle::shuffle;

/// Ranks whose slowest is this near the mean are not improved further.
const TOLERANCE: f64 = 0.001;

/// Order the batches inside every step of `order`.
pub(super) fn deal(table: Table<'_>, ranks: Ranks<'_>, method: Method, order: &mut [u32], key: Key) -> Result<()> {
    // Steps of one shape stay so batch by batch: what stands together is dealt together.
    let accumulate = if method == Method::SameShape { 1 } else { ranks.accumulate };
    let ranks = Ranks { accumulate, ..ranks };
    let plain = ranks.accumulate == 1 && ranks.speeds.is_empty();
    if plain && method == Method::Shuffled {
        return Ok(());
    }
    for (batches, number) in order.chunks_mut(ranks.step()).zip(0..) {
        let key = key.child(number);
        shuffle(batches, key.child(0));
        let shares = if method == Method::Routed {
            by_length(table, ranks, batches)
        } else if plain {
            continue;
        } else if ranks.speeds.is_empty() {
            equal(table, ranks, batches, key.child(1))?
        } else {
            by_speed(table, ranks, batches)
        };
        place(table, ranks, batches, &shares);
    }
    Ok(())
}

/// Rank after rank, the batches from the shortest samples to the longest.
fn by_length(table: Table<'_>, ranks: Ranks<'_>, batches: &[u32]) -> Vec<Vec<u32>> {
    let mut sorted = batches.to_vec();
    let length = |batch: u32| table.tokens[batch as usize] as f64 / f64::from(table.sizes[batch as usize].max(1));
    sorted.sort_by(|&a, &b| length(a).total_cmp(&length(b)));
    sorted.chunks(ranks.accumulate).map(<[u32]>::to_vec).collect()
}

/// Shares of near-equal cost, each for a random rank.
fn equal(table: Table<'_>, ranks: Ranks<'_>, batches: &[u32], key: Key) -> Result<Vec<Vec<u32>>> {
    let largest = batches.iter().map(|&batch| table.costs[batch as usize]).fold(0.0, f64::max);
    let scale = if largest > 0.0 { (1_u64 << 40) as f64 / largest } else { 0.0 };
    let costs: Vec<u64> = batches.iter().map(|&batch| (table.costs[batch as usize] * scale) as u64).collect();
    let part_of = share(&costs, ranks.world_size, TOLERANCE)?;
    let mut rank_of: Vec<u32> = (0..ranks.world_size as u32).collect();
    shuffle(&mut rank_of, key);
    let mut shares = vec![Vec::with_capacity(ranks.accumulate); ranks.world_size];
    for (&batch, &part) in batches.iter().zip(&part_of) {
        shares[rank_of[part as usize] as usize].push(batch);
    }
    Ok(shares)
}

/// Each batch, the costliest first, to the rank that would finish it first and still has room.
fn by_speed(table: Table<'_>, ranks: Ranks<'_>, batches: &[u32]) -> Vec<Vec<u32>> {
    let mut sorted = batches.to_vec();
    sorted.sort_by(|&a, &b| table.costs[b as usize].total_cmp(&table.costs[a as usize]));
    let mut shares: Vec<Vec<u32>> = vec![Vec::with_capacity(ranks.accumulate); ranks.world_size];
    let mut loads = vec![0.0_f64; ranks.world_size];
    for batch in sorted {
        let finish = |rank: &usize| (loads[*rank] + table.costs[batch as usize]) / ranks.speeds[*rank];
        let open = (0..ranks.world_size).filter(|&rank| shares[rank].len() < ranks.accumulate);
        let Some(rank) = open.min_by(|a, b| finish(a).total_cmp(&finish(b))) else { break };
        loads[rank] += table.costs[batch as usize];
        shares[rank].push(batch);
    }
    shares
}

/// Write the shares where their ranks find them, each from its costliest batch on.
fn place(table: Table<'_>, ranks: Ranks<'_>, batches: &mut [u32], shares: &[Vec<u32>]) {
    for (rank, share) in shares.iter().enumerate() {
        let mut share = share.clone();
        share.sort_by(|&a, &b| table.costs[b as usize].total_cmp(&table.costs[a as usize]));
        for (turn, batch) in share.into_iter().enumerate() {
            batches[turn * ranks.world_size + rank] = batch;
        }
    }
}
