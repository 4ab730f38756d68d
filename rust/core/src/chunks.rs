//! Long samples in pieces that run in consecutive steps, each step filled to a budget of tokens: for models that carry a
//! state from piece to piece, and for chunked prefill.
//!
//! A sample that has started runs one piece in every step until its end, so its pieces are in order, never two in a step,
//! and none is skipped. Pieces never grow from one step to the next: what fits into a step when a sample starts fits into
//! all later ones. So a step takes the pieces of the running samples, and then starts others: the longest while a whole
//! piece fits, and the longest that fits otherwise. Starting long samples early (Graham's LPT rule) keeps the last steps
//! full. Cost: O(pieces + samples log distinct lengths).

use std::collections::BTreeMap;

use crate::{Error, Interrupt, Length, Result};

/// Steps of pieces: step `i` runs the entries `offsets[i]..offsets[i + 1]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chunks {
    /// The sample of every piece.
    pub indices: Vec<u32>,
    /// The tokens (start, stop) of the sample that the piece holds.
    pub segments: Vec<[u32; 2]>,
    /// Where each step starts; one more entry than there are steps.
    pub offsets: Vec<i64>,
    /// No plan has fewer steps: all tokens over the budget, and the pieces of the longest sample.
    pub lower_bound: u64,
}

/// Plan pieces of at most `chunk` tokens into steps of at most `max_tokens`.
///
/// # Errors
/// [`Error::Invalid`] for limits that no piece can satisfy; the caller's interrupt.
pub fn plan_chunks<L: Length>(lengths: &[L], max_tokens: u64, chunk: u32, interrupt: Interrupt<'_>) -> Result<Chunks> {
    if chunk == 0 || u64::from(chunk) > max_tokens {
        return Err(Error::invalid(format!(
            "chunk is {chunk} tokens, but must be 1 to max_tokens={max_tokens}; a step must hold one piece"
        )));
    }
    if lengths.len() > u32::MAX as usize {
        return Err(Error::invalid(format!(
            "lengths holds {} samples, but at most 2^32 - 1 are planned",
            lengths.len()
        )));
    }
    let mut waiting = Waiting::new(lengths);
    let mut plan = Chunks { offsets: vec![0], lower_bound: bound(lengths, max_tokens, chunk), ..Chunks::default() };
    let mut running: Vec<(u32, u32)> = Vec::new();
    while !running.is_empty() || !waiting.is_empty() {
        interrupt.check()?;
        let mut room = max_tokens;
        running.retain_mut(|(sample, start)| {
            let length = lengths.get(*sample as usize).map_or(0, |&length| length.into());
            let stop = length.min(start.saturating_add(chunk));
            plan.put(*sample, *start, stop);
            room -= u64::from(stop - *start);
            *start = stop;
            stop < length
        });
        while let Some((length, sample)) = waiting.take(room, chunk) {
            let stop = length.min(chunk);
            plan.put(sample, 0, stop);
            room -= u64::from(stop);
            if stop < length {
                running.push((sample, stop));
            }
        }
        plan.offsets.push(plan.indices.len() as i64);
    }
    Ok(plan)
}

impl Chunks {
    fn put(&mut self, sample: u32, start: u32, stop: u32) {
        self.indices.push(sample);
        self.segments.push([start, stop]);
    }
}

fn bound<L: Length>(lengths: &[L], max_tokens: u64, chunk: u32) -> u64 {
    let tokens: u64 = lengths.iter().map(|&length| u64::from(length.into())).sum();
    let longest: u32 = lengths.iter().max().map_or(0, |&length| length.into());
    tokens.div_ceil(max_tokens).max(u64::from(longest.div_ceil(chunk))).max(u64::from(!lengths.is_empty()))
}

/// Samples that have not started, by length, the first of each length first.
struct Waiting {
    /// Length -> where its samples are in `order`: next, and behind the last.
    by_length: BTreeMap<u32, (usize, usize)>,
    order: Vec<u32>,
}

impl Waiting {
    fn new<L: Length>(lengths: &[L]) -> Self {
        let mut order: Vec<u32> = (0..lengths.len() as u32).collect();
        order.sort_by_key(|&sample| lengths.get(sample as usize).map_or(0, |&length| length.into()));
        let mut by_length = BTreeMap::new();
        for (place, &sample) in order.iter().enumerate() {
            let length = lengths.get(sample as usize).map_or(0, |&length| length.into());
            by_length.entry(length).or_insert((place, place)).1 = place + 1;
        }
        Self { by_length, order }
    }

    fn is_empty(&self) -> bool {
        self.by_length.is_empty()
    }

    /// The longest sample whose first piece fits into `room`.
    fn take(&mut self, room: u64, chunk: u32) -> Option<(u32, u32)> {
        let longest = if room >= u64::from(chunk) { u32::MAX } else { room as u32 };
        let (&length, places) = self.by_length.range_mut(..=longest).next_back()?;
        let sample = *self.order.get(places.0)?;
        places.0 += 1;
        if places.0 == places.1 {
            self.by_length.remove(&length);
        }
        Some((length, sample))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_run_in_consecutive_steps_within_the_budget(
            lengths in prop::collection::vec(0_u32..100, 0..60), chunk in 1_u32..20, more in 0_u64..60,
        ) {
            let max_tokens = u64::from(chunk) + more;
            let plan = plan_chunks(&lengths, max_tokens, chunk, Interrupt::NEVER).unwrap();
            let mut at = vec![(0_u32, None); lengths.len()];
            for (step, stops) in plan.offsets.windows(2).enumerate() {
                let mut used = 0;
                prop_assert!(stops[0] < stops[1]);
                for entry in stops[0] as usize..stops[1] as usize {
                    let [start, stop] = plan.segments[entry];
                    let (done, last) = &mut at[plan.indices[entry] as usize];
                    prop_assert_eq!(start, *done);
                    prop_assert!(stop - start <= chunk && last.is_none_or(|last| last + 1 == step));
                    (*done, *last) = (stop, Some(step));
                    used += u64::from(stop - start);
                }
                prop_assert!(used <= max_tokens);
            }
            for (&length, &(done, last)) in lengths.iter().zip(&at) {
                prop_assert!(done == length && last.is_some());
            }
            prop_assert!(plan.lower_bound < plan.offsets.len() as u64);
        }
    }
}
