//! The most valuable pack: which samples, at given values of their sizes, are worth most within the capacity.
//!
//! Unbounded knapsack by dynamic programming over the room, with one more dimension where samples are capped. Values are
//! integers kept in floating point: sums of them below 2^53 are exact, so what is proven with them holds, and the maximum
//! of two floats is one vector instruction. Which samples make up the best pack is found by walking back: exact values make
//! the question "did this size come last?" one comparison.
//!
//! Cost: O(sizes x room), times the cap where it binds; about 0.3 ns a step.

/// Sizes, and room for the tables.
#[derive(Debug)]
pub(super) struct Knapsack<'a> {
    sizes: &'a [u32],
    /// Rows of `capacity + 1` values: row k is the best with at most k samples; only one row where no cap binds.
    best: Vec<f64>,
    room: usize,
    rows: usize,
}

/// (class, times) of one pack.
pub(super) type Pattern = Vec<(u32, u32)>;

impl<'a> Knapsack<'a> {
    /// For packs of `capacity` units and at most `max_samples` samples of the ascending `sizes`. Without a cap that binds,
    /// no size may be 0.
    pub(super) fn new(sizes: &'a [u32], capacity: u32, max_samples: u32) -> Self {
        let smallest = sizes.first().copied().unwrap_or(1);
        let most = capacity.checked_div(smallest).unwrap_or(u32::MAX);
        let rows = if max_samples < most { max_samples as usize + 1 } else { 1 };
        let room = capacity as usize + 1;
        Self { sizes, best: vec![0.0; rows * room], room, rows }
    }

    /// Elementary steps of one call of [`Knapsack::solve`], at most.
    pub(super) fn work(&self) -> u64 {
        let steps: usize = self.sizes.iter().map(|&size| self.room - size as usize).sum();
        (steps * self.rows.saturating_sub(1).max(1)) as u64
    }

    /// The best value, and a pack that has it. `values[i]` is that of a sample of class i; classes of value 0 are left out.
    pub(super) fn solve(&mut self, values: &[f64]) -> (f64, Pattern) {
        if self.rows == 1 { self.solve_uncapped(values) } else { self.solve_capped(values) }
    }

    fn solve_uncapped(&mut self, values: &[f64]) -> (f64, Pattern) {
        self.best.fill(0.0);
        for (&size, &value) in self.sizes.iter().zip(values).filter(|(_, value)| **value > 0.0) {
            let size = size as usize;
            // A sample may be taken again and again: within `size` places nothing depends on what is being written.
            for start in (size..self.room).step_by(size.max(1)) {
                let (before, after) = self.best.split_at_mut(start);
                raise(after, &before[start - size..], value);
            }
        }
        let mut pattern = Pattern::new();
        let mut room = self.room - 1;
        let value = self.best[room];
        while self.best[room] > 0.0 {
            let Some(class) = self.last(values, &self.best, self.best[room], room) else { break };
            take(&mut pattern, class);
            room -= self.sizes[class] as usize;
        }
        (value, pattern)
    }

    fn solve_capped(&mut self, values: &[f64]) -> (f64, Pattern) {
        let room = self.room;
        self.best[..room].fill(0.0);
        for row in 1..self.rows {
            let (before, after) = self.best.split_at_mut(row * room);
            let (before, after) = (&before[(row - 1) * room..], &mut after[..room]);
            after.copy_from_slice(before);
            for (&size, &value) in self.sizes.iter().zip(values).filter(|(_, value)| **value > 0.0) {
                raise(&mut after[size as usize..], before, value);
            }
        }
        let (mut row, mut left, mut pattern) = (self.rows - 1, room - 1, Pattern::new());
        let value = self.best[row * room + left];
        while row > 0 {
            let (now, before) = (self.best[row * room + left], &self.best[(row - 1) * room..row * room]);
            row -= 1;
            if now <= before[left] {
                continue;
            }
            let Some(class) = self.last(values, before, now, left) else { break };
            take(&mut pattern, class);
            left -= self.sizes[class] as usize;
        }
        (value, pattern)
    }

    /// A class that a pack worth `value` in `room` can have as its last, on top of the values `before`.
    fn last(&self, values: &[f64], before: &[f64], value: f64, room: usize) -> Option<usize> {
        let fits = self.sizes.partition_point(|&size| size as usize <= room);
        #[expect(clippy::float_cmp, reason = "the values are integers, and their sums exact")]
        (0..fits)
            .rev()
            .find(|&class| values[class] > 0.0 && before[room - self.sizes[class] as usize] + values[class] == value)
    }
}

/// `to[i] = max(to[i], from[i] + value)`.
#[inline]
fn raise(to: &mut [f64], from: &[f64], value: f64) {
    for (to, &from) in to.iter_mut().zip(from) {
        let better = from + value;
        *to = if better > *to { better } else { *to };
    }
}

fn take(pattern: &mut Pattern, class: usize) {
    match pattern.iter_mut().find(|(taken, _)| *taken == class as u32) {
        Some((_, times)) => *times += 1,
        None => pattern.push((class as u32, 1)),
    }
}
