"""`StreamPacker`: bounded memory, hard limits, a golden stream, and resume that changes nothing."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise import LengthwiseError

OPTIONS = st.fixed_dictionaries(
    {
        "open_bins": st.integers(1, 9),
        "max_samples": st.one_of(st.none(), st.integers(1, 4)),
        "multiple_of": st.integers(1, 4),
    }
)


def drain(packer: lw.StreamPacker, lengths: list[int]) -> list[list[int]]:
    packs = [pack.tolist() for length in lengths for pack in packer.add(length)]
    return packs + [pack.tolist() for pack in packer.finish()]


@given(st.lists(st.integers(0, 36), max_size=150), OPTIONS)
def test_every_sample_once_within_the_limits(lengths: list[int], options: dict[str, Any]) -> None:
    packer = lw.StreamPacker(36, **options)
    packs = []
    for length in lengths:
        packs += packer.add(length)
        assert len(packer) <= options["open_bins"]
    packs += list(packer.finish())
    assert len(packer) == 0
    step = options["multiple_of"]
    for pack in packs:
        assert 0 < len(pack) <= (options["max_samples"] or len(lengths))
        assert sum(-(-lengths[i] // step) * step for i in pack.tolist()) <= 36
    assert sorted(i for pack in packs for i in pack.tolist()) == list(range(len(lengths)))


@given(st.lists(st.integers(0, 36), max_size=100), st.integers(0, 100), OPTIONS)
def test_resuming_equals_no_interruption(lengths: list[int], stop: int, options: dict[str, Any]) -> None:
    whole = drain(lw.StreamPacker(36, **options), lengths)
    first, second = lw.StreamPacker(36, **options), lw.StreamPacker(36, **options)
    packs = [pack.tolist() for pack in first.extend(lengths[:stop])]
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert packs + drain(second, lengths[stop:]) == whole


def test_story_is_nearly_full(story: npt.NDArray[np.uint16]) -> None:
    packer = lw.StreamPacker(8192)
    closed, rest = packer.extend(story), packer.finish()
    samples = np.concatenate([closed.samples, rest.samples])
    assert np.array_equal(np.sort(samples), np.arange(story.size, dtype=np.uint64))
    fill = np.add.reduceat(story[closed.samples].astype(np.int64), closed.offsets[:-1])
    assert fill.max() <= 8192
    packs = len(closed) + len(rest)
    assert story.sum(dtype=np.int64) / (packs * 8192) > 0.985
    assert len(rest) <= 64


def test_golden_stream() -> None:
    """These packs are a promise: a change of them is a major version."""
    packer = lw.StreamPacker(20, open_bins=3)
    assert drain(packer, [7, 3, 9, 12, 5, 1, 18, 6, 2, 11, 4, 8]) == [[0, 1, 2, 5], [6, 8], [3, 4], [9, 10], [7, 11]]


def test_more_may_follow_a_finish() -> None:
    packer = lw.StreamPacker(10)
    assert drain(packer, [4]) == [[0]]
    assert drain(packer, [4, 6]) == [[1, 2]]


def test_nothing_changes_where_a_sample_is_too_long() -> None:
    packer = lw.StreamPacker(10, multiple_of=4)
    packer.add(4)
    before = packer.state_dict()
    with pytest.raises(LengthwiseError, match=r"lengths\[1\] is 9 tokens, but a pack holds 8 \(capacity=10"):
        packer.extend([4, 9])
    assert packer.state_dict() == before


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0,), {}, "capacity is 0"),
        ((8, 0), {}, "open_bins is 0, but must be from 1 to 16384"),
        ((8, 2.5), {}, "open_bins is 2.5, but must be an integer"),
        ((8,), {"max_samples": 0}, "max_samples is 0"),
        ((8,), {"multiple_of": 9}, "multiple_of is 9"),
    ],
)
def test_bad_options_are_named(arguments: tuple[Any, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(LengthwiseError, match=message):
        lw.StreamPacker(*arguments, **options)


def test_bad_lengths_are_named() -> None:
    packer = lw.StreamPacker(8)
    for bad, message in ((-1, "length is -1"), (1.5, "length is 1.5"), (9, r"lengths\[0\] is 9")):
        with pytest.raises(LengthwiseError, match=message):
            packer.add(bad)  # type: ignore[arg-type]


def test_damaged_states_are_refused() -> None:
    packer = lw.StreamPacker(8)
    packer.extend([3, 4, 2])
    state = packer.state_dict()
    for change, message in (
        ({"version": 0}, "version 0"),
        ({"options": {}}, "of options"),
        ({"fills": [9] * len(state["fills"])}, "state is not that"),
        ({"fills": []}, "do not match"),
        ({"samples": 0}, "state is not that"),
        ({"open": None}, "damaged"),
    ):
        with pytest.raises(LengthwiseError, match=message):
            lw.StreamPacker(8).load_state_dict(state | change)
    with pytest.raises(LengthwiseError, match="of options"):
        lw.StreamPacker(16).load_state_dict(state)


def test_closed_packs_are_a_sequence() -> None:
    closed = lw.StreamPacker(4).extend([4, 4, 4])
    assert [pack.tolist() for pack in closed] == [[0], [1], [2]]
    assert closed[-1].tolist() == [2]
    assert repr(closed) == "ClosedPacks(3 packs of 3 samples)"
    with pytest.raises(IndexError):
        closed[3]
