"""`Packed` as a layout of the planner: fresh packs every epoch, equal ranks, hard limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise import LengthwiseError


def fills(plan: lw.Plan, lengths: npt.NDArray[Any], multiple_of: int = 1) -> list[int]:
    """What the samples of each pack occupy."""
    segments = plan.segments
    tokens = lengths[plan.indices] if segments is None else segments[:, 1].astype(int) - segments[:, 0]
    aligned = -(-tokens.astype(int) // multiple_of) * multiple_of
    return [
        int(aligned[start : start + size].sum())
        for start, size in zip(plan.starts, plan.sizes.astype(int), strict=True)
    ]


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=80),
    st.integers(8, 60),
    st.integers(1, 4),
    st.one_of(st.none(), st.integers(1, 5)),
    st.sampled_from(["truncate", "split"]),
)
def test_every_epoch_is_a_partition_within_the_limits(
    values: list[int], capacity: int, multiple_of: int, max_samples: int | None, overlong: Any
) -> None:
    lengths = np.array(values, np.uint32)
    layout = lw.Packed(capacity, multiple_of=multiple_of, max_samples=max_samples, pad_to="fill")
    planner = lw.Planner(lengths, layout, overlong=overlong, world_size=3, remainder="repeat")
    for epoch in range(2):
        plan = planner.plan(epoch)
        occupied = fills(plan, lengths, multiple_of)
        assert occupied == plan.padded_lengths.tolist()
        assert max(occupied) <= capacity
        assert plan.sizes.max() <= (max_samples or len(values))
        assert len(plan) % 3 == 0
        usable = capacity // multiple_of * multiple_of
        used = lengths if overlong == "split" else np.minimum(lengths, usable)
        assert sorted(set(plan.indices.tolist())) == list(range(len(values)))
        tokens = lengths[plan.indices] if plan.segments is None else plan.segments[:, 1] - plan.segments[:, 0]
        assert tokens.sum(dtype=int) == used.sum(dtype=int)


def test_story_epochs_differ_at_the_same_efficiency(story: npt.NDArray[np.uint16]) -> None:
    planner = lw.Planner(story, lw.Packed(8192), world_size=8, seed=3)
    first, again, second = planner.plan(0), planner.plan(0), planner.plan(1)
    assert np.array_equal(first.indices, again.indices)
    assert np.array_equal(first.starts, again.starts)
    for plan in (first, second):
        assert len(plan) == 231_840
        assert plan.summary.cut_batches == 3
        assert np.array_equal(np.sort(plan.indices), np.arange(story.size, dtype=np.uint32))
        assert plan.summary.padding < 0.0016
        assert set(plan.padded_lengths.tolist()) == {8192}
    partner = np.empty(story.size, np.uint32)
    same = 0
    for plan in (first, second):
        before, partner = partner, np.empty(story.size, np.uint32)
        starts = np.sort(plan.starts)
        partner[plan.indices] = plan.indices[starts[np.searchsorted(starts, np.arange(story.size), side="right") - 1]]
        same = int((before == partner).sum())
    assert same < 0.2 * story.size  # samples that are first in their pack are their own partner


def test_golden_plan() -> None:
    """These bits are a promise: a change of them is a major version."""
    plan = lw.Planner(np.repeat(np.arange(1, 7), 3), lw.Packed(20), seed=1, world_size=2, steps="shuffled").plan(1)
    assert [pack.tolist() for pack in plan] == [[11, 10, 7, 8, 6, 4, 1], [3, 2], [16, 15, 17, 5], [14, 12, 13, 9, 0]]


def test_cut_packs_keep_every_sample() -> None:
    lengths = np.array([5, 4, 3, 2, 6], np.uint16)
    plan = lw.Planner(lengths, lw.Packed(8, pad_to="fill"), world_size=5).plan(0)
    assert (len(plan), plan.summary.cut_batches) == (5, 2)
    assert sorted(plan.indices.tolist()) == [0, 1, 2, 3, 4]
    assert sorted(plan.padded_lengths.tolist()) == [2, 3, 4, 5, 6]


def test_accounts() -> None:
    lengths = np.array([5, 40, 3, 20], np.uint16)
    for overlong in ("drop", "truncate", "split"):
        summary = lw.Planner(lengths, lw.Packed(8), overlong=overlong).plan(0).summary
        counted = {"drop": summary.dropped, "truncate": summary.truncated, "split": summary.split}
        assert counted == {"drop": 0, "truncate": 0, "split": 0} | {overlong: 2}


@pytest.mark.parametrize(
    ("layout", "options", "message"),
    [
        (lw.Packed(0), {}, "capacity is 0, but must be from 1"),
        (lw.Packed(8, method="magic"), {}, "method is 'magic', but must be one of"),  # type: ignore[arg-type]
        (lw.Packed(8, pad_to="pack"), {}, "pad_to is 'pack', but must be one of"),  # type: ignore[arg-type]
        (lw.Packed(8, max_samples=0), {}, "max_samples is 0"),
        (lw.Packed(8, multiple_of=16), {}, "multiple_of is 16"),
        (lw.Packed(4), {}, r"lengths\[0\] is 5 tokens, but a pack holds capacity=4"),
        (lw.Packed(8), {"overlong": "alone"}, 'overlong is "alone", but no pack exceeds its capacity'),
        (lw.Packed(8), {"world_size": 9}, "world_size is 9"),
        (lw.Packed(1), {"overlong": "drop"}, "leaves nothing"),
    ],
)
def test_bad_input_is_named(layout: lw.Packed, options: dict[str, Any], message: str) -> None:
    with pytest.raises(LengthwiseError, match=message):
        lw.Planner([5, 4, 3], layout, **options).plan(0)


def test_config_is_plain() -> None:
    planner = lw.Planner([5, 4], lw.Packed(8, max_samples=4))
    assert planner.boundaries is None
    assert planner.config["layout"] == "packed"
    assert planner.config["max_samples"] == 4
