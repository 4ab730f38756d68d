"""What every number of boundaries costs at best: how many are enough?"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from lengthwise._arrays import MAX_LENGTH
from lengthwise._core import LengthwiseError
from lengthwise._integers import as_integer
from lengthwise._objective import WORTH, Limits, Objective
from lengthwise.boundaries import Auto, candidates_of, constraints_of, solution_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt
    import pyarrow as pa
    from matplotlib.axes import Axes

    from lengthwise.boundaries import BoundaryObjective, BoundarySolution

#: Rows that a notebook shows.
SHOWN = 32


@dataclass(frozen=True, eq=False, repr=False)
class PaddingCurve:
    """The optimum of every number of boundaries.

    `curve[k]` is the `BoundarySolution` of k boundaries, for every number in `curve.k`: from 1 on, without those that
    constraints rule out. Iterating gives them in that order.

    Attributes:
        solutions: one for each number of boundaries, ascending.
        least: what the epoch costs without any padding, in the units of the objective.
    """

    solutions: tuple[BoundarySolution, ...] = field(repr=False)
    least: float

    @property
    def k(self) -> npt.NDArray[np.int64]:
        """int64[m]: the numbers of boundaries, ascending: 1 to m without constraints."""
        return np.array([len(solution) for solution in self.solutions], dtype=np.int64)

    @property
    def costs(self) -> npt.NDArray[np.float64]:
        """float64[m]: the least cost for each number of boundaries, in the units of the objective."""
        return np.array([solution.cost for solution in self.solutions], dtype=np.float64)

    @property
    def padding(self) -> npt.NDArray[np.float64]:
        """float64[m]: padded over real tokens, less 1, for each number of boundaries."""
        return np.array([solution.padding for solution in self.solutions])

    @property
    def knee(self) -> int:
        """The number of boundaries at which the curve bends most: farthest below the line through its ends.

        It depends on how far the curve goes; `auto` does not. Source: Satopaa et al., "Finding a Kneedle in a
        Haystack" (2011).
        """
        costs, k = self.costs, self.k
        if costs[0] == costs[-1]:
            return int(k[0])
        along = (k - k[0]) / (k[-1] - k[0])
        return int(k[np.argmax(1 - along - (costs - costs[-1]) / (costs[0] - costs[-1]))])

    def auto(self, overhead: float | None = None) -> int:
        """Return the number of boundaries that costs least when each costs `overhead` more; see `Auto`.

        Raises:
            LengthwiseError: a negative overhead.
        """
        price = Auto(overhead).overhead
        return int(self.k[np.argmin(self.costs + self.k * (self.least * WORTH if price is None else price))])

    def to_arrow(self) -> pa.Table:
        """Return the curve as a table of `k`, `cost`, `padding` and `boundaries` (a list of uint32)."""
        import pyarrow as pa

        boundaries = pa.array([solution.boundaries for solution in self.solutions], pa.list_(pa.uint32()))
        return pa.table({"k": self.k, "cost": self.costs, "padding": self.padding, "boundaries": boundaries})

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw padding against the number of boundaries, with the knee; needs matplotlib.

        Args:
            ax: matplotlib axes to draw on; a new figure by default.

        Raises:
            LengthwiseError: matplotlib is not installed.
        """
        from lengthwise.plots import plot_curve

        return plot_curve(self, ax)

    def __len__(self) -> int:
        return len(self.solutions)

    def __iter__(self) -> Iterator[BoundarySolution]:
        return iter(self.solutions)

    def __contains__(self, k: object) -> bool:
        return k in self.k.tolist()

    def __getitem__(self, k: int) -> BoundarySolution:
        k, known = as_integer(k, "k", 1, MAX_LENGTH), self.k
        at = int(np.searchsorted(known, k))
        if at == len(known) or known[at] != k:
            raise LengthwiseError(f"k is {k} boundaries, but the curve holds {_spans(known)}")
        return self.solutions[at]

    def __repr__(self) -> str:
        padding = self.padding
        span = f"padding {padding[0]:.2%} to {padding[-1]:.2%}"
        return f"PaddingCurve({_spans(self.k)} boundaries, {span}, knee at {self.knee})"

    def _repr_html_(self) -> str:
        shown = self.k[np.unique(np.linspace(0, len(self) - 1, SHOWN).round().astype(int))]
        rows = "".join(
            f"<tr><td>{k}</td><td>{self[k].padding:.2%}</td><td>{self[k].cost:,.6g}</td></tr>" for k in shown.tolist()
        )
        head = "<tr><th>boundaries</th><th>padding</th><th>cost</th></tr>"
        return f"<table><caption>knee at {self.knee}</caption>{head}{rows}</table>"


def padding_curve(
    lengths: Any,
    max_buckets: int,
    *,
    objective: BoundaryObjective = "boundary",
    max_tokens: int | None = None,
    max_samples: int | None = None,
    multiple_of: int = 1,
    samples_multiple_of: int = 1,
    min_count: int = 0,
    max_ratio: float = math.inf,
    include: Iterable[int] = (),
) -> PaddingCurve:
    """Return the optimal boundaries of every number from 1 to `max_buckets` (or to the number of distinct lengths).

    Numbers that the constraints rule out are left out.

    Args:
        lengths: array-like of n integers, in tokens, anything that `read_lengths` reads, or a `Histogram`.
        max_buckets: the largest number of boundaries; torch's compiler recompiles at most 8 shapes by default
            (`torch._dynamo.config.recompile_limit`).
        objective: what is minimised; this and all other arguments are as in `solve_boundaries`.
        max_tokens: the budget of a batch, for "longest" and "steps".
        max_samples: the most samples in a batch, for "longest" and "steps".
        multiple_of: every boundary is a multiple of this.
        samples_multiple_of: batch sizes are multiples of this, for "longest" and "steps".
        min_count: the fewest samples in a bucket.
        max_ratio: the largest ratio of a bound to the one before it.
        include: bounds that must be present.

    Raises:
        LengthwiseError: as `solve_boundaries`; constraints that no number up to `max_buckets` satisfies.

    Cost: about one pass over the distinct lengths for each number: 64 of them over 8,000 lengths take 5 ms, or 100 ms
    under constraints.

    Method: the cost is convex in the number of boundaries, so a charge equal to the slope between two known numbers
    leads to one between them, or proves that all between lie on the line (Eisner and Severance, 1976).

    Examples:
        >>> import lengthwise as lw
        >>> curve = lw.padding_curve([3, 3, 4, 9, 10, 17], 4)
        >>> curve
        PaddingCurve(1 to 4 boundaries, padding 121.74% to 2.17%, knee at 2)
        >>> curve[2].boundaries, curve.auto(overhead=3)
        (array([ 4, 17], dtype=uint32), 3)
    """
    most = as_integer(max_buckets, "max_buckets", 1, MAX_LENGTH)
    multiple_of = as_integer(multiple_of, "multiple_of", 1, MAX_LENGTH)
    candidates = candidates_of(lengths, multiple_of, include)
    limits = Limits(max_tokens, max_samples, multiple_of, samples_multiple_of)
    ready = Objective.of(objective, candidates, limits)
    curve = candidates.curve(ready.name, ready.costs, ready.limits, most=most, **constraints_of(min_count, max_ratio))
    return PaddingCurve(tuple(solution_of(ready, candidates.real_tokens, found) for found in curve), ready.least)


def _spans(numbers: npt.NDArray[np.int64]) -> str:
    """Ascending numbers as spans: "1 to 3, 5"."""
    spans = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return ", ".join(f"{span[0]} to {span[-1]}" if len(span) > 1 else str(span[0]) for span in spans)
