//! Longest processing time: each item, the largest first, goes to the part with the smallest sum.
//!
//! With counts, a part that holds its share takes no more. Cost: O(n log k). Graham, SIAM J. Appl. Math. 17 (1969): at most 4/3 of the optimum without counts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::counts::Counts;
use super::sorted::Sorted;

/// The part of each rank.
pub(super) fn assign(items: &Sorted, parts: usize, equal_count: bool) -> Vec<u32> {
    let mut counts = Counts::new(items.costs.len(), parts, equal_count);
    let mut lightest: BinaryHeap<Reverse<(u64, u32)>> = (0..parts as u32).map(|part| Reverse((0, part))).collect();
    let mut part_of = Vec::with_capacity(items.costs.len());
    for &cost in &items.costs {
        while let Some(mut top) = lightest.peek_mut() {
            let Reverse((sum, part)) = *top;
            if counts.admits(part) {
                counts.add(part);
                part_of.push(part);
                *top = Reverse((sum + cost, part));
                break;
            }
            PeekMut::pop(top);
        }
    }
    part_of
}
