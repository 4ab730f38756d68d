"""`lw.plan_chunks`: pieces in order, one a step, no step beyond its budget, and few steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise import LengthwiseError


@given(st.lists(st.integers(0, 90), max_size=50), st.integers(1, 20), st.integers(0, 50))
def test_pieces_run_in_consecutive_steps(lengths: list[int], chunk: int, more: int) -> None:
    plan = lw.plan_chunks(lengths, chunk + more, chunk)
    steps: dict[int, list[int]] = {}
    pieces: dict[int, list[list[int]]] = {}
    for step, (samples, segments) in enumerate(plan):
        assert samples.size == np.unique(samples).size > 0
        assert (segments[:, 1] - segments[:, 0]).sum() <= chunk + more
        for sample, segment in zip(samples.tolist(), segments.tolist(), strict=True):
            steps.setdefault(sample, []).append(step)
            pieces.setdefault(sample, []).append(segment)
    assert sorted(steps) == list(range(len(lengths)))
    for sample, length in enumerate(lengths):
        first = steps[sample][0]
        assert steps[sample] == list(range(first, first + max(-(-length // chunk), 1)))
        starts = range(0, max(length, 1), chunk)
        assert pieces[sample] == [[start, min(start + chunk, length)] for start in starts]
    assert plan.lower_bound <= len(plan)


def test_story_fills_its_steps(story: npt.NDArray[np.uint16]) -> None:
    plan = lw.plan_chunks(story[:100_000], 65_536, 512)
    assert plan.efficiency > 0.99
    assert len(plan) <= 1.01 * plan.lower_bound


def test_plan_is_a_sequence() -> None:
    plan = lw.plan_chunks([4, 4], 4, 2)
    assert len(plan) == 2
    assert plan[-1][0].tolist() == [0, 1]
    assert lw.plan_chunks([], 4, 2).efficiency == 1.0
    with pytest.raises(IndexError):
        plan[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1], 0, 1), "max_tokens is 0"),
        (([1], 8, 9), "chunk is 9, but must be from 1 to 8; a step must hold one piece"),
        (([1], 8, 0), "chunk is 0"),
        (([1], 8.5, 1), "max_tokens is 8.5"),
        (([-1], 8, 1), r"lengths\[0\] is -1"),
        (([float("nan")], 8, 1), r"lengths\[0\] is nan"),
    ],
)
def test_bad_input_is_named(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(LengthwiseError, match=message):
        lw.plan_chunks(*arguments)
