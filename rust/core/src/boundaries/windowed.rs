//! Boundaries under constraints, at a charge apiece or one layer after the other.
//!
//! **Problem**: the recurrence of [`super::lagrangian`], where the bucket that ends at j may begin only in a window of
//! starts ([`Windows`]) that moves up with j.
//!
//! **Method**: a later start that is as good as an earlier one at some end stays so at all further ends (the Monge
//! property, and windows that close from below). A queue holds the starts that are best somewhere, each with the end
//! from which it is; a new start is compared with the last of them, and its first good end found by bisection (Galil
//! and Park, 1992). The convex-hull queue of the free problem would be wrong: it forgets starts that become best when an
//! earlier one leaves the window. Buckets that begin at 0 have no bound before them, and hence no ratio: they are
//! compared apart.
//!
//! **Cost**: O(m log m); about 100 ns a candidate.
//!
//! **When charges are not enough**: the free first bucket can make the optimum not convex in the number of boundaries,
//! and some numbers then are optimal at no charge; [`Windowed::layered`] finds them in O(k m log m).

use std::collections::VecDeque;

use super::Candidates;
use super::constraints::Windows;
use super::search::{Path, Solver};
use super::total::Total;
use crate::{Error, Interrupt, Result};

/// Predecessors that the layered program may store.
const LAYERED_LIMIT: usize = 1 << 28;

pub(super) struct Windowed<'a> {
    below: &'a [i64],
    costs: &'a [u64],
    windows: &'a Windows,
    /// The best total of every end, where there is one.
    totals: Vec<Option<i128>>,
    from: Vec<u32>,
    interrupt: Interrupt<'a>,
}

impl<'a> Windowed<'a> {
    pub(super) fn new(
        candidates: &'a Candidates,
        costs: &'a [u64],
        windows: &'a Windows,
        interrupt: Interrupt<'a>,
    ) -> Self {
        let size = candidates.below().len();
        Self { below: candidates.below(), costs, windows, totals: vec![None; size], from: vec![0; size], interrupt }
    }

    /// Whether buckets may end there.
    pub(super) fn allows(&self, ends: &[u32]) -> bool {
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(ends).all(|(start, &end)| self.windows.allow(start as usize, end as usize))
    }

    /// The doubled cost of the samples in (start, end].
    fn bucket(&self, start: u32, end: usize) -> i128 {
        i128::of(self.below[end] - self.below[start as usize], 2 * self.costs[end - 1])
    }

    /// Fill `totals` and `from` with the best buckets that begin above 0, each after a path of total `before[start]`;
    /// without `before` after the best path of any number of buckets, of which the first begins at 0.
    fn sweep(&mut self, before: Option<&[Option<i128>]>, charge: i128) -> Result<()> {
        self.interrupt.check()?;
        let mut queue: VecDeque<Start> = VecDeque::new();
        let mut next = 1;
        for end in 1..self.below.len() {
            while next < self.windows.upto[end] {
                if let Some(total) = before.map_or(self.totals[next as usize], |before| before[next as usize]) {
                    self.enqueue(&mut queue, Start { index: next, total, since: end });
                }
                next += 1;
            }
            while queue.get(1).is_some_and(|second| second.since <= end) {
                queue.pop_front();
            }
            let later = queue.front().filter(|start| start.index >= self.windows.earliest[end]);
            let later = later.map(|start| (start.total + self.bucket(start.index, end), start.index));
            let first = before.is_none() && self.windows.allow(0, end);
            let first = first.then(|| (self.bucket(0, end), 0));
            let best = later.into_iter().chain(first).min();
            self.totals[end] = best.map(|(total, _)| total + charge);
            self.from[end] = best.map_or(0, |(_, from)| from);
        }
        Ok(())
    }

    /// Add a start, from the end on at which it is as good as those before it.
    fn enqueue(&self, queue: &mut VecDeque<Start>, mut new: Start) {
        let first_end = new.since;
        while let Some(last) = queue.back() {
            new.since = first_end.max(last.since);
            if self.beats(&new, last, new.since) {
                queue.pop_back();
                new.since = first_end;
                continue;
            }
            let (mut worse, mut better) = (new.since, self.below.len());
            while better - worse > 1 {
                let middle = worse + (better - worse) / 2;
                if self.beats(&new, last, middle) { better = middle } else { worse = middle }
            }
            new.since = better;
            break;
        }
        if new.since < self.below.len() {
            queue.push_back(new);
        }
    }

    /// Whether a later start is at least as good as an earlier one for a bucket that ends at `end`.
    fn beats(&self, later: &Start, earlier: &Start, end: usize) -> bool {
        let samples = self.below[later.index as usize] - self.below[earlier.index as usize];
        earlier.index < self.windows.earliest[end]
            || later.total - earlier.total <= i128::of(samples, 2 * self.costs[end - 1])
    }

    /// The cheapest path of exactly `k` edges and its doubled cost, convex or not; `None` where there is none.
    pub(super) fn layered(&mut self, k: usize) -> Result<Option<(Vec<u32>, i128)>> {
        let ends = self.below.len();
        if k.saturating_mul(ends) > LAYERED_LIMIT {
            return Err(Error::invalid(format!(
                "k is {k} boundaries of {} distinct lengths, too many for max_ratio here; use multiple_of or fewer",
                ends - 1
            )));
        }
        let first = |end| (end > 0 && self.windows.allow(0, end)).then(|| self.bucket(0, end));
        let mut totals: Vec<Option<i128>> = (0..ends).map(first).collect();
        let mut layers: Vec<Vec<u32>> = Vec::new();
        for _ in 1..k {
            self.sweep(Some(&totals), 0)?;
            totals.clone_from(&self.totals);
            layers.push(self.from.clone());
        }
        let Some(total) = totals[ends - 1] else { return Ok(None) };
        let mut path = vec![ends as u32 - 1];
        for layer in layers.iter().rev() {
            path.push(layer[path[path.len() - 1] as usize]);
        }
        path.reverse();
        Ok(Some((path, total)))
    }
}

impl Solver<i128> for Windowed<'_> {
    fn solve(&mut self, charge: i128) -> Result<Option<Path<i128>>> {
        self.sweep(None, charge)?;
        Ok(self.totals.last().copied().flatten().map(|dual| Path::trace(&self.from, charge, dual)))
    }
}

/// A start that is the best one for buckets that end at `since` and beyond, until the next in the queue.
struct Start {
    index: u32,
    total: i128,
    since: usize,
}
