"""What every number of boundaries costs at best: how many are enough?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from lengthwise._arrays import MAX_LENGTH
from lengthwise._integers import as_integer
from lengthwise._objective import WORTH, Limits, Objective
from lengthwise.boundaries import Auto, candidates_of, solution_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    import pyarrow as pa
    from matplotlib.axes import Axes

    from lengthwise.boundaries import BoundaryObjective, BoundarySolution

#: Rows that a notebook shows.
SHOWN = 32


@dataclass(frozen=True, eq=False, repr=False)
class PaddingCurve:
    """The optimum of every number of boundaries.

    `curve[k]` is the `BoundarySolution` of k boundaries, from 1 to `len(curve)`; iterating gives them in that order.

    Attributes:
        solutions: one for each number of boundaries, from 1 on.
        least: what the epoch costs without any padding, in the units of the objective.
    """

    solutions: tuple[BoundarySolution, ...] = field(repr=False)
    least: float

    @property
    def k(self) -> npt.NDArray[np.int64]:
        """int64[m]: the numbers of boundaries, 1 to m."""
        return np.arange(1, len(self) + 1)

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
        costs = self.costs
        if costs[0] == costs[-1]:
            return 1
        along = (self.k - 1) / (len(self) - 1)
        return int(np.argmax(1 - along - (costs - costs[-1]) / (costs[0] - costs[-1]))) + 1

    def auto(self, overhead: float | None = None) -> int:
        """Return the number of boundaries that costs least when each costs `overhead` more; see `Auto`.

        Raises:
            LengthwiseError: a negative overhead.
        """
        price = Auto(overhead).overhead
        return int(np.argmin(self.costs + self.k * (self.least * WORTH if price is None else price))) + 1

    def to_arrow(self) -> pa.Table:
        """Return the curve as a table of `k`, `cost`, `padding` and `boundaries` (a list of uint32)."""
        import pyarrow as pa

        boundaries = pa.array([solution.boundaries for solution in self.solutions], pa.list_(pa.uint32()))
        return pa.table({"k": self.k, "cost": self.costs, "padding": self.padding, "boundaries": boundaries})

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw padding against the number of boundaries, with the knee; needs matplotlib.

        Args:
            ax: where to draw; a new figure by default.

        Returns:
            The axes.
        """
        if ax is None:
            from matplotlib import pyplot as plt

            _, ax = plt.subplots()
        percent = 100 * self.padding
        ax.plot(self.k, percent, marker=".")
        ax.plot(self.knee, percent[self.knee - 1], marker="o", linestyle="", label=f"knee at {self.knee}")
        ax.set_xlabel("boundaries")
        ax.set_ylabel("padding, % of real tokens")
        ax.set_yscale("log")
        ax.legend()
        return ax

    def __len__(self) -> int:
        return len(self.solutions)

    def __iter__(self) -> Iterator[BoundarySolution]:
        return iter(self.solutions)

    def __getitem__(self, k: int) -> BoundarySolution:
        return self.solutions[as_integer(k, "k", 1, len(self)) - 1]

    def __repr__(self) -> str:
        padding = self.padding
        span = f"padding {padding[0]:.2%} to {padding[-1]:.2%}"
        return f"PaddingCurve(1 to {len(self)} boundaries, {span}, knee at {self.knee})"

    def _repr_html_(self) -> str:
        shown = np.unique(np.linspace(1, len(self), SHOWN).round().astype(int))
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
) -> PaddingCurve:
    """Return the optimal boundaries of every number from 1 to `max_buckets` (or to the number of distinct lengths).

    Args:
        lengths: array-like of n integers, in tokens, anything that `read_lengths` reads, or a `Histogram`.
        max_buckets: the largest number of boundaries; torch's compiler recompiles at most 8 shapes by default
            (`torch._dynamo.config.recompile_limit`).
        objective: what is minimised; this and all other arguments are as in `solve_boundaries`.
        max_tokens: the budget of a batch, for "longest" and "steps".
        max_samples: the most samples in a batch, for "longest" and "steps".
        multiple_of: every boundary is a multiple of this.
        samples_multiple_of: batch sizes are multiples of this, for "longest" and "steps".

    Raises:
        LengthwiseError: as `solve_boundaries`.

    Cost: about one pass over the distinct lengths for each number: 64 of them over 8,000 lengths take 5 ms.

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
    candidates, real_tokens = candidates_of(lengths, multiple_of, ())
    limits = Limits(max_tokens, max_samples, multiple_of, samples_multiple_of)
    ready = Objective.of(objective, candidates, limits, real_tokens)
    curve = candidates.curve(ready.name, ready.costs, ready.limits, most)
    return PaddingCurve(tuple(solution_of(ready, real_tokens, found) for found in curve), ready.least)
