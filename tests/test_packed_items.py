"""`Packed` under several limits and with samples that stay together: all hold in every epoch, and epochs differ."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise import LengthwiseError

if TYPE_CHECKING:
    from pathlib import Path

SAMPLES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 4), st.integers(0, 9)), min_size=4, max_size=80)


@given(SAMPLES, st.sampled_from(["drop", "truncate"]), st.sampled_from(["repeat", "drop", "split"]), st.integers(1, 3))
def test_limits_hold_in_every_epoch(
    samples: list[tuple[int, int, int]], overlong: Any, remainder: Any, multiple_of: int
) -> None:
    lengths, images = (np.array([sample[i] for sample in samples], np.uint32) for i in (0, 1))
    lengths[:3] = 1
    layout = lw.Packed(36, multiple_of=multiple_of, max_samples=5, limits={"images": (images, 8)}, pad_to="fill")
    planner = lw.Planner(lengths, layout, overlong=overlong, remainder=remainder, world_size=3, steps="shuffled")
    packs = lw.pack(
        lengths,
        36,
        multiple_of=multiple_of,
        max_samples=5,
        limits={"images": (images, 8)},
        overlong=overlong,
        seed=0,
    )
    if remainder == "drop" and len(packs) < 3:
        return
    kept = np.minimum(lengths, 36 // multiple_of * multiple_of)
    fits = lengths <= 36 // multiple_of * multiple_of
    for epoch in range(3):
        plan = planner.plan(epoch)
        for pack, padded in zip(plan, plan.padded_lengths, strict=True):
            assert 0 < pack.size <= 5
            assert images[pack].sum() <= 8
            assert (-(-kept[pack].astype(int) // multiple_of) * multiple_of).sum() == padded <= 36
        used = np.concatenate(list(plan))
        counted = np.bincount(used, minlength=lengths.size)
        wanted = fits if overlong == "drop" else np.ones_like(fits)
        assert plan.summary.repeated == np.maximum(counted - wanted, 0).sum()
        assert plan.summary.dropped == (counted == 0).sum()
        assert plan.summary.truncated == (0 if overlong == "drop" else (~fits).sum())
        assert len(plan) % 3 == 0
        if remainder != "drop":
            assert np.array_equal(counted > 0, wanted)
        if plan.segments is not None:
            assert np.array_equal(plan.segments[:, 1], kept[plan.indices])


@given(SAMPLES, st.integers(1, 3), st.sampled_from([None, 60]))
def test_groups_stay_together_in_every_epoch(
    samples: list[tuple[int, int, int]], world_size: int, most: int | None
) -> None:
    groups = np.array([f"g{sample[2]}" for sample in samples])
    lengths = np.array([sample[0] for sample in samples]) // max(len(samples) // 8, 1)
    limits = None if most is None else {"images": (np.ones(len(samples), int), most)}
    layout = lw.Packed(60, groups=groups, limits=limits)
    if np.bincount(np.unique(groups, return_inverse=True)[1], lengths).max() > 60:
        with pytest.raises(LengthwiseError, match="groups has label"):
            lw.Planner(lengths, layout)
        return
    planner = lw.Planner(lengths, layout, world_size=world_size, remainder="repeat")
    for epoch in range(2):
        plan = planner.plan(epoch)
        seen: dict[str, frozenset[int]] = {}
        for pack in plan:
            labels = groups[pack].tolist()
            assert sum(a != b for a, b in pairwise(labels)) == len(set(labels)) - 1
            for label in labels:
                members = frozenset(np.flatnonzero(groups == label).tolist())
                assert members <= set(pack.tolist())
                seen[label] = members
        assert set(seen) == set(groups.tolist())


def test_epochs_differ_at_the_same_efficiency(story: npt.NDArray[np.uint16]) -> None:
    lengths = story[::10]
    images = np.random.default_rng(0).integers(0, 5, lengths.size)
    layout = lw.Packed(8192, limits={"images": (images, 12)})
    planner = lw.Planner(lengths, layout, seed=4, world_size=4)
    first, again, second = planner.plan(0), planner.replace(threads=3).plan(0), planner.plan(1)
    assert np.array_equal(first.indices, again.indices)
    assert len(first) == len(second)
    assert first.summary.padding == second.summary.padding < 0.01
    assert first.summary.mixing.batchmates_again < 0.25


def test_pairs_swap_with_pairs_of_the_same_lengths() -> None:
    pairs = np.repeat(np.arange(200), 2)
    planner = lw.Planner(np.full(400, 4), lw.Packed(16, groups=pairs))
    plans = [sorted(sorted(pack.tolist()) for pack in planner.plan(epoch)) for epoch in range(2)]
    assert plans[0] != plans[1]
    assert all(len(pack) == 4 for plan in plans for pack in plan)


def test_golden_plan() -> None:
    """These bits are a promise: a change of them is a major version."""
    layout = lw.Packed(20, limits={"images": (np.tile([1, 2, 0], 6), 4)}, groups=np.repeat(np.arange(9), 2))
    plan = lw.Planner(np.repeat(np.arange(1, 7), 3), layout, seed=1, world_size=2, steps="shuffled").plan(1)
    assert [pack.tolist() for pack in plan] == [
        [8, 9],
        [10, 11, 16, 17],
        [2, 3, 4, 5],
        [0, 1],
        [6, 7, 14, 15],
        [12, 13],
    ]


def test_layouts_are_values(tmp_path: Path) -> None:
    counts = [1, 0, 2]
    layout = lw.Packed(9, limits={"images": (counts, 2)}, groups=["a", "b", "a"])
    same = lw.Packed(9, limits={"images": (np.array(counts, np.uint8), 2)}, groups=["x", "y", "x"])
    assert layout == same
    assert hash(layout) == hash(same)
    assert layout == replace(layout) == copy.copy(layout) == pickle.loads(pickle.dumps(layout))  # noqa: S301
    assert layout != lw.Packed(9, limits={"images": ([1, 0, 1], 2)}, groups=["a", "b", "a"])
    lengths = [4, 5, 3]
    planner = lw.Planner(lengths, lw.Packed(9, limits={"images": (counts, 2)}))
    assert planner.config["limits"] == {"images": [planner.layout.config["limits"]["images"][0], 2]}
    plan = planner.plan(0)
    plan.write(tmp_path / "plan.arrow")
    assert [pack.tolist() for pack in lw.read_plan(tmp_path / "plan.arrow")] == [pack.tolist() for pack in plan]
    with pytest.raises(LengthwiseError, match=r"limits\['images'\]\[0\] is '[0-9a-f]{32}', a fingerprint"):
        lw.read_plan(tmp_path / "plan.arrow", lengths)
    assert repr(pickle.loads(pickle.dumps(planner)).plan(0)) == repr(plan)  # noqa: S301


@pytest.mark.parametrize(
    ("layout", "options", "message"),
    [
        ({"limits": {"images": ([1, 2], 8)}}, {}, r"limits\['images'\]\[0\] has 2 counts, but there are 3 samples"),
        ({"limits": {"images": ([1, 9, 2], 8)}}, {}, r"limits\['images'\]\[0\]\[1\] is 9, but a pack holds 8"),
        ({"limits": {"images": ([1, -1, 2], 8)}}, {}, r"limits\['images'\]\[0\]\[1\] is -1"),
        ({"limits": {"images": ([1, 1, 2], 8)}}, {"overlong": "split"}, "overlong is 'split', but with limits"),
        ({"limits": {"images": ([1, 1, 2], 8)}}, {"overlong": "alone"}, "overlong is 'alone', but with limits"),
        ({"limits": {"images": ([1, 1, 2], 8)}, "method": "optimal"}, {}, "method is 'optimal', but several limits"),
        ({"groups": [1, 2]}, {}, "groups must be 3 integers or strings"),
        ({"groups": [1, 1, 2], "capacity": 5}, {}, "groups has label 1 on 2 samples of 9 tokens together"),
        ({"groups": [1, 1, 1], "capacity": 5}, {"overlong": "drop"}, "leaves nothing"),
        ({"groups": [1, 1, 2]}, {"world_size": 3}, "world_size is 3"),
    ],
)
def test_bad_input_is_named(layout: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(LengthwiseError, match=message):
        lw.Planner([5, 4, 3], lw.Packed(**({"capacity": 10} | layout)), **options).plan(0)


def test_malformed_limits_are_named() -> None:
    with pytest.raises(LengthwiseError, match=r"limits\['images'\] must be \(one count"):
        lw.Packed(8, limits={"images": [1, 2, 3]})  # type: ignore[dict-item]
