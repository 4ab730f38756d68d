//! From a length to its bucket by one look into a table.

use crate::bucket::Buckets;

/// A table has so many entries: 256 KiB, a part of the second-level cache.
const ENTRIES: usize = 1 << 16;

/// What each bucket stands for, by length.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// What the bucket of the shortest length of a cell stands for; where cells are single lengths, that is all.
    cells: Vec<u32>,
    /// Lengths `cell << shift..(cell + 1) << shift` share a cell.
    shift: u32,
    /// Longer lengths are all alike.
    ceiling: u32,
    buckets: Buckets,
    values: Vec<u32>,
}

impl Table {
    /// `values[b]` for every bucket b, and for what is longer than all, the last one.
    pub(crate) fn new(buckets: &Buckets, values: Vec<u32>) -> Self {
        let ceiling = buckets.longest() + 1;
        let shift = (0..32).find(|&shift| ((ceiling >> shift) as usize) < ENTRIES).unwrap_or(16);
        let mut bucket = 0;
        let mut cells: Vec<u32> = (0..=ceiling >> shift)
            .map(|cell| {
                while buckets.bounds().get(bucket).is_some_and(|&bound| bound < cell << shift) {
                    bucket += 1;
                }
                if shift == 0 { values[bucket] } else { bucket as u32 }
            })
            .collect();
        cells.resize(ENTRIES, cells.last().copied().unwrap_or(0));
        Self { cells, shift, ceiling, buckets: buckets.clone(), values }
    }

    /// The value of every length below 2^16, where cells are single lengths; longer lengths have the last value.
    pub(crate) fn exact(&self) -> Option<&[u32; ENTRIES]> {
        self.cells.first_chunk().filter(|_| self.shift == 0)
    }

    /// The value of `length`.
    #[inline]
    pub(crate) fn value(&self, length: u32) -> u32 {
        let length = length.min(self.ceiling);
        if self.shift == 0 {
            return self.cells[length as usize];
        }
        let mut bucket = self.cells[(length >> self.shift) as usize] as usize;
        while self.buckets.bounds().get(bucket).is_some_and(|&bound| bound < length) {
            bucket += 1;
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
