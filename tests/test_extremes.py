"""Lengths and budgets at their limits: planned within every promise, or refused with a sentence."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pytest

import lengthwise as lw

if TYPE_CHECKING:
    from lengthwise.layouts import Order, PadTo
    from lengthwise.planner import Overlong

LIMIT: Final = 2**31 - 1
EXTREMES: Final = {
    "one": [5],
    "one without tokens": [0],
    "one at the limit": [LIMIT],
    "all equal": [700] * 999,
    "all distinct": list(range(1, 1000)),
    "all distinct, far apart": [(index * 2_654_435_761) % LIMIT for index in range(500)],
    "one giant": [3] * 500 + [LIMIT],
    "one giant among empty ones": [0] * 100 + [LIMIT],
    "at the limit": [LIMIT - index % 3 for index in range(300)],
}
BUDGETS: Final = (1, 2, 699, 700, 701, LIMIT - 1, LIMIT, 2**32, 2**62, 2**63 - 1)


def tokens_used(plan: lw.Plan, lengths: npt.NDArray[np.int64]) -> int:
    """Tokens that the entries of all batches stand for."""
    if plan.segments is None:
        return int(lengths[np.concatenate(list(plan))].sum())
    at = np.concatenate([np.arange(s, s + n) for s, n in zip(plan.starts, plan.sizes.astype(np.int64), strict=True)])
    return int(np.diff(plan.segments[at].astype(np.int64)).sum())


@pytest.mark.parametrize("overlong", ["error", "drop", "truncate", "split", "alone"])
@pytest.mark.parametrize("name", EXTREMES)
def test_plans(name: str, overlong: Overlong) -> None:
    lengths = np.array(EXTREMES[name], np.int64)
    orders: tuple[Order, ...] = ("bucketed", "shuffled", "sorted")
    ways: tuple[PadTo, ...] = ("longest", "boundary")
    for budget, order, pad_to in product(BUDGETS, orders, ways):
        if overlong == "split" and int((lengths // budget).sum()) > 10_000:
            continue
        try:
            plan = lw.Planner(lengths, lw.Padded(budget, order=order, pad_to=pad_to), overlong=overlong).plan()
        except lw.LengthwiseError as error:
            longer = np.count_nonzero(lengths > budget)
            assert longer if overlong == "error" else longer == len(lengths), error  # noqa: PT017
            continue
        summary = plan.summary
        assert int(summary.padded_tokens) == sum(map(int, plan.padded_tokens.tolist()))
        if overlong == "alone":
            assert all(size == 1 for size in plan.sizes[plan.padded_tokens > budget].tolist())
        else:
            assert int(plan.padded_tokens.max()) <= budget
        kept = lengths if overlong in ("split", "alone") else np.minimum(lengths, budget)
        if overlong == "drop":
            kept = lengths[lengths <= budget]
        assert tokens_used(plan, lengths) == int(kept.sum())


@pytest.mark.parametrize("objective", ["boundary", "longest", "steps"])
@pytest.mark.parametrize("name", EXTREMES)
def test_boundaries(name: str, objective: Any) -> None:
    lengths = np.array(EXTREMES[name], np.int64)
    distinct = len(set(lengths[lengths > 0].tolist()))
    for budget, k in product(BUDGETS, (1, 2, 7)):
        options: dict[str, Any] = {} if objective == "boundary" else {"max_tokens": budget}
        if k > distinct:
            with pytest.raises(lw.LengthwiseError, match=r"k is|only zeros"):
                lw.solve_boundaries(lengths, k, objective=objective, **options)
            continue
        solution = lw.solve_boundaries(lengths, k, objective=objective, **options)
        assert len(solution) == k
        assert int(solution.boundaries[-1]) == int(lengths.max())
        padded = solution.boundaries.astype(object)[np.searchsorted(solution.boundaries, lengths)]
        assert solution.real_tokens == sum(lengths.tolist())
        if objective == "boundary":
            assert solution.cost == solution.lower_bound == padded.sum()
        elif objective == "longest":
            assert solution.real_tokens <= solution.cost * (1 + 1e-9)
            assert solution.cost <= padded.sum() * (1 + 1e-9)
