//! Which batch runs first.

use crate::batch::Batch;

/// Bring the step with the longest batch (of those the one with most samples) to the front, so that what does not fit the
/// memory fails at once; steps stay whole. `length` tells what is long.
pub(crate) fn longest_first<T: Ord>(batches: &mut [Batch], in_step: usize, length: impl Fn(&Batch) -> T) {
    let longest = (0..batches.len()).max_by_key(|&i| (length(&batches[i]), batches[i].size, std::cmp::Reverse(i)));
    let step = longest.unwrap_or(0) / in_step * in_step;
    for rank in 0..in_step.min(batches.len() - step) {
        batches.swap(rank, step + rank);
    }
}
