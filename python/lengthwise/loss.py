"""Weights that make the loss of uneven batches the loss of one big batch.

Problem: batches of a token budget hold different numbers of samples and targets. A mean of their mean losses, which is
what gradient accumulation and data-parallel averaging compute, weighs a target in a small batch more. Method: a plan
knows what every batch of a step holds before training, on all ranks and without communication; a batch whose own mean
loss is multiplied by (its share of the step's targets) x (the number of things that are averaged) adds up to the mean
over the whole step, exactly. Cost: some nanoseconds a sample.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from lengthwise._arrays import as_lengths
from lengthwise._choices import as_choice
from lengthwise._core import LengthwiseError
from lengthwise.summary import per_batch

if TYPE_CHECKING:
    import numpy.typing as npt

    from lengthwise.plan import Plan

Mean = Literal["token", "sample", "pair"]
AveragedOver = Literal["ranks", "ranks_and_batches", "nothing"]

#: The label that losses ignore.
IGNORE: Final = -100


def batch_targets(plan: Plan, targets: Any = None) -> npt.NDArray[np.uint64]:
    """Return how many targets each batch of a plan has.

    Args:
        plan: the epoch.
        targets: integers[n], the tokens of each sample that the loss counts, for instance the sum of its `loss_mask`
            without the first token. None counts all tokens of a sample (or piece) but the first: next-token prediction.

    Returns:
        uint64[b]. `plan.per_rank(batch_targets(plan)).sum(axis=1)` are those of each step over all ranks, which
        transformers calls `num_items_in_batch`.

    Raises:
        LengthwiseError: `targets` is not one count a sample, or the plan cuts samples and their targets are not known.

    Example:
        >>> import lengthwise as lw
        >>> batch_targets(lw.Planner([4, 4, 2], lw.Padded(8, order="sorted")).plan()).tolist()
        [6, 1]
    """
    return per_batch(plan, _targets_of_entries(plan, targets))


def _targets_of_entries(plan: Plan, targets: Any) -> npt.NDArray[np.uint64]:
    """Targets of every entry of `plan.indices`."""
    if targets is not None:
        counts = as_lengths(targets, "targets")
        samples = len(plan.planner.lengths)
        if counts.size != samples:
            raise LengthwiseError(f"targets has {counts.size} values, but the plan is of {samples}")
        if plan.segments is not None:
            raise LengthwiseError("targets counts whole samples, but the plan cuts some; leave it out or drop them")
        return counts[plan.indices].astype(np.uint64)
    if plan.planner.lengths.ndim == 2:
        raise LengthwiseError(
            "targets is None, but the samples have two lengths; give the targets of each, as in targets=lengths[:, 1]"
        )
    if plan.segments is not None:
        used = np.diff(plan.segments, axis=1)[:, 0].astype(np.uint64)
    else:
        used = plan.planner.lengths[plan.indices].astype(np.uint64)
    return used - (used > 0)


def batch_weights(
    plan: Plan, *, mean: Mean = "token", targets: Any = None, averaged_over: AveragedOver = "ranks"
) -> npt.NDArray[np.float64]:
    """Return the weight of each batch's own mean loss, so that a step trains on the mean over all of its targets.

    `(weight * loss).backward()` for every batch of a step, on every rank, then equals one backward pass over one batch
    that holds the whole step: to float error, whatever the sizes of the batches.

    Args:
        plan: the epoch; batch i of it has weight i. `weights[rank::plan.world_size]` are those of one rank.
        mean: what the loss of a batch is the mean of: its "token"s, its "sample"s (each of them the mean of its own
            tokens: see `target_weights`; those without a target do not count), or its "pair"s (a planned sample is a
            pair; its length that of both).
        targets: see `batch_targets`.
        averaged_over: what the framework divides gradients by: "ranks" (torch's DDP and FSDP), "ranks_and_batches"
            (those that also divide by the accumulated batches: accelerate, Lightning, DeepSpeed), or "nothing".

    Returns:
        float64[b]; 0 for a batch without targets.

    Raises:
        LengthwiseError: an unknown choice, or as `batch_targets`.

    Example:
        >>> import lengthwise as lw
        >>> plan = lw.Planner([4, 4, 2], lw.Padded(8, order="sorted"), accumulate=2).plan()
        >>> batch_weights(plan).round(3).tolist()  # 6 and 1 targets of 7
        [0.857, 0.143]
    """
    as_choice(mean, "mean", get_args(Mean))
    as_choice(averaged_over, "averaged_over", get_args(AveragedOver))
    entries = _targets_of_entries(plan, targets)
    units = per_batch(plan, entries if mean == "token" else (entries > 0).astype(np.uint64))
    in_step = plan.world_size * plan.accumulate
    divisor = {"ranks": plan.world_size, "ranks_and_batches": in_step, "nothing": 1}[averaged_over]
    table = units.astype(np.float64).reshape(-1, in_step)
    totals = table.sum(axis=1, keepdims=True)
    weights: npt.NDArray[np.float64] = np.divide(
        divisor * table, totals, out=np.zeros_like(table), where=totals > 0
    ).ravel()
    return weights


def target_weights(
    labels: npt.NDArray[Any], document_ids: npt.NDArray[Any] | None = None, *, mean: Mean = "sample"
) -> npt.NDArray[np.float32]:
    """Return the weight of each target inside one batch: `(weights * losses).sum()` is the batch's mean loss.

    Args:
        labels: integers, [b, T] of padded samples or [1, T] of a pack; -100 is no target. Shift them first if the loss
            does (`labels[:, 1:]`, and `document_ids[:, 1:]`).
        document_ids: the sample of each token, as `PackedCollator(emit=["document_ids"])` gives it. None takes every
            row for a sample.
        mean: "token" weighs all targets alike; "sample" weighs all samples alike, "pair" all pairs of samples (2i and
            2i + 1), whatever their lengths. Samples (pairs) without a target do not count.

    Returns:
        float32, the shape of `labels`, 0 where there is no target; sums to 1.

    Raises:
        LengthwiseError: shapes that differ, or an unknown mean.

    Example:
        >>> target_weights(np.array([[1, 2, 3, 4], [5, -100, -100, -100]]))
        array([[0.125, 0.125, 0.125, 0.125],
               [0.5  , 0.   , 0.   , 0.   ]], dtype=float32)
    """
    as_choice(mean, "mean", get_args(Mean))
    labels = np.asarray(labels)
    if document_ids is None:
        groups = np.broadcast_to(np.arange(labels.shape[0])[:, None], labels.shape)
    else:
        groups = np.asarray(document_ids)
        if groups.shape != labels.shape:
            raise LengthwiseError(f"document_ids has shape {groups.shape}, but labels has {labels.shape}")
    target = (labels != IGNORE) & (groups >= 0)
    if mean == "token":
        groups = np.zeros_like(groups)
    elif mean == "pair":
        groups = groups // 2
    counts = np.bincount(groups[target].ravel().astype(np.int64))
    weights = np.zeros(labels.shape, np.float32)
    weights[target] = 1 / (counts[groups[target]] * max(np.count_nonzero(counts), 1))
    return weights
