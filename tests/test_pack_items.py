"""`lw.pack` with several limits at once, and with samples that stay together."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise import LengthwiseError

SAMPLES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6), st.integers(0, 9)), max_size=80)


@given(SAMPLES, st.one_of(st.none(), st.integers(1, 6)), st.integers(1, 4), st.sampled_from(["drop", "truncate"]))
def test_all_limits_hold(
    samples: list[tuple[int, int, int]], max_samples: int | None, multiple_of: int, overlong: Any
) -> None:
    lengths, images = (np.array([sample[i] for sample in samples], np.int64) for i in (0, 1))
    packs = lw.pack(
        lengths,
        36,
        max_samples=max_samples,
        multiple_of=multiple_of,
        overlong=overlong,
        limits={"images": (images, 8), "attention": (lengths**2, 1600)},
    )
    kept = np.minimum(lengths, 36)
    for pack in packs:
        assert 0 < pack.size <= (max_samples or lengths.size)
        assert (-(-kept[pack] // multiple_of) * multiple_of).sum() <= 36
        assert images[pack].sum() <= 8
        assert (lengths[pack] ** 2).sum() <= 1600
    dropped = np.flatnonzero(lengths > 36) if overlong == "drop" else np.empty(0)
    assert packs.dropped.tolist() == dropped.tolist()
    assert sorted([*packs.indices.tolist(), *packs.dropped.tolist()]) == list(range(lengths.size))
    assert packs.lower_bound <= len(packs)
    assert packs.real_tokens == kept[packs.indices].sum()


@given(SAMPLES, st.one_of(st.none(), st.integers(10, 20)), st.sampled_from(["best_fit", "auto"]))
def test_groups_stay_together(samples: list[tuple[int, int, int]], max_samples: int | None, method: Any) -> None:
    lengths = [sample[0] for sample in samples]
    groups = np.array([f"g{sample[2]}" for sample in samples], "U2")
    lengths = [length // max(len(samples) // 8, 1) for length in lengths]
    cap = None if max_samples is None else max(max_samples, len(samples))
    packs = lw.pack(lengths, 60, groups=groups, overlong="drop", method=method, max_samples=cap)
    home: dict[str, int] = {}
    for number, pack in enumerate(packs):
        labels = groups[pack].tolist()
        changes = sum(a != b for a, b in pairwise(labels))
        assert changes == len(set(labels)) - 1
        for label in labels:
            assert home.setdefault(label, number) == number
        assert sum(lengths[i] for i in pack) <= 60
    assert sorted([*packs.indices.tolist(), *packs.dropped.tolist()]) == list(range(len(lengths)))
    for sample in packs.dropped.tolist():
        assert sum(lengths[i] for i in np.flatnonzero(groups == groups[sample])) > 60


def test_limits_come_close_to_the_bound(story: npt.NDArray[np.uint16]) -> None:
    part = story[::10]
    images = np.random.default_rng(0).integers(0, 5, part.size)
    packs = lw.pack(part, 8192, limits={"images": (images, 12)})
    again = lw.pack(part, 8192, limits={"images": (images, 12)}, seed=1)
    assert max(packs.gap, again.gap) < 0.005
    assert not np.array_equal(packs.indices, again.indices)


def test_pairs() -> None:
    packs = lw.pack([5, 4, 3, 2, 6, 1], 11, groups=[0, 0, 1, 1, 2, 2])
    assert [pack.tolist() for pack in packs] == [[0, 1], [4, 5], [2, 3]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limits": {"images": ([1, 2], 8)}}, r"limits\['images'\]\[0\] has 2 counts, but there are 3 samples"),
        ({"limits": {"images": ([1, 2, 9], 8)}}, r"limits\['images'\]\[0\]\[2\] is 9, but a pack holds 8"),
        ({"limits": {"images": [1, 2, 3]}}, r"limits\['images'\] must be"),
        ({"limits": {"images": ([1, 2, 3], 0)}}, r"limits\['images'\]\[1\] is 0"),
        ({"limits": {"images": ([1, -2, 3], 8)}}, r"limits\['images'\]\[0\]\[1\] is -2"),
        ({"limits": {"images": ([1, 2, 3], 8)}, "method": "optimal"}, "method is 'optimal', but several limits"),
        ({"limits": {"images": ([1, 2, 3], 8)}, "overlong": "split"}, "overlong is 'split', but with limits or groups"),
        ({"groups": [0, 1]}, "groups must be 3 integers or strings, one for each sample"),
        ({"groups": [0.5, 1, 2]}, "groups must be 3 integers or strings"),
        ({"groups": [7, 7, 7]}, "groups has label 7 on 3 samples of 12 tokens together, but a pack holds 10"),
        ({"groups": [7, 7, 8], "max_samples": 1}, "groups has label 7 with 2 of max_samples together"),
        ({"groups": [1, 2, 3], "overlong": "truncate"}, "overlong is 'truncate', but with limits or groups"),
        ({"groups": [1, 2, 3], "capacity": 4}, "groups has label 2 on 1 samples of 5 tokens"),
        ({"limits": {"a": ([1, 2, 3], 8)}, "capacity": 4}, r"lengths\[1\] is 5 tokens, but a pack holds 4"),
    ],
)
def test_bad_input_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(LengthwiseError, match=message):
        lw.pack([3, 5, 4], **({"capacity": 10} | options))
