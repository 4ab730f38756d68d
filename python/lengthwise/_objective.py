"""What boundaries minimise, as the core takes it: a name, limits of a batch, or one integer cost a candidate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise._core import LengthwiseError
from lengthwise._integers import as_integer

if TYPE_CHECKING:
    import numpy.typing as npt

    from lengthwise._core import Candidates

#: Objectives about batches, which need a budget.
BATCHED: Final = ("longest", "steps")
#: The share of the least possible cost that one more shape must save by default.
WORTH: Final = 1 / 200
#: Integer costs up to this are used as they are.
EXACT: Final = 2**62
#: The largest `max_samples`, and what no cap means.
NO_CAP: Final = 2**32 - 1


@dataclass(frozen=True)
class Limits:
    """What a batch may hold; only objectives about batches look at it."""

    max_tokens: int | None
    max_samples: int | None
    multiple_of: int
    samples_multiple_of: int

    def numbers(self, objective: str) -> tuple[int, int, int, int]:
        """Check them against the objective and return them as the core takes them."""
        given = [name for name in ("max_tokens", "max_samples") if getattr(self, name) is not None]
        if objective in BATCHED:
            if self.max_tokens is None:
                raise LengthwiseError(f"objective={objective!r} is about batches: it needs max_tokens, their budget")
        elif given or self.samples_multiple_of != 1:
            name = given[0] if given else "samples_multiple_of"
            raise LengthwiseError(f"{name} is about batches, but the objective is not; use one of {BATCHED}")
        return (
            as_integer(1 if self.max_tokens is None else self.max_tokens, "max_tokens", 1, 2**63 - 1),
            as_integer(NO_CAP if self.max_samples is None else self.max_samples, "max_samples", 1, NO_CAP),
            self.multiple_of,
            as_integer(self.samples_multiple_of, "samples_multiple_of", 1, NO_CAP),
        )


@dataclass(frozen=True)
class Objective:
    """An objective made ready for a set of candidates.

    Attributes:
        name: "boundary", "longest", "steps" or "cost".
        costs: uint64[m] for "cost": what one sample padded to each candidate costs, in units of 2**-scale.
        scale: see `costs`; 0 where costs are integers.
        limits: of a batch, as the core takes them.
        least: what the cost would be without any padding, for the default of `Auto`.
    """

    name: str
    costs: npt.NDArray[np.uint64] | None
    scale: int
    limits: tuple[int, int, int, int]
    least: float

    @classmethod
    def of(cls, objective: Any, candidates: Candidates, limits: Limits) -> Objective:
        """Check an objective and evaluate its costs."""
        if isinstance(objective, str):
            if objective not in ("boundary", *BATCHED):
                known = '"boundary", "longest", "steps", a function of the length, or a table'
                raise LengthwiseError(f"objective is {objective!r}, but must be {known}")
            numbers = limits.numbers(objective)
            tokens = candidates.real_tokens
            least = tokens / numbers[0] if objective == "steps" else tokens
            return cls(objective, None, 0, numbers, least)
        bounds, counts = candidates.arrays()
        values = _evaluate(objective, bounds)
        least = float(np.dot(values.astype(np.float64), counts.astype(np.float64)))
        costs, scale = as_integers(values, float(counts.sum()))
        return cls("cost", costs, scale, limits.numbers("cost"), least)

    def price(self, overhead: float | None) -> int:
        """Return an overhead per shape in the units of the core."""
        price = self.least * WORTH if overhead is None else overhead
        return min(int(math.ldexp(price, self.scale)), 2**63)

    def value(self, cost: int) -> int | float:
        """Return a cost of the core in the units of the objective."""
        return math.ldexp(cost, -self.scale) if self.scale else cost


def _evaluate(objective: Any, bounds: npt.NDArray[np.uint32]) -> npt.NDArray[Any]:
    """The cost of one sample padded to each bound: finite, not negative, not falling."""
    if callable(objective):
        values = np.asarray(objective(bounds.astype(np.int64)))
    else:
        table = np.asarray(objective)
        if table.ndim != 1 or len(table) <= int(bounds[-1]):
            raise LengthwiseError(
                f"objective has shape {table.shape}, but a table needs a cost for every length from 0 to {bounds[-1]}"
            )
        values = table[bounds]
    if values.shape != bounds.shape or values.dtype.kind not in "iuf":
        raise LengthwiseError(
            f"objective gave {values.dtype}{list(values.shape)} for {len(bounds)} lengths, but must give each a number"
        )
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if bad.size:
        at = int(bad[0])
        raise LengthwiseError(
            f"objective gave {values[at]} for length {bounds[at]}, but a cost is a finite number of at least 0"
        )
    falls = np.flatnonzero(values[1:] < values[:-1])
    if falls.size:
        at = int(falls[0])
        raise LengthwiseError(
            f"objective gave {values[at]} for length {bounds[at]}, but {values[at + 1]} for {bounds[at + 1]}; a cost "
            "must not fall with the length (np.minimum.accumulate(cost[::-1])[::-1] pads further where that is cheaper)"
        )
    return values


def as_integers(values: npt.NDArray[Any], samples: float) -> tuple[npt.NDArray[np.uint64], int]:
    """Costs in fixed point, with as many bits as sums of 64 bits leave, and how many bits are fractional."""
    largest = values.flat[-1]
    if values.dtype.kind in "iu" and int(largest) < EXACT:
        return values.astype(np.uint64), 0
    # Sums of up to 2**60 take the fast arithmetic of the core; frexp gives the exponent without rounding.
    scale = 60 - math.frexp(max(float(largest), 5e-324))[1] - math.frexp(samples)[1]
    return np.rint(np.ldexp(values.astype(np.float64), scale)).astype(np.uint64), scale
