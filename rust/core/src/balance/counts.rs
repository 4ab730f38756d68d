//! How many items each part may still take.

/// Counts of items per part: equal shares (n mod k parts take one item above the floor, whoever comes first), or free.
pub(super) struct Counts {
    floor: usize,
    above_floor: usize,
    held: Vec<usize>,
}

impl Counts {
    pub(super) fn new(items: usize, parts: usize, equal: bool) -> Self {
        let (floor, above_floor) = if equal { (items / parts, items % parts) } else { (items, 0) };
        Self { floor, above_floor, held: vec![0; parts] }
    }

    pub(super) fn admits(&self, part: u32) -> bool {
        let held = self.held[part as usize];
        held < self.floor || (held == self.floor && self.above_floor > 0)
    }

    pub(super) fn add(&mut self, part: u32) {
        let held = &mut self.held[part as usize];
        if *held >= self.floor {
            self.above_floor -= 1;
        }
        *held += 1;
    }
}
