"""Verification: every plan of ours passes, and every broken promise is found."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lengthwise as lw
from lengthwise.verification import Check, verify_plan


def failures(plan: Any) -> list[str]:
    return [check.name for check in verify_plan(plan) if not check.passed]


@pytest.mark.parametrize("overlong", ["drop", "truncate", "split", "alone"])
@pytest.mark.parametrize("remainder", ["split", "repeat", "drop"])
@pytest.mark.parametrize("order", ["bucketed", "shuffled", "sorted"])
def test_our_plans_keep_their_promises(overlong: Any, remainder: Any, order: Any) -> None:
    lengths = np.random.default_rng(1).integers(0, 900, 500)
    layout = lw.Padded(700, boundaries=5 if order == "bucketed" else None, order=order, multiple_of=4)
    for world_size, epoch in itertools.product((1, 3), (0, 2)):
        planner = lw.Planner(lengths, layout, seed=3, world_size=world_size, overlong=overlong, remainder=remainder)
        assert failures(planner.plan(epoch)) == []


@pytest.fixture
def plan() -> Any:
    """A plan as plain arrays that a test may break."""
    lengths = np.random.default_rng(1).integers(1, 90, 100)
    made = lw.Planner(lengths, lw.Padded(300, boundaries=[30, 90], max_samples=9, multiple_of=2), world_size=2).plan()
    copied = {name: getattr(made, name).copy() for name in ("indices", "starts", "sizes", "padded_lengths")}
    kept = ("segments", "accounts", "planner", "world_size", "config", "epoch", "steps", "padded_tokens")

    class Broken(SimpleNamespace):
        def __len__(self) -> int:
            return len(self.starts)

    return Broken(**copied, **{name: getattr(made, name) for name in kept})


def test_the_copy_is_sound(plan: Any) -> None:
    assert failures(plan) == []


def test_a_sample_used_twice_instead_of_another(plan: Any) -> None:
    plan.indices[0] = plan.indices[1]
    assert {"every sample is used, or counted as dropped", "planned again, it is the same"} <= set(failures(plan))
    assert "no sample is used twice, or it is counted as repeated" in failures(plan)


def test_an_index_that_is_no_sample(plan: Any) -> None:
    plan.indices[5] = 100
    assert "every index is a sample" in failures(plan)


def test_too_many_tokens(plan: Any) -> None:
    plan.padded_tokens = plan.padded_tokens + 300
    assert "no batch exceeds its tokens" in failures(plan)


def test_a_sample_longer_than_its_batch(plan: Any) -> None:
    plan.padded_lengths[:] = 2
    assert "every sample fits the padded length of its batch" in failures(plan)


def test_a_padded_length_off_the_grid(plan: Any) -> None:
    plan.padded_lengths[0] += 1
    assert "padded lengths are multiples of 2" in failures(plan)


def test_a_rank_with_a_batch_less(plan: Any) -> None:
    for name in ("starts", "sizes", "padded_lengths"):
        setattr(plan, name, getattr(plan, name)[:-1])
    assert "every rank has the same number of batches" in failures(plan)


def test_other_accounts(plan: Any) -> None:
    plan.accounts = plan.accounts | {"dropped": 3}
    assert failures(plan) == ["the accounts add up"]


def test_checks_say_what_they_found(plan: Any) -> None:
    first = verify_plan(plan)[0]
    assert isinstance(first, Check)
    assert "of 2" in first.found
