//! Packing under several hard limits at once: tokens, samples, images, squared lengths.
//!
//! Samples of one size are no longer alike, so this goes sample by sample, in order of their largest share of any limit:
//! best fit by tokens among the packs that have enough of everything (see `cells`); and where that leaves more than half a
//! percent above the bound, worst fit (always the pack with the smallest largest share) into fewer and fewer packs.
//! The better one is kept. The bound is the largest of the totals divided by their limits; it is loose where limits bind
//! on different samples.
//!
//! Cost: 1 to 2 us a sample for best fit, 0.5 us for each of at most about ten trials.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::cells::Cells;
use super::emit::Rows;
use crate::rng::Key;
use crate::shuffle::shuffle;
use crate::{Error, Interrupt, Result};

/// What every sample takes of one limit.
#[derive(Debug, Clone, Copy)]
pub struct Limit<'a> {
    /// One value a sample, none above `most`.
    pub values: &'a [u64],
    /// The most in a pack.
    pub most: u64,
}

/// Packs that worst fit looks at before it gives a trial up.
const LOOKS: usize = 64;

/// Trials end when the number of packs is known to one part in this many.
const PRECISION: u64 = 1000;

/// Samples between two looks for an interrupt.
const CHUNK: usize = 1 << 14;

/// Pack all samples under all `limits`; the packs, and a lower bound. With a key, ties are broken at random.
///
/// # Errors
/// [`Error::Invalid`] for limits of different lengths or a value above its limit; the caller's interrupt.
pub fn pack_limited(limits: &[Limit<'_>], key: Option<Key>, interrupt: Interrupt<'_>) -> Result<(Rows, u64)> {
    let samples = limits.first().map_or(0, |limit| limit.values.len());
    for limit in limits {
        let fits = limit.most > 0 && limit.values.iter().all(|&value| value <= limit.most);
        if limit.values.len() != samples || samples >= u32::MAX as usize || !fits {
            return Err(Error::invalid("limits need one value for each sample, and none above its limit"));
        }
    }
    let order = order(limits, samples, key);
    let total = |limit: &Limit<'_>| {
        let sum: u128 = limit.values.iter().map(|&value| u128::from(value)).sum();
        sum.div_ceil(u128::from(limit.most)) as u64
    };
    let bound = limits.iter().map(total).max().unwrap_or(0).max(u64::from(samples > 0));
    let mut best = best_fit(limits, &order, interrupt)?;
    let (mut low, mut high) = (bound - u64::from(samples > 0), packs(&best));
    if high > bound + bound / 200 {
        while high - low > 1 + bound / PRECISION {
            let middle = low + (high - low) / 2;
            match worst_fit(limits, &order, middle as usize, interrupt)? {
                Some(placed) => (high, best) = (packs(&placed), placed),
                None => low = middle,
            }
        }
    }
    Ok((rows(&order, &best), bound))
}

fn packs(placed: &[u32]) -> u64 {
    placed.iter().max().map_or(0, |&last| u64::from(last) + 1)
}

