"""Optimal boundaries against twins that reach the same optimum: pure Python and numpy.

The convex-hull twin is what a good programmer writes in Python; the textbook twins are the O(k m^2) program that most
texts give. The pure-Python textbook is timed at few boundaries and few lengths: its cost grows with k m^2, which gives
the rest. All reach the same cost, which is checked before timing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import lengthwise as lw
from lengthwise import _core
from lengthwise.story import story_lengths

if TYPE_CHECKING:
    import numpy.typing as npt

K = 32


@pytest.fixture(scope="module", params=[10_000, 100_000, 902_087])
def lengths(request: pytest.FixtureRequest) -> npt.NDArray[np.uint16]:
    """So many of the story's lengths, in random order."""
    return np.random.default_rng(0).permutation(story_lengths())[: request.param]


def counted(lengths: npt.NDArray[np.uint16]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Distinct lengths, and cumulative counts with a leading zero."""
    counts = np.bincount(lengths)
    distinct = np.flatnonzero(counts)
    return distinct, np.concatenate([[0], np.cumsum(counts[distinct])])


def hull_twin(lengths: npt.NDArray[np.uint16], k: int) -> int:
    """The least padded tokens by k layers of the convex-hull trick, in pure Python."""
    distinct, cumulative = counted(lengths)
    costs, below = distinct.tolist(), cumulative.tolist()
    totals = [0, *([float("inf")] * len(costs))]
    for layer in range(k):
        following: list[Any] = [float("inf")] * len(totals)
        hull: list[tuple[int, int]] = []
        head = 0
        for end in range(layer + 1, len(totals)):
            new = (totals[end - 1], below[end - 1])
            while len(hull) - head >= 2:
                (a, pa), (b, pb) = hull[-2], hull[-1]
                if (new[0] - a) * (pb - pa) > (b - a) * (new[1] - pa):
                    break
                hull.pop()
            hull.append(new)
            cost = costs[end - 1]
            while (
                len(hull) - head >= 2
                and hull[head + 1][0] - hull[head][0] <= (hull[head + 1][1] - hull[head][1]) * cost
            ):
                head += 1
            following[end] = hull[head][0] + (below[end] - hull[head][1]) * cost
        totals = following
    return int(totals[-1])


def textbook_numpy(lengths: npt.NDArray[np.uint16], k: int) -> int:
    """The same by the textbook program, one vector operation for each layer and end."""
    costs, below = counted(lengths)
    totals = np.full(len(below), 2**62)
    totals[0] = 0
    for _ in range(k):
        # totals[i] - below[i] * cost + below[end] * cost over all starts i below end
        following = np.full_like(totals, 2**62)
        for end in range(1, len(below)):
            following[end] = (totals[:end] - below[:end] * costs[end - 1]).min() + below[end] * costs[end - 1]
        totals = following
    return int(totals[-1])


def textbook_python(lengths: npt.NDArray[np.uint16], k: int) -> int:
    """The same without numpy."""
    distinct, cumulative = counted(lengths)
    costs, below = distinct.tolist(), cumulative.tolist()
    totals = [0, *([2**62] * len(costs))]
    for _ in range(k):
        following = [2**62] * len(totals)
        for end in range(1, len(totals)):
            cost, upto = costs[end - 1], below[end]
            following[end] = min(totals[start] + (upto - below[start]) * cost for start in range(end))
        totals = following
    return totals[-1]


@pytest.mark.parametrize("k", [6, K, 128, 512])
def test_ours(benchmark: Any, lengths: npt.NDArray[np.uint16], k: int) -> None:
    """Lengths to boundaries, through Python: the histogram and everything else."""
    benchmark.group = f"{len(lengths):,} lengths"
    solution = lw.solve_boundaries(lengths, k)
    assert solution.cost == solution.lower_bound
    if k == K:
        assert solution.cost == hull_twin(lengths, k)
    benchmark(lw.optimal_boundaries, lengths, k)


def test_hull_twin(benchmark: Any, lengths: npt.NDArray[np.uint16]) -> None:
    benchmark.group = f"{len(lengths):,} lengths"
    benchmark.pedantic(hull_twin, (lengths, K), rounds=3)


def test_textbook_numpy(benchmark: Any, lengths: npt.NDArray[np.uint16]) -> None:
    benchmark.group = f"{len(lengths):,} lengths"
    assert textbook_numpy(lengths % 500 + 1, 6) == lw.solve_boundaries(lengths % 500 + 1, 6).cost
    benchmark.pedantic(textbook_numpy, (lengths, K), rounds=1)


def test_textbook_python_extrapolated(benchmark: Any, lengths: npt.NDArray[np.uint16]) -> None:
    """One layer over lengths below 1,001; `extra_info` has the seconds that k layers over all of them would take."""
    benchmark.group = f"{len(lengths):,} lengths"
    short = lengths % 1000 + 1
    assert textbook_python(short % 100 + 1, 3) == lw.solve_boundaries(short % 100 + 1, 3).cost
    started = time.perf_counter()
    benchmark.pedantic(textbook_python, (short, 1), rounds=1)
    seconds = time.perf_counter() - started
    distinct = len(np.unique(lengths))
    benchmark.extra_info["extrapolated_seconds"] = seconds * K * (distinct / len(np.unique(short))) ** 2


def test_histogram(benchmark: Any, lengths: npt.NDArray[np.uint16]) -> None:
    benchmark.group = f"{len(lengths):,} lengths, histogram"
    distinct, counts = _core.histogram(lengths)
    assert np.array_equal(counts, np.bincount(lengths)[distinct])
    benchmark(_core.histogram, lengths)


def test_histogram_numpy(benchmark: Any, lengths: npt.NDArray[np.uint16]) -> None:
    benchmark.group = f"{len(lengths):,} lengths, histogram"
    benchmark(np.bincount, lengths)


@pytest.mark.parametrize("k", [6, K, 128, 512])
def test_aligned(benchmark: Any, k: int) -> None:
    """The boundary part alone, with `multiple_of=8`, over the histogram of the story."""
    benchmark.group = "from the histogram"
    histogram = lw.Histogram.of(story_lengths())
    assert not (lw.optimal_boundaries(histogram, k, multiple_of=8) % 8).any()
    benchmark(lw.optimal_boundaries, histogram, k, multiple_of=8)


@pytest.mark.parametrize("k", [K, 512])
def test_a_million_distinct(benchmark: Any, k: int) -> None:
    benchmark.group = "a million distinct lengths"
    counts = np.random.default_rng(0).integers(1, 50, 1_000_000).astype(np.uint64)
    histogram = lw.Histogram(np.arange(1, 1_000_001, dtype=np.uint32), counts)
    solution = lw.solve_boundaries(histogram, k)
    assert solution.cost == solution.lower_bound
    benchmark.pedantic(lw.optimal_boundaries, (histogram, k), rounds=10)


@pytest.mark.parametrize("options", [{"objective": "longest"}, {"objective": "steps"}], ids=lambda o: o["objective"])
def test_objectives(benchmark: Any, options: dict[str, Any]) -> None:
    benchmark.group = "objectives about batches"
    benchmark.pedantic(lw.optimal_boundaries, (story_lengths(), 8), {"max_tokens": 65_536, **options}, rounds=3)


def test_curve(benchmark: Any) -> None:
    benchmark.group = "the curve to 64 boundaries"
    benchmark.pedantic(lw.padding_curve, (story_lengths(), 64), rounds=3)
