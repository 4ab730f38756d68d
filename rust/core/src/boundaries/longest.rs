//! What a bucket costs when each batch is padded to its own longest sample.
//!
//! **Problem**: the expected padded tokens of a bucket whose samples are shuffled and cut into batches under a token
//! budget. A batch of s samples with longest M is closed by the first further sample that would push
//! (s + 1) max(M, length) past the budget, and that sample opens the next batch. Small buckets of long samples fill few
//! samples a batch, so that their longest is often far below the bound: padding to the bound overstates what they cost.
//!
//! **Method**: tokens per sample are E[S M] / E[S] of one batch. With F the distribution of lengths in the bucket and G
//! that of the first sample of a batch, a batch reaches s samples when all s are among the lengths of which s fit a
//! batch, up to t(s): P(S >= s) = R(s, t(s)) where R(s, t) = G(t) F(t)^(s-1). Summing over s by parts,
//! E[S] = sum s (R(s, t(s)) - F(t(s+1)) R(s, t(s+1))) and E[S M] = sum s (U(s, t(s)) - F(t(s+1)) U(s, t(s+1))), where
//! U(s, t) = sum over lengths v <= t of v P(the longest of s is v). G starts as F; the samples that close batches then
//! make it longer, in one round, after which more change little.
//!
//! **Cost**: about 18 terms of O(cells) for each bucket; 30 ms for a grid of 192.
//!
//! **When it is wrong**: draws are taken as independent and batches as full, so buckets of fewer samples than a few
//! batches are only roughly right. On real data costs are within 0.1 % of a plan's. On a grid, cells stand for their mean
//! length, which is up to 0.2 % too low, alike for all; [`total`] has the cost of the boundaries that were found.

use super::Candidates;
use super::constraints::Windows;
use super::grid::Table;
use crate::{Interrupt, Limits, Result};

/// Terms of the sum are left out below this probability.
const NEGLIGIBLE: f64 = 1e-7;
/// And cells that hold the longest sample of a batch with a probability below this.
const NOTHING: f64 = 1e-13;

/// Batch sizes are looked at one by one up to so many above the smallest, and then in steps that grow with them: the terms of a
/// few rare giants among samples of which millions fit a batch would be millions too.
const EXACT: u32 = 1 << 10;

/// What costs are computed on: all candidates, or a grid of some.
pub(super) struct Cells<'a> {
    /// Cumulative samples.
    below: &'a [i64],
    /// The mean length in each cell.
    mean: Vec<f64>,
    /// How much longer the next cell is.
    growth: Vec<f64>,
    /// How many samples as long as the cell's bound fit a batch.
    rows: Vec<u32>,
}

impl<'a> Cells<'a> {
    /// The cells of `grid`, with the lengths of `all`.
    pub(super) fn new(all: &Candidates, grid: &'a Candidates, limits: &Limits) -> Self {
        let mean = means(all, grid);
        Self {
            below: grid.below(),
            growth: mean.windows(2).map(|pair| pair[1] - pair[0]).chain([0.0]).collect(),
            mean,
            rows: grid.bounds().iter().map(|&bound| limits.rows(bound)).collect(),
        }
    }
}

/// The costs of the buckets of `grid`, whose lengths are those of `all`.
pub(super) fn table(
    all: &Candidates,
    grid: &Candidates,
    limits: &Limits,
    windows: &Windows,
    interrupt: Interrupt<'_>,
) -> Result<Table> {
    let cells = Cells::new(all, grid, limits);
    let mut bucket = Bucket::default();
    Table::new(grid.bounds().len(), windows, interrupt, |end, costs| {
        for (start, cost) in costs.iter_mut().enumerate() {
            *cost = bucket.expected_tokens(&cells, start, end);
        }
    })
}

/// The cost of boundaries over all candidates.
pub(super) fn total(all: &Candidates, bounds: &[u32], limits: &Limits) -> f64 {
    let cells = Cells::new(all, all, limits);
    let mut bucket = Bucket::default();
    let mut start = 0;
    let cost = |&bound: &u32| {
        let end = all.bounds().partition_point(|&candidate| candidate <= bound);
        bucket.expected_tokens(&cells, std::mem::replace(&mut start, end), end)
    };
    bounds.iter().map(cost).sum()
}

/// The mean length of the samples in each cell of the grid (its bound, where it holds none).
fn means(all: &Candidates, grid: &Candidates) -> Vec<f64> {
    let mut rest = all.bounds().iter().zip(all.below().windows(2)).peekable();
    let mean = |&bound: &u32| {
        let (mut samples, mut tokens) = (0, 0.0);
        while let Some((&length, below)) = rest.next_if(|&(&length, _)| length <= bound) {
            samples += below[1] - below[0];
            tokens += (below[1] - below[0]) as f64 * f64::from(length);
        }
        if samples == 0 { f64::from(bound) } else { tokens / samples as f64 }
    };
    grid.bounds().iter().map(mean).collect()
}

/// The cells of one bucket, in buffers that are used again.
#[derive(Default)]
pub(super) struct Bucket {
    /// F: the share of the bucket's samples at or below each cell.
    share: Vec<f64>,
    /// G: the same for the first sample of a batch.
    first: Vec<f64>,
    /// R at the present s: P(the longest of s is at or below each cell).
    reach: Vec<f64>,
    /// Powers of F to powers of two.
    square: Vec<f64>,
    /// The part of G that comes with each cell: batches closed by a sample at or above it, and what F there is to count
    /// less.
    closed: Vec<(f64, f64)>,
}

