"""What a plan promises, checked sample by sample against the lengths.

Problem: a plan that came from a file, another tool or another machine is trusted with hours of training. Method: every
promise is checked on the arrays themselves, not on the plan's own accounts of them; the accounts must agree with what
is found. Cost: a few passes over the samples, and planning the epoch again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from lengthwise.plan import Plan


@dataclass(frozen=True, slots=True)
class Check:
    """One promise.

    Attributes:
        name: what is promised.
        passed: whether it is kept.
        found: what was found, in a few words.
    """

    name: str
    passed: bool
    found: str


def verify_plan(plan: Plan) -> tuple[Check, ...]:
    """Check a plan that knows its lengths (`lw.read_plan(path, lengths)` compares their fingerprints before).

    Args:
        plan: a plan of any layout.

    Returns:
        One check a promise, all of them also where some fail.

    Raises:
        LengthwiseError: the plan was read without its lengths.

    Example:
        >>> import lengthwise as lw
        >>> plan = lw.Planner([5, 6, 7, 8], lw.Padded(16), world_size=2).plan()
        >>> [check.name for check in verify_plan(plan) if not check.passed]
        []
    """
    used = _used(plan)
    return (*_shape(plan), *_coverage(plan, used), *_limits(plan, used), _again(plan))


@dataclass(frozen=True, slots=True)
class _Used:
    """The entries of all batches in running order: which sample, how many of its tokens, in which batch."""

    samples: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int64]
    batches: npt.NDArray[np.int64]


def _used(plan: Plan) -> _Used:
    sizes = plan.sizes.astype(np.int64)
    before = np.cumsum(sizes) - sizes
    at = np.repeat(plan.starts - before, sizes) + np.arange(int(sizes.sum()))
    samples = plan.indices[at].astype(np.int64)
    if plan.segments is None:
        known = plan.planner.sample_tokens
        tokens = known[np.minimum(samples, len(known) - 1)].astype(np.int64)
    else:
        segments = plan.segments[at].astype(np.int64)
        tokens = segments[:, 1] - segments[:, 0]
    return _Used(samples, tokens, np.repeat(np.arange(len(sizes)), sizes))


def _shape(plan: Plan) -> Iterator[Check]:
    ranks = plan.world_size
    yield Check(
        "every rank has the same number of batches", len(plan) % ranks == 0, f"{plan.steps:,} on each of {ranks}"
    )
    empty = int(np.count_nonzero(plan.sizes == 0))
    yield Check("no batch is empty", empty == 0, f"{empty:,} empty of {len(plan):,}")


def _coverage(plan: Plan, used: _Used) -> Iterator[Check]:
    """Every sample is used once, or counted as dropped, cut or repeated."""
    lengths = plan.planner.sample_tokens.astype(np.int64)
    outside = int(np.count_nonzero(used.samples >= lengths.size))
    yield Check("every index is a sample", outside == 0, f"{outside:,} beyond the {lengths.size:,} samples")
    if outside:
        return
    counted = {name: int(plan.accounts.get(name, 0)) for name in ("dropped", "truncated", "repeated", "split")}
    times = np.bincount(used.samples, minlength=lengths.size)
    missing = int(np.count_nonzero(times == 0))
    found = f"{missing:,} unused, {counted['dropped']:,} counted"
    yield Check("every sample is used, or counted as dropped", missing <= counted["dropped"], found)
    covered = np.bincount(used.samples, weights=used.tokens, minlength=lengths.size).astype(np.int64)
    short = int(np.count_nonzero((covered < lengths) & (times > 0)))
    # Of a sample that was split, the accounts may have dropped a piece.
    cut = counted["truncated"] + (counted["dropped"] if counted["split"] else 0)
    yield Check("no token is lost, or its sample counted as cut", short <= cut, f"{short:,} cut, {cut:,} counted")
    again = int(np.count_nonzero((covered > lengths) | ((times > 1) & (lengths == 0))))
    found = f"{again:,} used again, {counted['repeated']:,} counted"
    yield Check("no sample is used twice, or it is counted as repeated", again <= counted["repeated"], found)
    if not counted["split"]:
        entries = lengths.size - counted["dropped"] + counted["repeated"]
        found = f"{len(used.samples):,} uses, {entries:,} by the accounts"
        yield Check("the accounts add up", len(used.samples) == entries, found)


def _limits(plan: Plan, used: _Used) -> Iterator[Check]:
    """Budget, capacity, alignment and caps, from the layout's own configuration."""
    config = plan.config
    padded = config["layout"] != "packed"
    limit = int(config["max_tokens" if padded else "capacity"])
    # A sample alone beyond the budget is counted, and so is one that runs again.
    over = int(np.count_nonzero(plan.padded_tokens > limit))
    alone = int(plan.accounts.get("alone", 0)) + int(plan.accounts.get("repeated", 0))
    yield Check(
        "no batch exceeds its tokens", over <= alone, f"at most {int(plan.padded_tokens.max(initial=0)):,} of {limit:,}"
    )
    multiple = config.get("multiple_of") or 1
    if padded:
        pairs = plan.padded_lengths.ndim == 2
        lengths = plan.planner.lengths
        occupied = lengths[np.minimum(used.samples, len(lengths) - 1)] if pairs else used.tokens
        wide = int(np.count_nonzero(occupied > plan.padded_lengths[used.batches]))
        yield Check("every sample fits the padded length of its batch", wide == 0, f"{wide:,} do not")
        odd = int(np.count_nonzero(plan.padded_lengths % multiple))
        if multiple != 1:
            yield Check(f"padded lengths are multiples of {multiple}", odd == 0, f"{odd:,} are not")
    else:
        occupied = -(-used.tokens // multiple) * multiple
        filled = np.bincount(used.batches, weights=occupied, minlength=len(plan))
        full = int(np.count_nonzero(filled > limit))
        yield Check("the samples of every pack fit into it", full == 0, f"{full:,} packs overflow")
    cap = config.get("max_samples")
    if cap is not None:
        largest = int(plan.sizes.max(initial=0))
        yield Check("no batch has too many samples", largest <= int(cap), f"at most {largest:,} of {int(cap):,}")


def _again(plan: Plan) -> Check:
    """Planned again from the lengths and the configuration, the epoch is the same."""
    again = plan.planner.plan(plan.epoch)
    ours, theirs = _signature(plan), _signature(again)
    same = all(np.array_equal(one, other) for one, other in zip(ours, theirs, strict=True))
    return Check("planned again, it is the same", same, "equal" if same else "different")


def _signature(plan: Plan) -> tuple[Any, ...]:
    used = _used(plan)
    return plan.sizes, plan.padded_lengths, used.samples, used.tokens
