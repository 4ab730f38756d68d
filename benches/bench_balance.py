"""`lw.balance` against the Karmarkar-Karp scheme in common use: better first, then faster."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import lengthwise as lw


def lognormal_costs(n: int) -> npt.NDArray[np.int64]:
    """Costs of a 7-billion-parameter model over lognormal lengths."""
    lengths = np.minimum(np.exp(np.random.default_rng(0).normal(np.log(1600), 1.0, n)), 32_768).astype(np.int64) + 1
    return 24_576 * lengths + lengths * lengths


def karmarkar_karp(costs: list[int], parts: int) -> list[list[int]]:
    """Equal-count differencing over tuples of consecutive costs, as reinforcement-learning trainers run it."""
    order = sorted(range(len(costs)), key=costs.__getitem__)
    heap: list[tuple[int, int, list[tuple[int, list[int]]]]] = []
    for start in range(0, len(order), parts):
        sets = sorted(((costs[i], [i]) for i in order[start : start + parts]), reverse=True)
        heap.append((sets[-1][0] - sets[0][0], start, sets))
    heapq.heapify(heap)
    while len(heap) > 1:
        _, age, a = heapq.heappop(heap)
        _, _, b = heapq.heappop(heap)
        joined = [(x + y, items + others) for (x, items), (y, others) in zip(a, reversed(b), strict=True)]
        joined.sort(reverse=True)
        heapq.heappush(heap, (joined[-1][0] - joined[0][0], age, joined))
    return [items for _, items in heap[0][2]]


def gap(costs: npt.NDArray[np.int64], sums: Any) -> float:
    """How far the largest sum is above what no division can beat."""
    return float(max(sums) / max(costs.max(), costs.sum() / len(sums)) - 1)


@pytest.mark.benchmark(group="balance 2,048 costs over 64 parts of equal count")
@pytest.mark.parametrize("who", ["lengthwise", "karmarkar-karp in python"])
def test_step_of_a_trainer(benchmark: Any, who: str) -> None:
    costs = lognormal_costs(2048)
    listed = costs.tolist()
    ours = lw.balance(costs, 64, equal_count=True)
    theirs = [int(costs[part].sum()) for part in karmarkar_karp(listed, 64)]
    assert gap(costs, ours.sums) <= 0.0002
    assert gap(costs, theirs) > 0.2
    benchmark.extra_info["gap"] = gap(costs, ours.sums if who == "lengthwise" else theirs)
    if who == "lengthwise":
        benchmark(lw.balance, costs, 64, equal_count=True)
    else:
        benchmark(karmarkar_karp, listed, 64)


@pytest.mark.benchmark(group="balance 10 million costs over 1,024 parts")
@pytest.mark.parametrize("equal_count", [True, False])
def test_ten_million(benchmark: Any, equal_count: bool) -> None:  # noqa: FBT001
    costs = lognormal_costs(10_000_000)
    found = benchmark.pedantic(lw.balance, (costs, 1024), {"equal_count": equal_count}, rounds=1)
    assert float(found.sums.max()) / found.lower_bound < 1.0001


@pytest.mark.benchmark(group="steps of 902,087 samples over 8 ranks")
@pytest.mark.parametrize("steps", ["shuffled", "stratified", "windowed"])
def test_steps(benchmark: Any, steps: Any) -> None:
    from lengthwise.story import story_lengths

    lengths = np.random.default_rng(0).permutation(story_lengths())
    planner = lw.Planner(lengths, lw.Padded(65_536, boundaries=16), world_size=8, steps=steps)
    summary = planner.plan().summary
    assert steps != "stratified" or summary.mixing.step_spread < 1
    benchmark(planner.plan)
