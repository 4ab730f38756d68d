//! In which order steps run: random, but never so that the mean length of one step tells that of the next.
//!
//! Of S steps in random order the lag-1 correlation is about normal with deviation 1 / sqrt(S): 0.017 for 3,600 steps.
//! Orders are drawn until it is below 0.01 in magnitude, which is a uniform draw among such orders; after 64 draws (few
//! steps, or a handful that stand out from all others, may need so many) the best of them is taken.

use super::Table;
use crate::rng::Key;
use crate::shuffle::shuffle;

/// Neighbouring steps correlate less than this.
const BOUND: f64 = 0.01;
const DRAWS: u64 = 64;

/// Put the steps of `order` in random order; with `longest_first` the one with the longest batch stays in front.
pub(super) fn uncorrelated(table: Table<'_>, order: &mut Vec<u32>, step: usize, longest_first: bool, key: Key) {
    let steps = order.len() / step;
    let means: Vec<f64> = order.chunks(step).map(|batches| mean_length(table, batches)).collect();
    let mut sequence: Vec<usize> = (0..steps).collect();
    let mut fixed = 0;
    if longest_first && steps > 0 {
        let longest = |batch: &u32| (table.padded_lengths[*batch as usize], table.sizes[*batch as usize]);
        let first =
            (0..steps).max_by_key(|&i| (order[i * step..][..step].iter().map(longest).max(), std::cmp::Reverse(i)));
        sequence.swap(0, first.unwrap_or(0));
        fixed = 1;
    }
    let mut best: Option<(f64, Vec<usize>)> = None;
    for draw in 0..DRAWS {
        shuffle(&mut sequence[fixed..], key.child(draw));
        let correlation = neighbours(&means, &sequence).abs();
        if best.as_ref().is_none_or(|&(least, _)| correlation < least) {
            best = Some((correlation, sequence.clone()));
        }
        if correlation < BOUND {
            break;
        }
    }
    if let Some((_, sequence)) = best {
        *order = sequence.into_iter().flat_map(|i| order[i * step..][..step].to_vec()).collect();
    }
}

fn mean_length(table: Table<'_>, batches: &[u32]) -> f64 {
    let tokens: u64 = batches.iter().map(|&batch| table.tokens[batch as usize]).sum();
    let samples: u64 = batches.iter().map(|&batch| u64::from(table.sizes[batch as usize])).sum();
    tokens as f64 / samples.max(1) as f64
}

/// Pearson's correlation of each mean with the next in `sequence`; 0 where it is undefined.
fn neighbours(means: &[f64], sequence: &[usize]) -> f64 {
    let pairs = sequence.len().saturating_sub(1) as f64;
    if pairs < 2.0 {
        return 0.0;
    }
    let value = |i: usize| means[sequence[i]];
    let total: f64 = means.iter().sum();
    let (first, last) = (value(0), value(sequence.len() - 1));
    let (mean_a, mean_b) = ((total - last) / pairs, (total - first) / pairs);
    let (mut product, mut square_a, mut square_b) = (0.0, 0.0, 0.0);
    for i in 0..sequence.len() - 1 {
        let (a, b) = (value(i) - mean_a, value(i + 1) - mean_b);
        product += a * b;
        square_a += a * a;
        square_b += b * b;
    }
    let scale = (square_a * square_b).sqrt();
    if scale > 0.0 { product / scale } else { 0.0 }
}
