//! How many open packs of a stream stand at each level, and how many at the most crowded one.

/// Levels that have a counter of their own, at most.
const LEVELS: u32 = 1 << 20;

/// How many open packs stand at each level.
#[derive(Debug, Clone)]
pub(super) struct Levels {
    /// Packs at each level: units taken, in steps of `1 << shift`.
    packs: Vec<u16>,
    shift: u32,
    /// How many levels have so many packs.
    crowds: Vec<u32>,
    /// Packs at the most crowded level.
    most: i32,
}

impl Levels {
    /// No packs yet; at most `open_packs` and one more.
    pub(super) fn new(capacity: u32, open_packs: u32) -> Self {
        let shift = (capacity / LEVELS).checked_ilog2().map_or(0, |log| log + 1);
        let packs = vec![0; (capacity >> shift) as usize + 1];
        let mut crowds = vec![0; open_packs as usize + 2];
        crowds[0] = packs.len() as u32;
        Self { packs, shift, crowds, most: 0 }
    }

    /// Packs at the level of `fill`.
    #[inline]
    pub(super) fn at(&self, fill: u32) -> i32 {
        i32::from(self.packs[(fill >> self.shift) as usize])
    }

    /// One more pack has this fill.
    #[inline]
    pub(super) fn enter(&mut self, fill: u32) {
        let packs = &mut self.packs[(fill >> self.shift) as usize];
        self.crowds[usize::from(*packs)] -= 1;
        *packs += 1;
        self.crowds[usize::from(*packs)] += 1;
        self.most = self.most.max(i32::from(*packs));
    }

    /// One pack fewer has this fill.
    #[inline]
    pub(super) fn leave(&mut self, fill: u32) {
        let packs = &mut self.packs[(fill >> self.shift) as usize];
        self.crowds[usize::from(*packs)] -= 1;
        *packs -= 1;
        self.crowds[usize::from(*packs)] += 1;
        self.most -= i32::from(self.crowds[self.most as usize] == 0);
    }

    /// Packs at the most crowded level.
    #[inline]
    pub(super) fn most(&self) -> i32 {
        self.most
    }
}
