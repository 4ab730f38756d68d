//! Samples by length: longest first inside each group, ties by index.
//!
//! Method: a stable counting sort where lengths take at most 2^16 values, the same scatter that shuffles; else a comparison
//! sort of the indices. Cost: 2 ns a sample, or some 100 ns where lengths are spread up to 2^31.

use crate::bucket::Buckets;
use crate::items::Items;
use crate::raw::Digits;
use crate::{Index, Interrupt, Length, Result};

/// A counting sort has at most so many bins.
const MAX_BINS: usize = 1 << 16;

/// All items by bucket, longest first inside; where each bucket starts, and the end.
///
/// # Errors
/// Interrupted.
pub(crate) fn sorted<L: Length, I: Index>(
    items: Items<'_, L>,
    groups: &Buckets,
    counts: &[u64],
    threads: usize,
    interrupt: Interrupt<'_>,
) -> Result<(Vec<I>, Vec<usize>)> {
    let mut starts = vec![0];
    starts.extend(counts.iter().scan(0, |total, &count| {
        *total += count as usize;
        Some(*total)
    }));
    let ceiling = groups.longest() as usize + 1;
    if ceiling >= MAX_BINS {
        let mut indices: Vec<I> = (0..items.len()).map(I::new).collect();
        interrupt.check()?;
        indices.sort_unstable_by_key(|index| {
            let length = items.tokens(index.position());
            (groups.of(length), std::cmp::Reverse(length), index.position())
        });
        return Ok((indices, starts));
    }
    let mut bins = vec![ceiling as u16; ceiling + 1];
    let mut low = 0;
    for &bound in groups.bounds() {
        // The bucket of lengths low..=bound takes the bins low..=bound backwards.
        (low..=bound).for_each(|length| bins[length as usize] = (low + bound - length) as u16);
        low = bound + 1;
    }
    if items.cut_to(groups.longest()) {
        bins[ceiling] = bins[ceiling - 1];
    }
    let bins = &bins[..];
    let four = move |position| items.four_whole(position).map(|length| bins[(length as usize).min(bins.len() - 1)]);
    let digits = Digits::draw(items.len(), ceiling + 1, threads, four, interrupt)?;
    Ok((digits.scatter(threads, I::new, interrupt)?.0, starts))
}
