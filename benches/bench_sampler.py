"""What the training side costs on the lengths of the story: start, an epoch of batches, the state, a resume.

    pytest benches/bench_sampler.py --benchmark-enable

Asked for: start under 10 ms, an epoch on rank 7 of 8 under 50 ms, `state_dict` under 5 microseconds, a resume at any
position under 10 ms, a million batches a second.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lengthwise as lw
from lengthwise.story import PUBLISHED_BOUNDARIES, story_lengths
from lengthwise.torch import BatchSampler

RANK = 7


@pytest.fixture(scope="module")
def planner() -> lw.Planner:
    lengths = np.random.default_rng(0).permutation(story_lengths())
    planner = lw.Planner(lengths, lw.Padded(65_536, boundaries=PUBLISHED_BOUNDARIES), world_size=8)
    assert planner.fingerprint, "worked out once for a planner"
    return planner


def test_start(benchmark: Any, planner: lw.Planner) -> None:
    first = benchmark(lambda: next(iter(BatchSampler(planner, RANK))))
    assert first == planner.plan(0)[RANK].tolist()


def test_an_epoch_of_batches(benchmark: Any, planner: lw.Planner) -> None:
    sampler = BatchSampler(planner, RANK)
    batches = benchmark(lambda: list(sampler))
    assert batches == [batch.tolist() for batch in planner.plan(0).rank(RANK)]


def test_state_dict(benchmark: Any, planner: lw.Planner) -> None:
    sampler = BatchSampler(planner, RANK)
    next(iter(sampler))
    iterator = iter(sampler)
    next(iterator)
    assert benchmark(sampler.state_dict)["batch"] == planner.world_size


def test_resume(benchmark: Any, planner: lw.Planner) -> None:
    plan = planner.plan(3)
    state = BatchSampler(planner, RANK).state_dict() | {"epoch": 3, "batch": len(plan) - 80, "dealt": len(plan) - 80}

    def resume() -> list[int]:
        sampler = BatchSampler(planner, RANK)
        sampler.load_state_dict(state)
        batch: list[int] = next(iter(sampler))
        return batch

    assert benchmark(resume) == plan[len(plan) - 80 + RANK].tolist()


def test_a_million_batches(benchmark: Any) -> None:
    planner = lw.Planner(np.full(1_000_000, 100, np.uint16), lw.Padded(100, order="shuffled"))
    sampler = BatchSampler(planner)
    next(iter(sampler))
    assert benchmark.pedantic(lambda: sum(1 for _ in sampler), rounds=5) == 1_000_000
