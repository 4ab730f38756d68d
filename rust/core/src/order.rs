//! Which batch runs first.

use crate::batch::Batch;

/// Bring the step with the longest batch (of those the one with most samples) to the front, so that what does not fit the
/// memory fails at once; steps stay whole.
pub(crate) fn longest_first(batches: &mut [Batch], world_size: usize) {
    let longest = (0..batches.len()).max_by_key(|&i| (batches[i].padded_length, batches[i].size, std::cmp::Reverse(i)));
    let step = longest.unwrap_or(0) / world_size * world_size;
    for rank in 0..world_size.min(batches.len() - step) {
        batches.swap(rank, step + rank);
    }
}
