//! From a length to its bucket by one look into a table.

use crate::bucket::Buckets;

/// A table has so many entries: 128 KiB, of which those in use should fit the first-level cache.
const ENTRIES: usize = 1 << 16;

/// What each bucket stands for, by length.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// The bucket of the shortest length of a cell; where cells are single lengths, that is all.
    cells: Vec<u16>,
    /// Lengths `cell << shift..(cell + 1) << shift` share a cell.
    shift: u32,
    /// Longer lengths are all alike.
    ceiling: u32,
    buckets: Buckets,
    values: Vec<u32>,
}

impl Table {
    /// `values[b]` for every bucket b, of which there are at most 2^16, and for what is longer than all, the last one.
    pub(crate) fn new(buckets: &Buckets, mut values: Vec<u32>) -> Self {
        let ceiling = buckets.longest() + 1;
        let shift = (0..32).find(|&shift| ((ceiling >> shift) as usize) < ENTRIES).unwrap_or(16);
        let mut cells = Vec::with_capacity(ENTRIES);
        for (bucket, &bound) in buckets.bounds().iter().enumerate() {
            cells.resize((bound >> shift) as usize + 1, bucket as u16);
        }
        cells.resize(ENTRIES, buckets.bounds().len() as u16);
        values.resize(ENTRIES, 0);
        Self { cells, shift, ceiling, buckets: buckets.clone(), values }
    }

    /// The bucket of every length below 2^16, where cells are single lengths, and what each bucket stands for; longer lengths
    /// are all alike.
    pub(crate) fn exact(&self) -> Option<(&[u16; ENTRIES], &[u32; ENTRIES])> {
        Some((self.cells.first_chunk()?, self.values.first_chunk()?)).filter(|_| self.shift == 0)
    }

    /// The value of `length`.
    #[inline]
    pub(crate) fn value(&self, length: u32) -> u32 {
        let length = length.min(self.ceiling);
        let mut bucket = usize::from(self.cells[(length >> self.shift) as usize]);
        if self.shift > 0 {
            while self.buckets.bounds().get(bucket).is_some_and(|&bound| bound < length) {
                bucket += 1;
            }
        }
        self.values[bucket]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_searching(
            bounds in prop::collection::btree_set(prop_oneof![1_u32..300, 1_u32..200_000, 1_u32..=i32::MAX as u32], 1..30),
            lengths in prop::collection::vec(prop_oneof![0_u32..300, 0_u32..200_000, any::<u32>()], 1..50),
        ) {
            let buckets = Buckets::new(bounds.iter().copied().collect()).unwrap();
            let table = Table::new(&buckets, (0..=bounds.len() as u32).map(|bucket| 7 * bucket).collect());
            for length in lengths.into_iter().chain(bounds.iter().flat_map(|&bound| [bound - 1, bound, bound + 1])) {
                prop_assert_eq!(table.value(length), 7 * buckets.of(length) as u32);
            }
        }
    }
}
