//! What boundaries should minimise, and which program does it.

use super::constraints::{Constraints, Windows};
use super::grid::{Found, LIMIT, Table};
use super::search::broken;
use super::{Candidates, Number, Solution, longest, monge};
use crate::{Error, Interrupt, Limits, Result};

/// Cells of a grid, at least. For [`Objective::Longest`] the boundaries of 192 cells cost within 0.02 % of those of 512.
const GRID_LEAST: usize = 192;
/// And for every boundary asked for.
const GRID_PER_BOUNDARY: usize = 8;

/// What the cost of a set of boundaries is.
#[derive(Debug, Clone, Copy)]
pub enum Objective<'a> {
    /// Padded tokens when every sample is padded to its bound.
    Boundary,
    /// One sample padded to candidate j costs the j-th of these; they must not fall. Exact, with a proof.
    Costs(&'a [u64]),
    /// Batches under these limits, when every batch is padded to its bound and all but the last of a bucket are full.
    /// Exact where the candidates, or without constraints the different batch sizes among them, are at most [`LIMIT`]; with
    /// a proof of how near, by batches that need not be whole: always within as many batches as there are boundaries.
    Batches(&'a Limits),
    /// Expected padded tokens under these limits, when every batch is filled at random from its bucket and padded to its
    /// longest sample. Exact on a grid of at most [`LIMIT`] candidates; without a proof beyond it.
    Longest(&'a Limits),
}

/// The boundaries of least cost.
///
/// # Errors
/// [`Error::Invalid`]: a number of boundaries that is zero or above the number of candidates, costs of another number or
/// decreasing or too large, constraints that cannot hold; [`Error::Interrupted`].
pub fn optimal(
    candidates: &Candidates,
    objective: Objective<'_>,
    number: Number,
    constraints: &Constraints,
    interrupt: Interrupt<'_>,
) -> Result<Solution> {
    check(candidates, number)?;
    constraints.validate()?;
    let limits = match objective {
        Objective::Boundary => return monge::optimal(candidates, None, number, constraints, interrupt),
        Objective::Costs(costs) => return monge::optimal(candidates, Some(costs), number, constraints, interrupt),
        Objective::Batches(limits) | Objective::Longest(limits) => limits,
    };
    let gridded = Gridded::new(candidates, objective, limits, number, constraints, interrupt)?;
    let found = match number {
        Number::Exactly(k) => gridded.table.every(k, interrupt)?.pop().flatten(),
        Number::Worth(overhead) => gridded.table.worth(overhead as f64),
    };
    let found = found.ok_or_else(broken)?;
    let k = found.ends.len();
    let bound = match &gridded.relaxed {
        None => None,
        Some(relaxed) => {
            let costs = Some(&relaxed.costs[..]);
            let fractional = monge::optimal(candidates, costs, Number::Exactly(k), constraints, interrupt)?;
            fractional.lower_bound.map(|bound| relaxed.whole(bound))
        }
    };
    Ok(gridded.solution(&found, bound))
}

/// The optimum of every number of boundaries up to `most` (or to the number of candidates) that the constraints allow.
///
/// # Errors
/// As [`optimal`]; no number that is allowed.
pub fn curve(
    candidates: &Candidates,
    objective: Objective<'_>,
    most: usize,
    constraints: &Constraints,
    interrupt: Interrupt<'_>,
) -> Result<Vec<Solution>> {
    let most = most.min(candidates.bounds().len());
    let number = Number::Exactly(most);
    check(candidates, number)?;
    constraints.validate()?;
    let limits = match objective {
        Objective::Boundary => return monge::curve(candidates, None, most, constraints, interrupt),
        Objective::Costs(costs) => return monge::curve(candidates, Some(costs), most, constraints, interrupt),
        Objective::Batches(limits) | Objective::Longest(limits) => limits,
    };
    if !constraints.none() {
        // Each number has a grid that holds what is allowed; which numbers are does not depend on costs.
        let allowed = monge::curve(candidates, None, most, constraints, interrupt)?;
        let numbers = allowed.iter().map(|solution| Number::Exactly(solution.bounds.len()));
        return numbers.map(|number| optimal(candidates, objective, number, constraints, interrupt)).collect();
    }
    let gridded = Gridded::new(candidates, objective, limits, number, constraints, interrupt)?;
    let found: Vec<Found> = gridded.table.every(most, interrupt)?.into_iter().flatten().collect();
    let fractional = match &gridded.relaxed {
        None => Vec::new(),
        Some(relaxed) => monge::curve(candidates, Some(&relaxed.costs), most, constraints, interrupt)?,
    };
    let bound = |found: &Found| {
        let same = fractional.iter().find(|fractional| fractional.bounds.len() == found.ends.len())?;
        Some(gridded.relaxed.as_ref()?.whole(same.lower_bound?))
    };
    Ok(found.iter().map(|found| gridded.solution(found, bound(found))).collect())
}

/// Whether the candidates allow so many boundaries.
pub(super) fn check(candidates: &Candidates, number: Number) -> Result<()> {
    let most = candidates.bounds().len();
    let Number::Exactly(k) = number else { return Ok(()) };
    let limit = match k {
        0 => "at least 1 is needed".to_owned(),
        _ if k > most => format!("lengths allow at most {most}, one for each distinct length (rounded up)"),
        _ => return Ok(()),
    };
    Err(Error::invalid(format!("k is {k} boundaries, but {limit}")))
}

/// An objective in a table, on a grid of few candidates.
struct Gridded<'a> {
    all: &'a Candidates,
    limits: &'a Limits,
    grid: Candidates,
    table: Table,
    /// For batches: what they cost when they need not be whole.
    relaxed: Option<Relaxed>,
}

impl<'a> Gridded<'a> {
    fn new(
        candidates: &'a Candidates,
        objective: Objective<'_>,
        limits: &'a Limits,
        number: Number,
        constraints: &Constraints,
        interrupt: Interrupt<'_>,
    ) -> Result<Self> {
        limits.validate()?;
        let relaxed = matches!(objective, Objective::Batches(_)).then(|| Relaxed::new(candidates, limits));
        let costs = relaxed.as_ref().map(|relaxed| &relaxed.costs[..]);
        let present = satisfying(candidates, costs, number, constraints, interrupt)?;
        let k = if let Number::Exactly(k) = number { k } else { 0 };
        let sizes = match &relaxed {
            Some(relaxed) if constraints.none() => relaxed.distinct(),
            Some(_) => LIMIT,
            None => 0,
        };
        let cells = (GRID_PER_BOUNDARY * k).max(sizes).clamp(GRID_LEAST, LIMIT).max(present.len());
        if k > LIMIT {
            return Err(Error::invalid(format!(
                "k is {k} boundaries, but this objective is solved for at most {LIMIT}; use the objective \"boundary\""
            )));
        }
        let grid = coarsen(candidates, costs, cells, present, interrupt)?;
        let windows = Windows::new(&grid, constraints);
        let table = match objective {
            Objective::Longest(_) => longest::table(candidates, &grid, limits, &windows, interrupt)?,
            _ => whole_batches(&grid, limits, &windows, interrupt)?,
        };
        Ok(Self { all: candidates, limits, grid, table, relaxed })
    }

    fn solution(&self, found: &Found, lower_bound: Option<i128>) -> Solution {
        let mut solution = Solution::new(&self.grid, &found.ends, found.cost as i128, lower_bound);
        if self.relaxed.is_none() {
            solution.cost = longest::total(self.all, &solution.bounds, self.limits).round() as i128;
        }
        solution
    }
}

/// Boundaries that satisfy the constraints, none without constraints: a grid that lacks all such has no solution. As many
/// as are asked for, else as few as can be.
///
/// # Errors
/// [`Error::Invalid`] where none do: which constraint is to blame, by all candidates rather than those of a grid.
fn satisfying(
    candidates: &Candidates,
    costs: Option<&[u64]>,
    number: Number,
    constraints: &Constraints,
    interrupt: Interrupt<'_>,
) -> Result<Vec<u32>> {
    if constraints.none() {
        return Ok(Vec::new());
    }
    let number = if let Number::Worth(_) = number { Number::Worth(u64::MAX) } else { number };
    Ok(monge::optimal(candidates, costs, number, constraints, interrupt)?.bounds)
}

/// The `cells` candidates that round all others up at the least cost, and those that must be present.
pub(super) fn coarsen(
    candidates: &Candidates,
    costs: Option<&[u64]>,
    cells: usize,
    present: Vec<u32>,
    interrupt: Interrupt<'_>,
) -> Result<Candidates> {
    if candidates.bounds().len() <= cells {
        return Ok(candidates.clone());
    }
    let present = Constraints { include: present, ..Constraints::default() };
    let kept = monge::optimal(candidates, costs, Number::Exactly(cells), &present, interrupt)?;
    Ok(Candidates::of_buckets(kept.bounds, &kept.counts))
}

/// The number of batches of every bucket.
fn whole_batches(grid: &Candidates, limits: &Limits, windows: &Windows, interrupt: Interrupt<'_>) -> Result<Table> {
    let (bounds, below) = (grid.bounds(), grid.below());
    Table::new(bounds.len(), windows, interrupt, |end, costs| {
        let rows = u64::from(limits.rows(bounds[end - 1]));
        for (cost, start) in costs.iter_mut().zip(below) {
            *cost = ((below[end] - start) as u64).div_ceil(rows) as f64;
        }
    })
}

/// Batches that need not be whole: one sample is the share 1 / rows of a batch, in fixed point.
struct Relaxed {
    costs: Vec<u64>,
    bits: u32,
}

impl Relaxed {
    /// Rounded down, so that a bound for it is one for whole batches; by less than one batch for all samples together,
    /// which for more than 2^29 of them takes the wider arithmetic.
    fn new(candidates: &Candidates, limits: &Limits) -> Self {
        let width = 64 - candidates.samples().leading_zeros();
        let bits = if width < 30 { 60 - width } else { (92 - width).min(60) };
        let share = |&bound: &u32| (1 << bits) / u64::from(limits.rows(bound));
        Self { costs: candidates.bounds().iter().map(share).collect(), bits }
    }

    /// How many batch sizes there are.
    fn distinct(&self) -> usize {
        self.costs.chunk_by(|a, b| a == b).count()
    }

    /// The fewest whole batches that cost at least `bound`.
    fn whole(&self, bound: i128) -> i128 {
        -(-bound).div_euclid(1 << self.bits)
    }
}
