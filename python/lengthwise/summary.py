"""What a plan costs and how well it mixes, in numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lengthwise import _core
from lengthwise._core import LengthwiseError

if TYPE_CHECKING:
    import numpy.typing as npt

    from lengthwise._arrays import Lengths
    from lengthwise.layouts import Layout, PlanArrays
    from lengthwise.plan import Batches, Plan


@dataclass(frozen=True, kw_only=True)
class Mixing:
    """How much randomness a plan leaves.

    Attributes:
        neighbour_correlation: Pearson's correlation between the mean length of batch i and that of batch i + 1, in
            running order over all ranks. 0 for independent batches, near 1 where lengths rise or fall slowly through
            the epoch, 0 where it is undefined (fewer than three batches, or all means equal).
        step_correlation: the same between the mean lengths of step i and step i + 1.
        step_spread: how much the mean length of a step varies, against a full shuffle. The root of the mean of
            (mean length of a step - mean length of all samples)^2 over steps, divided by the root of its expectation
            when the same steps draw their samples from all, without replacement: the mean over steps of
            s^2 / n * (N - n) / (N - 1), where s^2 is the variance of all lengths, n the samples of the step and N
            those of the epoch. 1 for a full shuffle into batches of a fixed size, more where steps are made of similar
            lengths; 0 where it is undefined (all lengths equal, or one step).
        batchmates_again: of all pairs of samples that share a batch, the share that shares one in the next epoch too.
            1 where every epoch has the same batches, about (mean batch size) / (samples of a bucket) where they are
            fresh, 0 where every batch has one sample, or the next epoch leaves too few batches to be planned. A sample
            that the next epoch uses several times (split, repeated) is where it is used last.
    """

    neighbour_correlation: float
    step_correlation: float
    step_spread: float
    batchmates_again: float


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A plan in numbers; a sample that is used twice counts twice.

    Attributes:
        samples: entries of all batches: samples, pieces of samples and repeats.
        real_tokens: tokens of those.
        padded_tokens: tokens of all batches, padding included.
        batches: batches of all ranks.
        steps: how often all ranks run together: `accumulate` batches each.
        shapes: distinct pairs of batch size and padded length.
        largest_tokens: padded tokens of the largest batch.
        largest_batch: the first batch that has them; it runs in step `largest_batch // world_size`.
        slowest_tokens: padded tokens of the rank of a step that has most, mean over steps: what a step costs when ranks
            wait for each other.
        imbalance: what the waiting costs: the cost of the slowest rank, summed over steps, over that of ranks which
            share each step evenly, less 1. Cost and speeds are the planner's: padded tokens unless it was told more.
        worst_imbalance: the same of the worst step.
        dropped: samples left out.
        truncated: samples cut to the limit.
        split: samples used in several pieces.
        alone: samples with a batch of their own beyond the budget.
        repeated: samples used again for equal ranks.
        cut_batches: batches cut in two for equal ranks.
        mixing: how much randomness is left.
    """

    samples: int
    real_tokens: int
    padded_tokens: int
    batches: int
    steps: int
    shapes: int
    largest_tokens: int
    largest_batch: int
    slowest_tokens: float
    imbalance: float
    worst_imbalance: float
    dropped: int
    truncated: int
    split: int
    alone: int
    repeated: int
    cut_batches: int
    mixing: Mixing

    @property
    def ratio(self) -> float:
        """Padded tokens for each real token."""
        return self.padded_tokens / self.real_tokens if self.real_tokens else math.inf

    @property
    def padding(self) -> float:
        """Padding tokens for each real token: ratio - 1."""
        return self.ratio - 1


def summarise(plan: Plan) -> Summary:
    """Count everything; plans the next epoch for `batchmates_again`."""
    padded = plan.padded_tokens
    real = plan.real_tokens
    squares = float(squared_lengths(plan, plan.planner.sample_tokens).sum())
    total = int(padded.sum())
    in_step = plan.world_size * plan.accumulate
    heaviest = int(plan.per_rank(padded).max(axis=1).sum())
    waiting = _waiting(plan)
    padded_shapes = shape_numbers(plan.padded_lengths, plan.planner.layout)
    shapes = np.unique(plan.sizes.astype(np.uint64) << np.uint64(32) | padded_shapes)
    return Summary(
        samples=int(plan.sizes.sum(dtype=np.uint64)),
        real_tokens=int(real.sum()),
        padded_tokens=total,
        batches=len(plan),
        steps=plan.steps,
        shapes=len(shapes),
        largest_tokens=int(padded.max(initial=0)),
        largest_batch=int(padded.argmax()) if len(padded) else 0,
        slowest_tokens=heaviest / max(plan.steps, 1),
        imbalance=waiting[0],
        worst_imbalance=waiting[1],
        mixing=Mixing(
            neighbour_correlation=_neighbour_correlation(real, plan.sizes, 1),
            step_correlation=_neighbour_correlation(real, plan.sizes, in_step),
            step_spread=_step_spread(real, squares, plan.sizes, in_step),
            batchmates_again=_batchmates_again(plan),
        ),
        **plan.accounts,
    )


