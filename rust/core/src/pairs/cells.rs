//! Which cell a sample of two lengths belongs to.
//!
//! Problem: a cell holds samples that are at most as long as its two bounds; of the cells that hold a sample, the one that
//! costs least is its own. Method: the bounds of all cells make a grid, and each field of the grid knows its cheapest cell;
//! a sample finds its field by one look into a table for each length. Cost: k^2 once for k cells, 1 to 2 ns a sample.

use crate::bucket::Buckets;
use crate::classify::Table;
use crate::pairs::Padding;
use crate::{Error, MAX_LENGTH, Result};

/// More cells than this are refused: the grid would not fit the cache.
pub(crate) const MAX_CELLS: usize = 1 << 10;

/// Cells, the cheapest first.
#[derive(Debug, Clone)]
pub(crate) struct Cells {
    bounds: Vec<[u32; 2]>,
    /// From the first length to its row of the grid, where that begins; from the second to its column.
    rows: Table,
    columns: Table,
    /// The cheapest cell that holds the samples of a field; the number of cells where none does.
    grid: Vec<u16>,
}

impl Cells {
    /// # Errors
    /// [`Error::Invalid`] for no cells, too many, the same twice, or bounds out of range.
    pub(crate) fn new(mut bounds: Vec<[u32; 2]>, padding: Padding) -> Result<Self> {
        if bounds.is_empty() || bounds.len() > MAX_CELLS {
            return Err(Error::invalid(format!(
                "cells has {} cells, but there must be 1 to {MAX_CELLS}",
                bounds.len()
            )));
        }
        for (i, [first, second]) in bounds.iter().enumerate() {
            if [first, second].into_iter().any(|bound| !(1..=MAX_LENGTH).contains(bound)) {
                return Err(Error::invalid(format!(
                    "cells[{i}] is {first} by {second}, but both bounds must be from 1 to {MAX_LENGTH}"
                )));
            }
        }
        bounds.sort_by_key(|&bound| (padding.tokens(padding.shape(bound)), bound));
        if let Some(twice) = bounds.windows(2).find(|pair| pair[0] == pair[1]) {
            let [first, second] = twice[0];
            return Err(Error::invalid(format!("cells has {first} by {second} twice; drop the duplicate")));
        }
        let along = |side: usize| {
            let mut along: Vec<u32> = bounds.iter().map(|bound| bound[side]).collect();
            along.sort_unstable();
            along.dedup();
            Buckets::new(along)
        };
        let (first, second) = (along(0)?, along(1)?);
        // One more row and column, for what is longer than all cells.
        let (height, width) = (first.bounds().len() + 1, second.bounds().len() + 1);
        let none = bounds.len() as u16;
        let mut grid = vec![none; height * width];
        for (cell, bound) in (0..).zip(&bounds) {
            grid[first.of(bound[0]) * width + second.of(bound[1])] = cell;
        }
        // What a longer field can use, a shorter one can use too.
        for field in (0..(height - 1) * width).rev().filter(|field| (field + 1) % width != 0) {
            grid[field] = grid[field].min(grid[field + 1]).min(grid[field + width]);
        }
        let rows = Table::new(&first, (0..height).map(|row| (row * width) as u32).collect());
        let columns = Table::new(&second, (0..width as u32).collect());
        Ok(Self { bounds, rows, columns, grid })
    }

    /// Inclusive upper bounds of every cell.
    pub(crate) fn bounds(&self) -> &[[u32; 2]] {
        &self.bounds
    }

    /// The cheapest cell that holds these lengths; the number of cells where none does.
    #[inline]
    pub(crate) fn of(&self, [first, second]: [u32; 2]) -> u16 {
        self.grid[(self.rows.value(first) + self.columns.value(second)) as usize]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_trying_all(
            bounds in prop::collection::btree_set((1_u32..40, prop_oneof![1_u32..40, 1_u32..=MAX_LENGTH]), 1..30),
            pairs in prop::collection::vec((0_u32..45, prop_oneof![0_u32..45, 0_u32..=MAX_LENGTH]), 1..50),
            weights in [1_u32..4, 1_u32..4],
            multiple_of in [1_u32..9, 1_u32..9],
        ) {
            let padding = Padding { multiple_of, weights };
            let bounds: Vec<[u32; 2]> = bounds.into_iter().map(|(x, y)| [x, y]).collect();
            let cells = Cells::new(bounds.clone(), padding).unwrap();
            for (x, y) in pairs {
                let holds = bounds.iter().filter(|bound| x <= bound[0] && y <= bound[1]);
                let best = holds.min_by_key(|&&bound| (padding.tokens(padding.shape(bound)), bound));
                prop_assert_eq!(cells.bounds().get(usize::from(cells.of([x, y]))), best);
            }
        }
    }
}