impl Bucket {
    pub(super) fn expected_tokens(&mut self, cells: &Cells<'_>, mut start: usize, end: usize) -> f64 {
        let before = cells.below[start];
        let samples = cells.below[end] - before;
        if samples == 0 {
            return 0.0;
        }
        let cap = samples.min(u32::MAX.into()) as u32;
        // Every batch has at least as many samples as fit at the bound.
        let size = cells.rows[end - 1].min(cap);
        // F^s < NOTHING wherever F < 1 - 30 / s: the longest sample of a batch is never there.
        let least = before + (samples as f64 * (1.0 - 30.0 / f64::from(size))) as i64;
        start += cells.below[start + 1..end].partition_point(|&below| below < least);
        let shares = cells.below[start + 1..=end].iter().map(|&below| (below - before) as f64 / samples as f64);
        self.share.clear();
        self.share.extend(shares);
        self.first.clone_from(&self.share);
        if size < cells.rows[start].min(cap) {
            self.round(cells, start, size, cap);
            self.reopen();
        }
        let (sizes, tokens) = self.round(cells, start, size, cap);
        samples as f64 * tokens / sizes
    }

    /// E[S] and E[S M] of a batch; notes by what batches are closed.
    fn round(&mut self, cells: &Cells<'_>, start: usize, mut size: u32, cap: u32) -> (f64, f64) {
        let smallest = size;
        let (mean, growth, rows) = (&cells.mean[start..], &cells.growth[start..], &cells.rows[start..]);
        self.raise(size - 1);
        self.closed.clear();
        self.closed.resize(self.share.len() + 1, (0.0, 0.0));
        // The cells from `low` on count, of which the first up to `fit` are those of which `size` samples fit.
        let (mut low, mut fit) = (0, self.share.len());
        let (mut sizes, mut tokens) = (0.0, 0.0);
        loop {
            let step = ((size - smallest) / EXACT).clamp(1, cap - size + 1);
            let middle = f64::from(size) + f64::from(step - 1) / 2.0;
            let more = low + rows[low..fit].partition_point(|&rows| rows.min(cap) - size >= step);
            // U by parts: v(t) R(t), less what lies below the steps from one cell to the next.
            let last_more = more.max(low + 1) - 1;
            let steps_more = dot(&self.reach[low..last_more], &growth[low..]);
            let steps = steps_more + dot(&self.reach[last_more..fit - 1], &growth[last_more..]);
            let reach = self.reach[fit - 1];
            let (mut kept, mut share, mut longest_more) = (0.0, 0.0, 0.0);
            if more > low {
                (kept, share) = (self.reach[more - 1], self.share[more - 1]);
                longest_more = mean[more - 1] * kept - steps_more;
            }
            let powered = power(share, step);
            sizes += middle * (reach - powered * kept);
            tokens += middle * (mean[fit - 1] * reach - steps - powered * longest_more);
            // Full batches are followed by any sample, the others by the one that does not fit.
            self.closed[0].0 += reach - kept;
            let closed = if share < 1.0 { kept * ((1.0 - powered) / (1.0 - share)) } else { kept * f64::from(step) };
            self.closed[more].0 += closed;
            self.closed[more].1 += closed * share;
            if powered * kept < NEGLIGIBLE {
                return (sizes, tokens);
            }
            (fit, size) = (more, size + step);
            let reached = self.reach[low..fit].iter_mut().zip(&self.share[low..]);
            if step == 1 {
                reached.for_each(|(reach, share)| *reach *= share);
            } else {
                reached.for_each(|(reach, &share)| *reach *= power(share, step));
            }
            low += self.reach[low..fit - 1].iter().take_while(|&&reach| reach < NOTHING).count();
        }
    }

    /// Let `first` be the distribution of the samples that follow batches, as the last round noted them.
    fn reopen(&mut self) {
        let (mut batches, mut less) = (0.0, 0.0);
        for ((first, share), closed) in self.first.iter_mut().zip(&self.share).zip(&self.closed) {
            batches += closed.0;
            less += closed.1;
            *first = batches * share - less;
        }
        let all = self.first[self.first.len() - 1];
        self.first.iter_mut().for_each(|first| *first /= all);
    }

    /// Let `reach` be G times F to the power of `exponent`. Products only: the same bits on every machine.
    fn raise(&mut self, mut exponent: u32) {
        self.square.clone_from(&self.share);
        self.reach.clone_from(&self.first);
        while exponent > 0 {
            if exponent & 1 == 1 {
                self.reach.iter_mut().zip(&self.square).for_each(|(reach, square)| *reach *= square);
            }
            exponent >>= 1;
            if exponent > 0 {
                self.square.iter_mut().for_each(|square| *square *= *square);
            }
        }
    }
}

/// `base` to the power of `exponent`. Products only: the same bits on every machine.
fn power(base: f64, exponent: u32) -> f64 {
    let (mut power, mut square, mut left) = (1.0, base, exponent);
    while left > 1 {
        if left & 1 == 1 {
            power *= square;
        }
        square *= square;
        left >>= 1;
    }
    if left == 1 { power * square } else { power }
}

/// The sum of products, in four lanes: a fixed order that a compiler can keep in vectors.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; 4];
    let (mut fours, mut other) = (a.chunks_exact(4), b[..a.len()].chunks_exact(4));
    for (a, b) in (&mut fours).zip(&mut other) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * b;
        }
    }
    let rest: f64 = fours.remainder().iter().zip(other.remainder()).map(|(a, b)| a * b).sum();
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) + rest
}
