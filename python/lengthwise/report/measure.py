"""What a sequence of batches costs: the figures of one row of the comparison.

Problem: batches come from planners, packers and imitations of other samplers, and must be judged alike. Method: each is
brought to four numbers a batch (samples, real tokens, padded tokens, squares), in running order, and every figure is
computed from those. Batch i runs on rank i % world_size; a step is `accumulate` batches of each rank, and lasts as long
as its slowest rank. Cost: one pass over the samples, a few over the batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from lengthwise.speed import SpeedModel

    Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Batches in running order, as four numbers each.

    Attributes:
        samples: int64[b], how many samples.
        real: int64[b], their tokens.
        padded: int64[b], tokens computed.
        squares: float64[b], the sum of the squares of the row lengths that attention sees.
        widths: int64[b], the padded length of a row.
    """

    samples: Integers
    real: Integers
    padded: Integers
    squares: npt.NDArray[np.float64]
    widths: Integers

    @classmethod
    def padded_batches(cls, lengths: Any, sizes: Any, widths: Any) -> Measured:
        """Measure padded batches of consecutive `lengths`: batch i has the next `sizes[i]`, padded to `widths[i]`."""
        sizes, widths = np.asarray(sizes, np.int64), np.asarray(widths, np.int64)
        padded = sizes * widths
        return cls(
            samples=sizes,
            real=_sums(lengths, sizes),
            padded=padded,
            squares=padded * widths.astype(np.float64),
            widths=widths,
        )

    @classmethod
    def packs(cls, lengths: Any, sizes: Any, capacity: int) -> Measured:
        """Measure packs of consecutive `lengths`: every row computes `capacity` tokens, attention stays in a sample."""
        sizes = np.asarray(sizes, np.int64)
        full = np.full(len(sizes), capacity, np.int64)
        squares = _sums(np.square(np.asarray(lengths, np.int64)), sizes).astype(np.float64)
        return cls(samples=sizes, real=_sums(lengths, sizes), padded=full, squares=squares, widths=full)

    @property
    def padded_ratio(self) -> float:
        """Padded tokens over real tokens, 1.0 where there are no tokens."""
        real = int(self.real.sum())
        return int(self.padded.sum()) / real if real else 1.0

    @property
    def shapes(self) -> int:
        """How many different (rows, padded length) the batches have."""
        return len(np.unique(self.samples << 32 | self.widths))

    def per_step(self, values: Any, world_size: int, accumulate: int) -> npt.NDArray[np.float64]:
        """Return float64[steps, world_size], the sum of a value over the batches of each step and rank."""
        each = world_size * accumulate
        steps = -(-len(values) // each)
        filled = np.zeros(steps * each)
        filled[: len(values)] = values
        result: npt.NDArray[np.float64] = filled.reshape(steps, accumulate, world_size).sum(axis=1)
        return result

    def imbalance(self, world_size: int, accumulate: int) -> float:
        """Return what waiting costs: padded tokens of each step's busiest rank, over the mean of all ranks, less 1."""
        loads = self.per_step(self.padded, world_size, accumulate)
        total = float(loads.sum())
        return float(loads.max(axis=1).sum()) * world_size / total - 1 if total else 0.0

    def mixing(self) -> float:
        """Return the correlation between the mean lengths of neighbouring batches; 0.0 where it is not defined."""
        means = self.real / np.maximum(self.samples, 1)
        if len(means) < 3 or not np.ptp(means[:-1]) or not np.ptp(means[1:]):
            return 0.0
        return float(np.corrcoef(means[:-1], means[1:])[0, 1])

    def seconds(self, model: SpeedModel, world_size: int, accumulate: int) -> float:
        """Return the predicted seconds of the epoch."""
        busy = self.padded > 0
        costs = np.zeros(len(self.padded))
        costs[busy] = model.seconds(tokens=self.padded[busy], longest=self.squares[busy] / self.padded[busy])
        return float(self.per_step(costs, world_size, accumulate).max(axis=1).sum())


def _sums(values: Any, sizes: Integers) -> Integers:
    """Return int64[b], the sums of consecutive groups of `values`, empty groups too."""
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(values, dtype=np.int64)])
    stops = np.cumsum(sizes)
    sums: Integers = before[stops] - before[stops - sizes]
    return sums