def shape_numbers(padded_lengths: npt.NDArray[np.uint32], layout: Layout) -> npt.NDArray[np.uint32]:
    """Return uint32[b]: equal numbers for batches of one padded shape, larger ones where a sample occupies more.

    The padded lengths themselves where there is one a batch; shapes of two are numbered from 1 on.
    """
    if padded_lengths.ndim == 1:
        return padded_lengths
    shapes = padded_lengths[:, 0].astype(np.uint64) << np.uint64(32) | padded_lengths[:, 1]
    order = np.lexsort((shapes, layout.batch_tokens(np.ones(len(shapes), np.uint32), padded_lengths)))
    numbers = np.empty(len(shapes), np.uint32)
    numbers[order[:1]] = 1
    numbers[order[1:]] = 1 + np.cumsum(np.diff(shapes[order]) != 0)
    return numbers


def real_tokens(batches: Batches | PlanArrays, lengths: Lengths) -> npt.NDArray[np.uint64]:
    """Return uint64[b], the tokens of each batch without padding."""
    if batches.segments is None:
        return _core.real_tokens((batches.indices, batches.starts, batches.sizes), lengths)
    return per_batch(batches, np.diff(batches.segments, axis=1)[:, 0].astype(np.uint64))


def squared_lengths(batches: Batches | PlanArrays, lengths: Lengths) -> npt.NDArray[np.float64]:
    """Return float64[b], the sum of the squared lengths of each batch."""
    if batches.segments is None:
        return _core.squared_lengths((batches.indices, batches.starts, batches.sizes), lengths)
    return per_batch(batches, np.diff(batches.segments, axis=1)[:, 0].astype(np.float64) ** 2)


def per_batch(batches: Batches | PlanArrays, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return [b], the sum over each batch of a value of every entry of `batches.indices`."""
    before = np.concatenate([np.zeros(1, values.dtype), np.cumsum(values)])
    sums: npt.NDArray[Any] = before[batches.starts + batches.sizes] - before[batches.starts]
    return sums


def _waiting(plan: Plan) -> tuple[float, float]:
    """Return how long ranks wait for the slowest of their step, over how long they work: in all, and at worst."""
    speeds = np.array(plan.planner.step_maker.rank_speed or [1.0] * plan.world_size)
    costs = plan.per_rank(plan.costs)
    slowest, even = (costs / speeds).max(axis=1), costs.sum(axis=1) / speeds.sum()
    if not even.sum():
        return 0.0, 0.0
    worst = np.divide(slowest, even, out=np.ones_like(even), where=even > 0).max()
    return float(slowest.sum() / even.sum() - 1), float(worst - 1)


def _neighbour_correlation(real: npt.NDArray[np.uint64], sizes: npt.NDArray[np.uint32], in_step: int) -> float:
    means = real.reshape(-1, in_step).sum(axis=1) / sizes.reshape(-1, in_step).sum(axis=1)
    if len(means) < 3 or np.ptp(means[1:]) == 0 or np.ptp(means[:-1]) == 0:
        return 0.0
    return float(np.corrcoef(means[:-1], means[1:])[0, 1])


def _step_spread(real: npt.NDArray[np.uint64], squares: float, sizes: npt.NDArray[np.uint32], in_step: int) -> float:
    samples = sizes.reshape(-1, in_step).sum(axis=1, dtype=np.float64)
    total = float(samples.sum())
    if len(samples) < 2:
        return 0.0
    mean = float(real.sum()) / total
    variance = squares / total - mean**2
    expected = float(np.mean(variance / samples * (total - samples) / (total - 1)))
    if expected <= 1e-12 * mean**2:
        return 0.0
    steps = real.reshape(-1, in_step).sum(axis=1) / samples
    return math.sqrt(float(np.mean((steps - mean) ** 2)) / expected)


def _batchmates_again(plan: Plan) -> float:
    try:
        following = plan.planner.plan((plan.epoch + 1) % 2**63)
    except LengthwiseError:
        # Dropping short batches may leave too few of them, in one epoch and not in another.
        return 0.0
    now = (plan.indices, plan.starts, plan.sizes)
    met, pairs = _core.batchmates(
        now, (following.indices, following.starts, following.sizes), len(plan.planner.lengths)
    )
    return met / pairs if pairs else 0.0
