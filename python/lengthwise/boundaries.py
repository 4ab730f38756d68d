"""Bucket boundaries that are proven optimal.

A boundary is an inclusive upper bound: bucket b holds the lengths in (boundaries[b - 1], boundaries[b]]. The choice
depends on the lengths only through their counts, so everything here takes lengths or a `Histogram`.
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from lengthwise._arrays import MAX_LENGTH, as_lengths
from lengthwise._core import Candidates, LengthwiseError, histogram
from lengthwise._integers import as_integer
from lengthwise._objective import Limits, Objective
from lengthwise.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    #: What boundaries minimise; see `solve_boundaries`.
    BoundaryObjective = (
        Literal["boundary", "longest", "steps"] | Callable[[npt.NDArray[np.int64]], npt.ArrayLike] | npt.ArrayLike
    )


class Constraints(TypedDict):
    """Constraints that are not candidates, as the core takes them."""

    min_count: int
    max_ratio: float


@dataclass(frozen=True)
class Auto:
    """As many boundaries as are worth what one more shape costs.

    Args:
        overhead: what a shape costs an epoch (compiling it, capturing a CUDA graph), in the units of the objective: for
            padded tokens, seconds times tokens per second. None is 0.5 % of what the epoch costs without any padding.

    Examples:
        >>> import lengthwise as lw
        >>> lw.optimal_boundaries([3, 3, 4, 9, 10, 17], lw.Auto(overhead=5))
        array([ 4, 10, 17], dtype=uint32)
    """

    overhead: float | None = None

    def __post_init__(self) -> None:
        try:
            valid = self.overhead is None or (math.isfinite(self.overhead) and self.overhead >= 0)
        except TypeError:
            valid = False
        if not valid:
            raise LengthwiseError(f"overhead is {self.overhead!r:.60}, but must be a number of at least 0")


@dataclass(frozen=True, eq=False, repr=False)
class BoundarySolution:
    """Optimal boundaries, what they cost, and the proof that nothing is cheaper.

    Attributes:
        boundaries: uint32[k], ascending inclusive upper bounds, in tokens.
        counts: uint64[k], samples in each bucket.
        cost: what the boundaries cost, in the units of the objective: padded tokens for "boundary", expected padded
            tokens for "longest", batches for "steps".
        lower_bound: no k boundaries cost less. Found apart from `cost`, by Lagrangian duality, and equal to it; for
            "steps" it ignores that batches are whole, so it may be up to k less. None for "longest": no proof.
        real_tokens: the sum of all lengths.
        objective: "boundary", "longest", "steps" or "cost".
    """

    boundaries: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.uint64]
    cost: float
    lower_bound: float | None
    real_tokens: int
    objective: str = "boundary"

    @property
    def padded_tokens(self) -> int:
        """Tokens when every sample is padded to its bound; for "longest", to the longest of its batch, as expected."""
        if self.objective == "longest":
            return int(self.cost)
        return sum(int(bound) * int(count) for bound, count in zip(self.boundaries, self.counts, strict=True))

    @property
    def padding_tokens(self) -> int:
        """Padded tokens that are not real."""
        return self.padded_tokens - self.real_tokens

    @property
    def padding(self) -> float:
        """Padded over real tokens, less 1."""
        return self.padded_tokens / self.real_tokens - 1

    def __len__(self) -> int:
        return len(self.boundaries)

    def __repr__(self) -> str:
        shown = np.array2string(self.boundaries, separator=", ", threshold=20, max_line_width=10**6)
        objective = "" if self.objective == "boundary" else f", objective {self.objective}"
        return f"BoundarySolution({shown}, padding {self.padding:.2%}{objective})"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("bucket", "up to", "samples", "share"))
        total = int(self.counts.sum())
        rows = "".join(
            f"<tr><td>{bucket}</td><td>{int(bound):,}</td><td>{int(count):,}</td><td>{int(count) / total:.1%}</td></tr>"
            for bucket, (bound, count) in enumerate(zip(self.boundaries, self.counts, strict=True))
        )
        caption = f"padding {self.padding:.2%}, objective {html.escape(self.objective)}"
        return f"<table><caption>{caption}</caption><tr>{head}</tr>{rows}</table>"


def optimal_boundaries(
    lengths: Any,
    k: int | Literal["auto"] | Auto,
    *,
    objective: BoundaryObjective = "boundary",
    max_tokens: int | None = None,
    max_samples: int | None = None,
    multiple_of: int = 1,
    samples_multiple_of: int = 1,
    min_count: int = 0,
    max_ratio: float = math.inf,
    include: Iterable[int] = (),
) -> npt.NDArray[np.uint32]:
    """Return the k bucket boundaries that cost least, exactly.

    Short for `solve_boundaries(...).boundaries`; see there for the arguments, the cost and the method.

    Returns:
        uint32[k], ascending inclusive upper bounds, in tokens; the last one is the longest length, rounded up.

    Raises:
        LengthwiseError: as `solve_boundaries`.

    Examples:
        >>> import lengthwise as lw
        >>> lw.optimal_boundaries([3, 3, 4, 9, 10, 17], 3)
        array([ 4, 10, 17], dtype=uint32)
        >>> lw.optimal_boundaries([3, 3, 4, 9, 10, 17], 3, multiple_of=8)
        array([ 8, 16, 24], dtype=uint32)
    """
    solution = solve_boundaries(
        lengths,
        k,
        objective=objective,
        max_tokens=max_tokens,
        max_samples=max_samples,
        multiple_of=multiple_of,
        samples_multiple_of=samples_multiple_of,
        min_count=min_count,
        max_ratio=max_ratio,
        include=include,
    )
    return solution.boundaries


def solve_boundaries(
    lengths: Any,
    k: int | Literal["auto"] | Auto,
    *,
    objective: BoundaryObjective = "boundary",
    max_tokens: int | None = None,
    max_samples: int | None = None,
    multiple_of: int = 1,
    samples_multiple_of: int = 1,
    min_count: int = 0,
    max_ratio: float = math.inf,
    include: Iterable[int] = (),
) -> BoundarySolution:
    """Find the k bucket boundaries that cost least, with their cost and the proof that nothing is cheaper.

    Samples of length zero fall in the first bucket.

    Args:
        lengths: array-like of n integers, in tokens, anything that `read_lengths` reads, or a `Histogram`.
        k: how many boundaries, at most the number of distinct lengths (after rounding up to `multiple_of`); `Auto` for
            as many as are worth what each costs, "auto" for its default.
        objective: what is minimised:

            - "boundary": padded tokens when every sample is padded to its bound (static shapes).
            - "longest": expected padded tokens when batches under `max_tokens` are filled at random from a bucket and
              padded to their longest sample. Exact over a grid of 256 to 1,024 bounds; costs are within about 0.3 % of
              a real plan's.
            - "steps": batches under `max_tokens` when every batch is padded to its bound. Exact where there are at most
              1,024 distinct lengths or, without constraints, different batch sizes; else within k batches.
            - a function that takes int64[m], lengths, and returns [m], what one sample padded to each costs:
              `numpy.polynomial.Polynomial([0, a, b])` for attention. It must not fall. Floats are rounded to about
              2**-40 of the largest.
            - a table: one such cost for every length from 0 on.
        max_tokens: for "longest" and "steps": the most padded tokens in a batch; a longer sample is a batch of its own.
        max_samples: likewise: the most samples in a batch.
        multiple_of: every boundary is a multiple of this.
        samples_multiple_of: likewise for "longest" and "steps": batch sizes are multiples of this, or less.
        min_count: the fewest samples in a bucket.
        max_ratio: the largest ratio of a bound to the one before it.
        include: bounds that must be present, multiples of `multiple_of`, in any order; they may exceed all lengths.

    Raises:
        LengthwiseError: no sample above zero; an argument out of range; constraints that cannot hold: the message says
            which, and how far they are from holding.

    Cost: one pass over the lengths, then O(m) for m distinct ones, whatever k: 0.2 ms for 8,000, 0.1 s for a million.
    Constraints take O(m log m). "longest" takes about 20 ms, "steps" about 10 ms.

    Method: the k-edge shortest path in a Monge graph by a charge per edge (Aggarwal, Schieber and Tokuyama, 1994); each
    pass is a convex-hull trick. "longest" and "steps" use the textbook dynamic program on a grid.

    Examples:
        >>> import lengthwise as lw
        >>> solution = lw.solve_boundaries([3, 3, 4, 9, 10, 17], 3)
        >>> solution
        BoundarySolution([ 4, 10, 17], padding 6.52%)
        >>> solution.cost, solution.lower_bound
        (49, 49)
        >>> lw.solve_boundaries([3, 3, 4, 9, 10, 17], 3, max_ratio=2, include=[16]).boundaries
        array([10, 16, 17], dtype=uint32)
    """
    multiple_of = as_integer(multiple_of, "multiple_of", 1, MAX_LENGTH)
    candidates = candidates_of(lengths, multiple_of, include)
    limits = Limits(max_tokens, max_samples, multiple_of, samples_multiple_of)
    ready = Objective.of(objective, candidates, limits)
    auto = Auto() if isinstance(k, str) and k == "auto" else k
    found = candidates.solve(
        ready.name,
        ready.costs,
        ready.limits,
        k=None if isinstance(auto, Auto) else as_integer(auto, "k", 1, MAX_LENGTH, 'a number, "auto" or Auto'),
        overhead=ready.price(auto.overhead) if isinstance(auto, Auto) else 0,
        **constraints_of(min_count, max_ratio),
    )
    return solution_of(ready, candidates.real_tokens, found)


def longest_boundaries(
    counted: Histogram,
    k: int | Literal["auto"] | Auto,
    *,
    max_tokens: int,
    max_samples: int | None,
    multiple_of: int,
    samples_multiple_of: int,
) -> npt.NDArray[np.uint32]:
    """Return uint32[k]: boundaries for the objective "longest", within 0.1 % of the best, in 2 ms; for planners."""
    candidates = candidates_of(counted, multiple_of, ())
    limits = Limits(max_tokens, max_samples, multiple_of, samples_multiple_of)
    ready = Objective.of("longest", candidates, limits)
    if isinstance(k, int):
        return candidates.descend(ready.limits, k, 0)
    return candidates.descend(ready.limits, None, ready.price(k.overhead if isinstance(k, Auto) else None))


def candidates_of(lengths: Any, multiple_of: int, include: Iterable[int]) -> Candidates:
    """Where boundaries may lie."""
    if isinstance(lengths, Histogram):
        distinct, counts = lengths.lengths, lengths.counts
    else:
        distinct, counts = histogram(as_lengths(lengths))
    try:
        present = [as_integer(bound, f"include[{index}]", 1, MAX_LENGTH) for index, bound in enumerate(include)]
    except TypeError:
        raise LengthwiseError(f"include is {include!r:.60}, but must be a sequence of bounds") from None
    return Candidates(distinct, counts, multiple_of, present)


def solution_of(
    objective: Objective,
    real_tokens: int,
    found: tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64], int, int | None],
) -> BoundarySolution:
    """What the core found, in the units of the objective."""
    boundaries, counts, cost, lower_bound = found
    proof = None if lower_bound is None else objective.value(lower_bound)
    return BoundarySolution(boundaries, counts, objective.value(cost), proof, real_tokens, objective.name)


def constraints_of(min_count: int, max_ratio: float) -> Constraints:
    """The constraints that are not candidates, checked, as the core takes them."""
    fewest = as_integer(min_count, "min_count", 0, 2**63 - 1)
    try:
        return {"min_count": fewest, "max_ratio": float(max_ratio)}
    except (TypeError, ValueError):
        raise LengthwiseError(f"max_ratio is {max_ratio!r:.60}, but must be a number above 1") from None
