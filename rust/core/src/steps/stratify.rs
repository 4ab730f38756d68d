//! Steps that all have the mean length of the epoch, as nearly as their batches allow.
//!
//! With a token budget batches hold about equal tokens, so a step may draw them across all lengths. The deviation of a
//! batch is what it adds to (tokens - mean length * samples) of its step: a step whose deviations add up to the mean of
//! all steps has the mean length of the epoch. Method: longest processing time with equal counts, from the batches that
//! deviate most (those of short samples, which have many) to those that hardly do; equal deviations come in the given
//! order. The lightest step is found in constant time: steps are listed by sum, in cells that are a small part of what a
//! batch can deviate by; and as sums only grow, the first cell that holds one only moves on. Cost: O(b), 15 ns a batch.
//! When it is not enough: one batch of thousands of short samples outweighs all others of its step together. No choice of
//! companions helps then (exchanges on the spread itself gain 0 to 7 %), only batches of fewer samples do. Drawing from
//! strata of sorted batches, or spreading each bucket evenly over the epoch, leaves 2 to 15 times the spread at 8 batches
//! a step. Source: Graham, SIAM J. Appl. Math. 17 (1969).

use super::Table;

/// Costs of batches are counted in this many units.
const COST_BITS: u32 = 32;
/// Batches are sorted by this many leading bits of their costs.
const SORTED_BITS: u32 = 14;
/// Cells for the sums of steps: at least 2 to this, and at least 16 a step.
const LEAST_CELL_BITS: u32 = 16;
const NONE: u32 = u32::MAX;

/// The batches of `order`, step after step.
pub(super) fn stratified(table: Table<'_>, order: &[u32], step: usize) -> Vec<u32> {
    let costs = costs(table, order);
    let mut lists = Lists::new(order.len() / step, step);
    let mut composed = vec![0; order.len()];
    for place in by_descending(&costs) {
        let Some((number, held)) = lists.add_to_lightest(u64::from(costs[place as usize])) else { break };
        composed[number * step + held] = order[place as usize];
    }
    composed
}

/// How far each batch is from the end of the deviations where the fewest are.
fn costs(table: Table<'_>, order: &[u32]) -> Vec<u32> {
    let tokens: u64 = table.tokens.iter().sum();
    let samples: u64 = table.sizes.iter().map(|&size| u64::from(size)).sum();
    let mean = tokens as f64 / samples.max(1) as f64;
    let deviations: Vec<f64> = order
        .iter()
        .map(|&batch| table.tokens[batch as usize] as f64 - mean * f64::from(table.sizes[batch as usize]))
        .collect();
    let (mut low, mut high) = (0.0_f64, 0.0_f64);
    for &deviation in &deviations {
        (low, high) = (low.min(deviation), high.max(deviation));
    }
    let scale = if high > low { f64::from(u32::MAX) / (high - low) } else { 0.0 };
    let from_high = -low > high;
    let distance = |deviation: f64| if from_high { high - deviation } else { deviation - low };
    deviations.into_iter().map(|deviation| (distance(deviation) * scale) as u32).collect()
}

/// Places by descending cost, to `SORTED_BITS`; equal ones in order.
fn by_descending(costs: &[u32]) -> Vec<u32> {
    let cell = |cost: u32| ((u32::MAX - cost) >> (COST_BITS - SORTED_BITS)) as usize;
    let mut next = vec![0_u32; 1 << SORTED_BITS];
    for &cost in costs {
        next[cell(cost)] += 1;
    }
    let mut before = 0;
    for slot in &mut next {
        before += std::mem::replace(slot, before);
    }
    let mut places = vec![0; costs.len()];
    for (&cost, place) in costs.iter().zip(0..) {
        let slot = &mut next[cell(cost)];
        places[*slot as usize] = place;
        *slot += 1;
    }
    places
}

/// The steps with room, in one list for each cell of sums.
struct Lists {
    /// Batches of a full step.
    room: u32,
    shift: u32,
    /// The first step of each cell, and the cell before which none has any.
    heads: Vec<u32>,
    first: usize,
    steps: Vec<Step>,
}

#[derive(Clone, Copy)]
struct Step {
    sum: u64,
    held: u32,
    next: u32,
}

impl Lists {
    fn new(steps: usize, room: usize) -> Self {
        let cell_bits = (16 * steps).max(1).next_power_of_two().ilog2().max(LEAST_CELL_BITS);
        // Sums are below room * 2^COST_BITS.
        let sum_bits = COST_BITS + room.next_power_of_two().ilog2();
        let mut heads = vec![NONE; (1 << cell_bits) + 1];
        let list = (0..steps as u32).map(|step| Step { sum: 0, held: 0, next: step + 1 });
        let mut steps: Vec<Step> = list.collect();
        if let Some(last) = steps.last_mut() {
            (last.next, heads[0]) = (NONE, 0);
        }
        Self { room: room as u32, shift: sum_bits.saturating_sub(cell_bits), heads, first: 0, steps }
    }

    /// Add a cost to a step of the first cell: which step it is, and how many batches it held before.
    fn add_to_lightest(&mut self, cost: u64) -> Option<(usize, usize)> {
        self.first += self.heads.get(self.first..)?.iter().position(|&head| head != NONE)?;
        let number = self.heads[self.first];
        let step = &mut self.steps[number as usize];
        self.heads[self.first] = step.next;
        let held = step.held;
        step.held += 1;
        step.sum += cost;
        if step.held < self.room {
            let cell = (step.sum >> self.shift) as usize;
            step.next = std::mem::replace(&mut self.heads[cell], number);
        }
        Some((number as usize, held as usize))
    }
}
