//! Samples by length: longest first inside each group, ties by index.
//!
//! Method: a stable counting sort where lengths take at most 2^16 values, the same scatter that shuffles; else a comparison
//! sort of the indices. Cost: 2 ns a sample, or some 100 ns where lengths are spread up to 2^31.

use crate::bucket::Buckets;
use crate::items::Items;
use crate::raw::{BLOCK, Digits, Draw};
use crate::{Index, Interrupt, Length, Result};

/// A counting sort has at most so many bins.
const MAX_BINS: usize = 1 << 16;

/// All items by bucket, longest first inside.
///
/// # Errors
/// Interrupted.
pub(crate) fn sorted<L: Length, I: Index>(
    items: Items<'_, L>,
    groups: &Buckets,
    threads: usize,
    interrupt: Interrupt<'_>,
) -> Result<Vec<I>> {
    let ceiling = groups.longest() as usize + 1;
    if ceiling >= MAX_BINS {
        let mut indices: Vec<I> = (0..items.len()).map(I::new).collect();
        interrupt.check()?;
        indices.sort_unstable_by_key(|index| {
            let length = items.tokens(index.position());
            (groups.of(length), std::cmp::Reverse(length), index.position())
        });
        return Ok(indices);
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
    let digits = Digits::draw(items.len(), ceiling + 1, threads, ByLength { items, bins }, interrupt)?;
    Ok(digits.scatter(threads, I::new, interrupt)?.0)
}

/// The bin of every length.
struct ByLength<'a, L> {
    items: Items<'a, L>,
    bins: &'a [u16],
}

impl<L> Clone for ByLength<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<L> Copy for ByLength<'_, L> {}

impl<L: Length> Draw for ByLength<'_, L> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn bins(self, start: usize, bins: &mut [u16; BLOCK]) {
        let bin = |length: u32| self.bins[(length as usize).min(self.bins.len() - 1)];
        if let Some(lengths) = self.items.whole::<BLOCK>(start) {
            for (own, &length) in bins.iter_mut().zip(lengths) {
                *own = bin(length.into());
            }
        } else {
            for (item, own) in (start..).zip(bins) {
                *own = bin(self.items.tokens(item));
            }
        }
    }
}
