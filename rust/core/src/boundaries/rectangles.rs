//! Buckets of two lengths that need not be stripes: every sample takes the cheapest cell that holds it.
//!
//! **Problem**: few samples are far longer in one length than others of their stripe, and yet its bound must hold them. A cell
//! of another stripe could. The best cells of this kind are a two-dimensional assortment problem, which is hard.
//!
//! **Method**: descent from given cells: one bound of one cell (or both) moves by 8, 4, 2 or 1 on the grid as long as that
//! saves anything. All costs are integers, so that every machine makes the same moves.
//!
//! **Cost**: x y for each move that is tried: 5 us on a grid of 64 times 64.
//!
//! **When it is wrong**: it ends where no single move helps; nothing tells how far from the best cells that is.

use super::stripes::Plane;
use crate::{Error, Interrupt, Result};

/// Moves that are tried at most, to the end of a round: a tenth of a second on a grid of 64 times 64.
const MOVES: usize = 10_000;
/// How far a bound moves.
const STEPS: [i64; 4] = [8, 4, 2, 1];

/// Samples that no cell holds, and what all others cost: the less the better.
type Price = (u64, u128);

impl Plane<'_> {
    /// Move the bounds of `cells` (rows and columns, counted from 1) while that helps, and leave out cells that are no
    /// sample's own. A cost of `u64::MAX` is no cell. Returns how many samples no cell holds, and what all others cost.
    ///
    /// # Errors
    /// [`Error::Invalid`]: sizes that do not match, cells outside of the grid; [`Error::Interrupted`].
    pub fn descend(&self, cells: &mut Vec<[u32; 2]>, interrupt: Interrupt<'_>) -> Result<(u64, u128)> {
        let (size, width) = (self.counts.len(), self.width);
        if width == 0 || size == 0 || size != self.costs.len() || !size.is_multiple_of(width) {
            return Err(Error::invalid(format!("counts has {size} fields, but costs {}", self.costs.len())));
        }
        let most = [(size / width) as i64, width as i64];
        let inside = |cell: [i64; 2]| (1..=most[0]).contains(&cell[0]) && (1..=most[1]).contains(&cell[1]);
        if cells.is_empty() || cells.iter().any(|cell| !inside(cell.map(i64::from))) {
            return Err(Error::invalid("cells is empty, or has cells outside of the grid"));
        }
        let mut cheapest = vec![u64::MAX; size];
        let (mut price, mut tried) = (self.price(cells, &mut cheapest), 0);
        loop {
            let before = price;
            for i in 0..cells.len() {
                interrupt.check()?;
                for step in STEPS {
                    for (down, right) in MOVES_OF_ONE {
                        let cell = cells[i].map(i64::from);
                        let moved = [cell[0] + down * step, cell[1] + right * step];
                        if !inside(moved) {
                            continue;
                        }
                        let kept = std::mem::replace(&mut cells[i], moved.map(|bound| bound as u32));
                        let new = self.price(cells, &mut cheapest);
                        tried += 1;
                        if new < price { price = new } else { cells[i] = kept }
                    }
                }
            }
            if price == before || tried >= MOVES {
                break;
            }
        }
        self.drop_unused(cells, &mut cheapest);
        Ok(price)
    }

    fn price(&self, cells: &[[u32; 2]], cheapest: &mut [u64]) -> Price {
        cheapest.fill(u64::MAX);
        for cell in cells {
            let field = self.field(*cell);
            cheapest[field] = self.costs[field];
        }
        let (mut unheld, mut cost) = (0, 0);
        for field in (0..cheapest.len()).rev() {
            // What a longer field can use, a shorter one can use too.
            let below = cheapest.get(field + self.width).copied().unwrap_or(u64::MAX);
            let right = if (field + 1) % self.width == 0 { u64::MAX } else { cheapest[field + 1] };
            let best = cheapest[field].min(below).min(right);
            cheapest[field] = best;
            if best == u64::MAX {
                unheld += self.counts[field];
            } else {
                cost += u128::from(self.counts[field]) * u128::from(best);
            }
        }
        (unheld, cost)
    }

    /// Leave out cells without which nothing costs more.
    fn drop_unused(&self, cells: &mut Vec<[u32; 2]>, cheapest: &mut [u64]) {
        let price = self.price(cells, cheapest);
        for i in (0..cells.len()).rev() {
            let cell = cells.swap_remove(i);
            if self.price(cells, cheapest) > price {
                cells.push(cell);
                let last = cells.len() - 1;
                cells.swap(i, last);
            }
        }
    }

    fn field(&self, [row, column]: [u32; 2]) -> usize {
        (row as usize - 1) * self.width + column as usize - 1
    }
}

/// Which of its bounds a cell moves, and to which side.
const MOVES_OF_ONE: [(i64, i64); 8] = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (1, 1), (-1, 1), (1, -1)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_moves_to_where_its_samples_are() {
        // Two clusters, and one sample of the first row in the last column, which a cell of the last row can hold.
        let counts = [50, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9];
        let costs: Vec<u64> = (0..12).map(|field| 1 + field / 4 + field % 4).collect();
        let plane = Plane { counts: &counts, costs: &costs, width: 4 };
        let mut cells = vec![[1, 4], [3, 4]];
        let price = plane.descend(&mut cells, Interrupt::NEVER).unwrap();
        cells.sort_unstable();
        assert_eq!(cells, [[1, 1], [3, 4]]);
        assert_eq!(price, (0, 50 + 11 * 6));
        // A cell that nothing needs is left out, and one that is none holds nobody.
        let mut cells = vec![[3, 4], [3, 4], [2, 2]];
        assert!(plane.descend(&mut cells, Interrupt::NEVER).unwrap() <= price);
        let mut none = costs.clone();
        none[11] = u64::MAX;
        let plane = Plane { counts: &counts, costs: &none, width: 4 };
        assert_eq!(plane.descend(&mut vec![[3, 4]], Interrupt::NEVER).unwrap().0, 9);
        assert!(plane.descend(&mut vec![[4, 4]], Interrupt::NEVER).is_err());
    }
}
