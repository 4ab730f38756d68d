//! In which order steps run: random, but never so that the mean length of one step tells that of the next.
//!
//! Of S steps in random order the lag-1 correlation is about normal with deviation 1 / sqrt(S): 0.016 for 4,000 steps.
//! Orders are drawn until it is below 0.01 in magnitude, which is a uniform draw among such orders; or below a twentieth
//! of that deviation, where steps are fewer than 25: one draw in 25 is. After 64 draws, or up to 256 of few steps, the best
//! of them is taken: a handful of steps may stand out from all others. Cost: some nanoseconds a step and draw; 2 draws of
//! 4,000 steps on average.

use super::Table;
use super::compose::in_order;
use crate::rng::Key;
use crate::shuffle::shuffle;

/// Neighbouring steps correlate less than this, or than this many deviations of a random order.
const BOUND: f64 = 0.01;
const DEVIATIONS: f64 = 0.05;
/// The fewest and the most draws, and how many steps are drawn in between.
const DRAWS: (usize, usize) = (64, 256);
const STEPS_DRAWN: usize = 64 * 256;

/// Put the steps of `order` in random order; with `longest_first` the one with the longest batch stays in front.
pub(super) fn uncorrelated(table: Table<'_>, order: &mut Vec<u32>, step: usize, longest_first: bool, key: Key) {
    let means: Vec<f64> = order.chunks(step).map(|batches| mean_length(table, batches)).collect();
    let mut sequence: Vec<u32> = (0..means.len() as u32).collect();
    let mut fixed = 0;
    if longest_first && !means.is_empty() {
        let longest = |batch: &u32| (table.padded_lengths[*batch as usize], table.sizes[*batch as usize]);
        let of_step = order.chunks(step).map(|batches| batches.iter().map(longest).max()).enumerate();
        let first = of_step.max_by_key(|&(number, longest)| (longest, std::cmp::Reverse(number)));
        sequence.swap(0, first.map_or(0, |(number, _)| number));
        fixed = 1;
    }
    let bound = BOUND.max(DEVIATIONS / (means.len() as f64).sqrt());
    let (mut least, mut best) = (f64::INFINITY, Vec::new());
    let draws = (STEPS_DRAWN / means.len().max(1)).clamp(DRAWS.0, DRAWS.1);
    for draw in 0..draws as u64 {
        shuffle(&mut sequence[fixed..], key.child(draw));
        let correlation = neighbours(&means, &sequence).abs();
        if correlation < least {
            (least, best) = (correlation, sequence.clone());
        }
        if least < bound {
            break;
        }
    }
    *order = in_order(order, step, &best);
}

fn mean_length(table: Table<'_>, batches: &[u32]) -> f64 {
    let tokens: u64 = batches.iter().map(|&batch| table.tokens[batch as usize]).sum();
    let samples: u64 = batches.iter().map(|&batch| u64::from(table.sizes[batch as usize])).sum();
    tokens as f64 / samples.max(1) as f64
}

/// Pearson's correlation of each mean with the next in `sequence`; 0 where it is undefined.
fn neighbours(means: &[f64], sequence: &[u32]) -> f64 {
    let (Some(&first), Some(&last), 3..) = (sequence.first(), sequence.last(), sequence.len()) else { return 0.0 };
    let pairs = (sequence.len() - 1) as f64;
    // Sums of values near 0 lose nothing.
    let middle = means.iter().sum::<f64>() / means.len() as f64;
    let value = |step: u32| means[step as usize] - middle;
    let (mut sum, mut square, mut product, mut before) = (0.0, 0.0, 0.0, value(first));
    for &step in &sequence[1..] {
        let now = value(step);
        product += before * now;
        sum += now;
        square += now * now;
        before = now;
    }
    let (first, last) = (value(first), value(last));
    let (sum_before, square_before) = (sum + first - last, square + first * first - last * last);
    let scale = (square - sum * sum / pairs) * (square_before - sum_before * sum_before / pairs);
    if scale > 0.0 { (product - sum * sum_before / pairs) / scale.sqrt() } else { 0.0 }
}
