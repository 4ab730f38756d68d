"""Whole-epoch plans against the same plan in pure Python and in numpy.

Run `pytest benches/bench_plans.py --benchmark-enable`; each group is one kind of plan at one number of samples.
"""

from __future__ import annotations

import bisect
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import lengthwise as lw
from lengthwise.story import story_lengths

if TYPE_CHECKING:
    import numpy.typing as npt

MAX_TOKENS = 65_536
SIZES = (10_000, 100_000, 902_087)
Lengths = Any


def lengths_of(samples: int) -> npt.NDArray[np.uint16]:
    """The story's lengths in a random order, or that many drawn from them."""
    rng = np.random.default_rng(0)
    story = story_lengths()
    return rng.permutation(story) if samples == len(story) else story[rng.integers(0, len(story), samples)]


def python_twin(lengths: list[int], boundaries: list[int], seed: int) -> list[list[int]]:
    """Shuffle inside buckets, fill to the budget, shuffle the batches: as one would write it."""
    rng = random.Random(seed)  # noqa: S311 (a twin of a shuffle)
    buckets: list[list[int]] = [[] for _ in boundaries]
    for sample, length in enumerate(lengths):
        buckets[bisect.bisect_left(boundaries, length)].append(sample)
    batches = []
    for bucket in buckets:
        rng.shuffle(bucket)
        batch: list[int] = []
        longest = 0
        for sample in bucket:
            longer = max(longest, lengths[sample])
            if batch and longer * (len(batch) + 1) > MAX_TOKENS:
                batches.append(batch)
                batch, longer = [], lengths[sample]
            batch.append(sample)
            longest = longer
        if batch:
            batches.append(batch)
    rng.shuffle(batches)
    return batches


def numpy_buckets(lengths: Lengths, boundaries: Lengths, rng: np.random.Generator) -> list[Lengths]:
    """The samples of each bucket, shuffled."""
    bucket = np.searchsorted(boundaries, lengths)
    order = np.argsort(bucket, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(bucket, minlength=len(boundaries)))[:-1])
    return [rng.permutation(part) for part in parts]


def numpy_greedy_twin(lengths: Lengths, boundaries: Lengths, seed: int) -> list[Lengths]:
    """Batches padded to their longest sample; numpy inside each batch."""
    rng = np.random.default_rng(seed)
    batches = []
    for part in numpy_buckets(lengths, boundaries, rng):
        own = lengths[part].astype(np.int64)
        first = 0
        while first < len(part):
            window = own[first : first + MAX_TOKENS // int(own[first])]
            padded = np.maximum.accumulate(window) * np.arange(1, len(window) + 1)
            size = int(np.searchsorted(padded, MAX_TOKENS, side="right"))
            batches.append(part[first : first + size])
            first += size
    return [batches[i] for i in rng.permutation(len(batches))]


def numpy_fixed_twin(lengths: Lengths, boundaries: Lengths, seed: int) -> list[Lengths]:
    """Batches padded to the bound of their bucket: all sizes are known."""
    rng = np.random.default_rng(seed)
    batches: list[Lengths] = []
    for bound, part in zip(boundaries, numpy_buckets(lengths, boundaries, rng), strict=True):
        size = MAX_TOKENS // int(bound)
        batches.extend(part[first : first + size] for first in range(0, len(part), size))
    return [batches[i] for i in rng.permutation(len(batches))]


def check(lengths: Lengths, batches: Any, padded: float) -> None:
    """A partition within the budget, that pads as much as ours, give or take chance."""
    assert np.array_equal(np.sort(np.concatenate(batches)), np.arange(len(lengths)))
    tokens = [int(lengths[batch].max()) * len(batch) for batch in batches]
    assert max(tokens) <= MAX_TOKENS
    assert sum(tokens) == pytest.approx(padded, rel=0.01)


@pytest.mark.parametrize("samples", SIZES)
@pytest.mark.parametrize("who", ["lengthwise", "python", "numpy"])
def test_longest(benchmark: Any, samples: int, who: str) -> None:
    benchmark.group = f"pad to longest, {samples:,} samples"
    lengths = lengths_of(samples)
    boundaries = lw.optimal_boundaries(lengths, 16)
    planner = lw.Planner(lengths, lw.Padded(MAX_TOKENS, boundaries=boundaries), steps="shuffled")
    padded = float(planner.plan().padded_tokens.sum())
    if who == "lengthwise":
        check(lengths, list(planner.plan()), padded)
        benchmark(planner.plan)
    elif who == "python":
        plain, bounds = lengths.tolist(), boundaries.tolist()
        check(lengths, python_twin(plain, bounds, 0), padded)
        benchmark.pedantic(python_twin, (plain, bounds, 0), rounds=3)
    else:
        check(lengths, numpy_greedy_twin(lengths, boundaries, 0), padded)
        benchmark.pedantic(numpy_greedy_twin, (lengths, boundaries, 0), rounds=5)


@pytest.mark.parametrize("samples", SIZES)
@pytest.mark.parametrize("who", ["lengthwise", "numpy"])
def test_boundary(benchmark: Any, samples: int, who: str) -> None:
    benchmark.group = f"fixed shapes, {samples:,} samples"
    lengths = lengths_of(samples)
    boundaries = lw.optimal_boundaries(lengths, 16)
    layout = lw.Padded(MAX_TOKENS, boundaries=boundaries, pad_to="boundary")
    planner = lw.Planner(lengths, layout, steps="shuffled")
    twin = numpy_fixed_twin(lengths, boundaries, 0)
    plan = planner.plan()
    assert sorted(map(len, twin)) == sorted(plan.sizes.tolist())
    if who == "lengthwise":
        benchmark(planner.plan)
    else:
        benchmark.pedantic(numpy_fixed_twin, (lengths, boundaries, 0), rounds=5)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("pad_to", ["longest", "boundary"])
def test_ten_million(benchmark: Any, pad_to: Any, threads: int) -> None:
    benchmark.group = f"10 million samples, pad to {pad_to}"
    lengths = lengths_of(10_000_000)
    layout = lw.Padded(MAX_TOKENS, boundaries=16, pad_to=pad_to)
    planner = lw.Planner(lengths, layout, steps="shuffled", threads=threads)
    benchmark.pedantic(planner.plan, rounds=7, warmup_rounds=1)


@pytest.mark.parametrize("samples", [902_087, 10_000_000])
@pytest.mark.parametrize("pad_to", ["longest", "boundary"])
def test_eight_ranks(benchmark: Any, pad_to: Any, samples: int) -> None:
    """Steps of equal mean length, which is what eight ranks get by default."""
    benchmark.group = f"eight ranks, pad to {pad_to}, {samples:,} samples"
    planner = lw.Planner(lengths_of(samples), lw.Padded(MAX_TOKENS, boundaries=16, pad_to=pad_to), world_size=8)
    benchmark.pedantic(planner.plan, rounds=9, warmup_rounds=1)
