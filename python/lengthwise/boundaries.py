"""Bucket boundaries that are proven optimal.

A boundary is an inclusive upper bound: bucket b holds the lengths in (boundaries[b - 1], boundaries[b]]. The choice
depends on the lengths only through their counts, so everything here takes lengths or a `Histogram`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lengthwise._arrays import MAX_LENGTH, as_lengths
from lengthwise._core import Candidates, histogram
from lengthwise._integers import as_integer
from lengthwise.histogram import Histogram

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, eq=False, repr=False)
class BoundarySolution:
    """Optimal boundaries, what they cost, and the proof that nothing is cheaper.

    Attributes:
        boundaries: uint32[k], ascending inclusive upper bounds, in tokens.
        counts: uint64[k], samples in each bucket.
        cost: what the boundaries cost: padded tokens, each sample padded to its bound.
        lower_bound: no k boundaries cost less: a bound from Lagrangian duality, found apart from `cost`. The two are
            equal.
        real_tokens: the sum of all lengths.
    """

    boundaries: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.uint64]
    cost: int
    lower_bound: int
    real_tokens: int

    @property
    def padded_tokens(self) -> int:
        """Tokens when every sample is padded to its bound."""
        return sum(int(bound) * int(count) for bound, count in zip(self.boundaries, self.counts, strict=True))

    @property
    def padding_tokens(self) -> int:
        """Padded tokens that are not real."""
        return self.padded_tokens - self.real_tokens

    @property
    def padding(self) -> float:
        """Padded over real tokens, less 1, when every sample is padded to its bound."""
        return self.padded_tokens / self.real_tokens - 1

    def __len__(self) -> int:
        return len(self.boundaries)

    def __repr__(self) -> str:
        return f"BoundarySolution({self.boundaries.tolist()}, padding {self.padding:.2%})"


def optimal_boundaries(lengths: Any, k: int, *, multiple_of: int = 1) -> npt.NDArray[np.uint32]:
    """Return the k bucket boundaries that pad least, exactly.

    Short for `solve_boundaries(...).boundaries`; see there for the arguments.

    Returns:
        uint32[k], ascending inclusive upper bounds, in tokens; the last one is the longest length, rounded up.

    Raises:
        LengthwiseError: as `solve_boundaries`.

    Examples:
        >>> import lengthwise as lw
        >>> lw.optimal_boundaries([3, 3, 4, 9, 10, 17], 3)
        array([ 4, 10, 17], dtype=uint32)
    """
    return solve_boundaries(lengths, k, multiple_of=multiple_of).boundaries


def solve_boundaries(lengths: Any, k: int, *, multiple_of: int = 1) -> BoundarySolution:
    """Find the k bucket boundaries that pad least, with their cost and the proof that nothing is cheaper.

    Samples of length zero fall in the first bucket.

    Args:
        lengths: array-like of n integers, in tokens, anything that `read_lengths` reads, or a `Histogram`.
        k: how many boundaries, at most the number of distinct lengths (after rounding up to `multiple_of`).
        multiple_of: every boundary is a multiple of this.

    Raises:
        LengthwiseError: no sample above zero, `k` or `multiple_of` out of range, bad lengths.

    Cost: one pass over the lengths, then O(m) for m distinct ones, whatever k.

    Method: the k-edge shortest path in a Monge graph by a charge per edge (Aggarwal, Schieber and Tokuyama, 1994);
    each pass is a convex-hull trick.

    Examples:
        >>> import lengthwise as lw
        >>> solution = lw.solve_boundaries([3, 3, 4, 9, 10, 17], 3)
        >>> solution
        BoundarySolution([4, 10, 17], padding 6.52%)
        >>> solution.cost, solution.lower_bound
        (49, 49)
    """
    counted = _counted(lengths)
    k = as_integer(k, "k", 1, MAX_LENGTH)
    multiple_of = as_integer(multiple_of, "multiple_of", 1, MAX_LENGTH)
    distinct, counts = counted
    boundaries, held, cost, lower_bound = Candidates(distinct, counts, multiple_of, []).solve(k, None)
    return BoundarySolution(boundaries, held, cost, lower_bound, _tokens(distinct, counts))


def _counted(lengths: Any) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
    """Distinct lengths and their counts, from lengths or a histogram."""
    if isinstance(lengths, Histogram):
        return lengths.lengths, lengths.counts
    return histogram(as_lengths(lengths))


def _tokens(distinct: npt.NDArray[np.uint32], counts: npt.NDArray[np.uint64]) -> int:
    """The sum of all lengths, exactly, as it may pass 2**63."""
    low = counts & np.uint64(0xFFFF_FFFF)
    high = counts >> np.uint64(32)
    return sum(int(np.dot(distinct.astype(np.uint64), part)) << shift for part, shift in ((low, 0), (high, 32)))