/// The largest share that sample `i` takes of any limit, in parts of 2^32.
fn share(limits: &[Limit<'_>], sample: usize) -> u64 {
    let part = |limit: &Limit<'_>| ((u128::from(limit.values[sample]) << 32) / u128::from(limit.most)) as u64;
    limits.iter().map(part).max().unwrap_or(0)
}

fn order(limits: &[Limit<'_>], samples: usize, key: Option<Key>) -> Vec<u32> {
    let mut order: Vec<u32> = (0..samples as u32).collect();
    if let Some(key) = key {
        shuffle(&mut order, key);
    }
    order.sort_by_cached_key(|&sample| Reverse(share(limits, sample as usize)));
    order
}

/// The pack of each sample of `order`.
fn best_fit(limits: &[Limit<'_>], order: &[u32], interrupt: Interrupt<'_>) -> Result<Vec<u32>> {
    let (mut cells, mut needs) = (Cells::new(limits), vec![0; limits.len()]);
    let mut placed = Vec::with_capacity(order.len());
    for chunk in order.chunks(CHUNK) {
        interrupt.check()?;
        for &sample in chunk {
            needs.iter_mut().zip(limits).for_each(|(need, limit)| *need = limit.values[sample as usize]);
            placed.push(cells.put(&needs));
        }
    }
    Ok(placed)
}

/// The pack of each sample of `order`, or `None` where some sample finds none of `packs` with room.
fn worst_fit(limits: &[Limit<'_>], order: &[u32], packs: usize, interrupt: Interrupt<'_>) -> Result<Option<Vec<u32>>> {
    let mut used = vec![0_u64; packs * limits.len()];
    let mut least: BinaryHeap<Reverse<(u64, u32)>> = (0..packs as u32).map(|pack| Reverse((0, pack))).collect();
    let (mut placed, mut aside) = (Vec::with_capacity(order.len()), Vec::new());
    for chunk in order.chunks(CHUNK) {
        interrupt.check()?;
        for &sample in chunk {
            let found = loop {
                let Some(Reverse((load, pack))) = least.pop().filter(|_| aside.len() < LOOKS) else { break None };
                let used = &mut used[pack as usize * limits.len()..][..limits.len()];
                let need = |limit: &Limit<'_>| limit.values[sample as usize];
                if limits.iter().zip(used.iter()).all(|(limit, used)| used + need(limit) <= limit.most) {
                    let mut most = 0;
                    for (limit, used) in limits.iter().zip(used) {
                        *used += need(limit);
                        most = most.max(((u128::from(*used) << 32) / u128::from(limit.most)) as u64);
                    }
                    break Some((pack, most));
                }
                aside.push(Reverse((load, pack)));
            };
            let Some((pack, load)) = found else { return Ok(None) };
            least.extend(aside.drain(..));
            least.push(Reverse((load, pack)));
            placed.push(pack);
        }
    }
    Ok(Some(placed))
}

/// The samples of each pack together; packs without any are left out.
fn rows(order: &[u32], placed: &[u32]) -> Rows {
    let mut starts = vec![0_i64; packs(placed) as usize + 1];
    for &pack in placed {
        starts[pack as usize + 1] += 1;
    }
    for pack in 1..starts.len() {
        starts[pack] += starts[pack - 1];
    }
    let (mut next, mut indices) = (starts.clone(), vec![0; order.len()]);
    for (&sample, &pack) in order.iter().zip(placed) {
        let place = &mut next[pack as usize];
        indices[*place as usize] = sample;
        *place += 1;
    }
    starts.dedup();
    Rows { indices, offsets: starts }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_limits_are_kept(
            samples in prop::collection::vec((0_u64..30, 0_u64..5, 0_u64..900), 0..150),
        ) {
            let tokens: Vec<u64> = samples.iter().map(|sample| sample.0).collect();
            let images: Vec<u64> = samples.iter().map(|sample| sample.1).collect();
            let squares: Vec<u64> = samples.iter().map(|sample| sample.2).collect();
            let limits = [
                Limit { values: &tokens, most: 40 }, Limit { values: &images, most: 7 }, Limit { values: &squares, most: 1000 },
            ];
            let (rows, bound) = pack_limited(&limits, None, Interrupt::NEVER).unwrap();
            for pack in rows.offsets.windows(2) {
                let members = &rows.indices[pack[0] as usize..pack[1] as usize];
                prop_assert!(!members.is_empty());
                for limit in &limits {
                    prop_assert!(members.iter().map(|&sample| limit.values[sample as usize]).sum::<u64>() <= limit.most);
                }
            }
            let mut all = rows.indices.clone();
            all.sort_unstable();
            prop_assert_eq!(all, (0..samples.len() as u32).collect::<Vec<_>>());
            prop_assert!(bound < rows.offsets.len() as u64);
        }
    }
}
