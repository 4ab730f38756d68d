//! Open packs by what is left of several limits: the search for one that has room.
//!
//! What is left of each limit is cut into levels, and packs with the same levels share a cell. A sample goes to the first
//! cell, in the order of the first limit, whose levels suffice for it: best fit, up to the width of a level. Where a level
//! only just suffices, a few packs of the cell are tried. Cost: a look at the occupied cells from the sample's own on, 1 to
//! 3 ns each. Wrong where more than about ten limits leave only one level each: most packs are then never tried.

use super::limited::Limit;

/// Cells there can be, at most.
const CELLS: usize = 1 << 13;

/// Packs of a cell that are tried.
const LOOKS: usize = 8;

/// Packs that were opened, each with what is left of every limit.
pub(super) struct Cells {
    /// For every pack, what is left of each limit.
    left: Vec<u64>,
    /// For every limit, the most, the shift from what is left to a level, and what a level adds to the number of a cell.
    limits: Vec<(u64, u32, usize)>,
    /// The packs of each cell.
    packs: Vec<Vec<u32>>,
    /// For every cell, its level of each limit.
    levels: Vec<u16>,
    /// One bit a cell: whether it has packs.
    occupied: Vec<u64>,
}

impl Cells {
    pub(super) fn new(limits: &[Limit<'_>]) -> Self {
        // Small limits first: what they do not use of the cells is left for the others.
        let mut order: Vec<usize> = (0..limits.len()).collect();
        order.sort_by_key(|&limit| limits[limit].most);
        let (mut shifts, mut sides, mut cells) = (vec![0; limits.len()], vec![1; limits.len()], CELLS);
        for (done, &limit) in order.iter().enumerate() {
            let (most, rest) = (limits[limit].most, (limits.len() - done) as u32);
            let side =
                (1..=cells).rev().find(|side| side.checked_pow(rest).is_some_and(|all| all <= cells)).unwrap_or(1);
            shifts[limit] = (0..64).find(|&shift| most >> shift < side as u64).unwrap_or(63);
            sides[limit] = (most >> shifts[limit]) as usize + 1;
            cells = (cells / sides[limit]).max(1);
        }
        let total: usize = sides.iter().product();
        let (mut stride, mut known) = (total, Vec::with_capacity(limits.len()));
        for (limit, (&shift, &side)) in limits.iter().zip(shifts.iter().zip(&sides)) {
            stride /= side;
            known.push((limit.most, shift, stride));
        }
        let levels =
            (0..total).flat_map(|cell| known.iter().zip(&sides).map(move |(of, side)| (cell / of.2 % side) as u16));
        let levels = levels.collect();
        let occupied = vec![0; total.div_ceil(64)];
        Self { left: vec![], limits: known, packs: vec![vec![]; total], levels, occupied }
    }

    /// Put a sample that takes `needs` of the limits into a pack that has room, or into a new one; the number of the pack.
    pub(super) fn put(&mut self, needs: &[u64]) -> u32 {
        let width = self.limits.len();
        let pack = if let Some((cell, place)) = self.find(needs) {
            let pack = self.packs[cell].swap_remove(place);
            if self.packs[cell].is_empty() {
                self.occupied[cell / 64] &= !(1 << (cell % 64));
            }
            pack
        } else {
            self.left.extend(self.limits.iter().map(|limit| limit.0));
            (self.left.len() / width) as u32 - 1
        };
        let left = &mut self.left[pack as usize * width..][..width];
        left.iter_mut().zip(needs).for_each(|(left, need)| *left -= need);
        let cell = cell(&self.limits, left);
        self.packs[cell].push(pack);
        self.occupied[cell / 64] |= 1 << (cell % 64);
        pack
    }

    /// The cell and the place in it of a pack that has room for `needs`.
    fn find(&self, needs: &[u64]) -> Option<(usize, usize)> {
        let width = needs.len();
        let own = cell(&self.limits, needs);
        let wanted = &self.levels[own * width..][..width];
        let mut mask = u64::MAX << (own % 64);
        for (word, &occupied) in self.occupied.iter().enumerate().skip(own / 64) {
            let mut bits = occupied & mask;
            mask = u64::MAX;
            while bits != 0 {
                let cell = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let levels = &self.levels[cell * width..][..width];
                if levels.iter().zip(wanted).any(|(level, wanted)| level < wanted) {
                    continue;
                }
                let packs = &self.packs[cell];
                let fits = |&place: &usize| {
                    let left = &self.left[packs[place] as usize * width..][..width];
                    left.iter().zip(needs).all(|(left, need)| left >= need)
                };
                if let Some(place) = (0..packs.len()).rev().take(LOOKS).find(fits) {
                    return Some((cell, place));
                }
            }
        }
        None
    }
}

/// The cell of packs that have `left` of the limits.
fn cell(limits: &[(u64, u32, usize)], left: &[u64]) -> usize {
    limits.iter().zip(left).map(|(&(_, shift, stride), left)| (left >> shift) as usize * stride).sum()
}
