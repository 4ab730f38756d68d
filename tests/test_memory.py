"""The memory of plans that nobody needs goes to the next ones, and nobody who has a plan can tell."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import lengthwise as lw
from lengthwise.torch import BatchSampler

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLES = 600_000  # two stretches: enough for two threads


def lengths(columns: int = 1) -> np.ndarray:
    drawn = np.random.default_rng(0).integers(1, 500, (SAMPLES, columns), dtype=np.uint16)
    return drawn[:, 0] if columns == 1 else drawn


def planner(**options: Any) -> lw.Planner:
    return lw.Planner(lengths(), lw.Padded(20_000, boundaries=8), **options)


def address(plan: lw.Plan) -> int:
    return int(plan.indices.__array_interface__["data"][0])


MAKERS: dict[str, Callable[[], lw.Planner]] = {
    "longest": planner,
    "boundary": lambda: lw.Planner(lengths(), lw.Padded(20_000, boundaries=8, pad_to="boundary")),
    "two threads": lambda: planner(threads=2),
    "pairs": lambda: lw.Planner(lengths(2), lw.PaddedPairs(20_000, cells=4)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_memory_goes_to_the_next_plan(name: str) -> None:
    ours = MAKERS[name]()
    first = ours.plan(0)
    at, expected = address(first), first.indices.copy()
    del first
    other = ours.plan(1)
    assert address(other) == at
    del other
    again = ours.plan(0)
    assert address(again) == at
    assert np.array_equal(again.indices, expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_plans_that_somebody_has_stay_as_they_are(threads: int) -> None:
    ours, fresh = planner(threads=threads), planner()
    plans = [ours.plan(epoch) for epoch in range(3)]
    assert len({address(plan) for plan in plans}) == 3
    batch, expected = plans[1][7], fresh.plan(1)[7].copy()
    del plans[:2]
    for epoch in range(3, 6):
        plan = ours.plan(epoch)
        assert np.array_equal(plan.indices, fresh.plan(epoch).indices)
        assert not np.shares_memory(batch, plan.indices)
    assert np.array_equal(batch, expected)
    assert np.array_equal(plans[0].indices, fresh.plan(2).indices)


def test_plans_outlive_their_planner() -> None:
    ours = planner()
    indices = ours.plan(0).indices
    expected = indices.copy()
    del ours
    gc.collect()
    assert np.array_equal(indices, expected)


def test_copies_of_plans_and_planners_have_memory_of_their_own() -> None:
    ours = planner()
    plan = ours.plan(0)
    for other in (copy.deepcopy(plan), pickle.loads(pickle.dumps(plan))):  # noqa: S301
        assert not np.shares_memory(plan.indices, other.indices)
        assert np.array_equal(plan.indices, other.indices)
    del plan
    assert np.array_equal(pickle.loads(pickle.dumps(ours)).plan(0).indices, ours.plan(0).indices)  # noqa: S301


def test_a_sampler_plans_in_the_memory_of_the_epoch_before_the_last() -> None:
    sampler = BatchSampler(planner())
    used = []
    for epoch in range(4):
        sampler.set_epoch(epoch)
        next(iter(sampler))
        used.append({address(plan) for plan in sampler._plans.values()})
    assert [len(addresses) for addresses in used] == [1, 2, 2, 2]
    assert used[1] == used[2] == used[3]


KEPT = """
import resource, sys, numpy as np, lengthwise as lw
samples, threads = 8_000_000, int(sys.argv[1])
lengths = np.random.default_rng(0).integers(1, 500, samples, dtype=np.uint16)
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
planner = lw.Planner(lengths, lw.Padded(65_536, boundaries=8), threads=threads)
before = resident()
plans = [planner.plan(epoch) for epoch in range(6)]
plans.clear()
kept = resident() - before
del planner
print(kept / samples, (resident() - before) / samples)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux how much memory is resident")
@pytest.mark.parametrize(("threads", "most"), [(1, 5), (2, 10)])
def test_few_bytes_are_kept_and_none_without_the_planner(threads: int, most: float) -> None:
    command = [sys.executable, "-c", KEPT, str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    kept, left = map(float, done.stdout.split())
    assert 3.9 < kept < most
    assert left < 1.5


MEMORY = """
import numpy as np, lengthwise as lw

def peak():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))

lengths = np.resize(np.arange(1, 5000, dtype=np.uint16), 8_000_000)
planner = lw.Planner(lengths, lw.Padded(65_536, **LAYOUT))
before = peak()
plan = planner.plan()
print((peak() - before) / len(lengths))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is told by Linux")
@pytest.mark.parametrize(("layout", "most"), [({}, 12), ({"pad_to": "boundary"}, 8), ({"order": "sorted"}, 12)])
def test_plans_need_few_bytes_a_sample(layout: dict[str, Any], most: float) -> None:
    code = MEMORY.replace("LAYOUT", repr(layout))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert 3 < float(done.stdout) < most
