//! Samples by length: longest first inside each group, ties by index.

use crate::Index;
use crate::{Interrupt, Result};

/// Positions `0..n` grouped by bucket, longest first inside, and where each bucket starts.
///
/// # Errors
/// Interrupted.
pub(crate) fn sorted<I: Index>(
    n: usize,
    counts: &[u64],
    bucket: impl Fn(usize) -> usize,
    length: impl Fn(usize) -> u32,
    interrupt: Interrupt<'_>,
) -> Result<(Vec<I>, Vec<u64>)> {
    let mut indices: Vec<I> = (0..n).map(I::new).collect();
    interrupt.check()?;
    indices.sort_unstable_by_key(|index| {
        let position = index.position();
        (bucket(position), std::cmp::Reverse(length(position)), position)
    });
    let mut starts = vec![0; counts.len() + 1];
    counts.iter().enumerate().for_each(|(bucket, count)| starts[bucket + 1] = starts[bucket] + count);
    Ok((indices, starts))
}
