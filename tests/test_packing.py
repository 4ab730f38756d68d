"""`lw.pack`: exactly the textbook's packs, hard limits, certified bounds, and every sample accounted for."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise import LengthwiseError, Packs

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


TEXTBOOK = ("best_fit", "first_fit", "next_fit")
METHODS = (*TEXTBOOK, "optimal", "auto", "sum_of_squares")


def naive(lengths: list[int], capacity: int, method: str, max_samples: int | None = None) -> list[list[int]]:
    """The textbook, one sample at a time from the longest down."""
    packs: list[list[int]] = []
    for length in sorted(lengths, reverse=True):
        candidates = packs[-1:] if method == "next_fit" else packs
        fitting = [
            pack for pack in candidates if sum(pack) + length <= capacity and len(pack) < (max_samples or len(lengths))
        ]
        if not fitting:
            packs.append([length])
        elif method == "best_fit":
            max(fitting, key=sum).append(length)
        else:
            fitting[0].append(length)
    return packs


def expected(sample: int, lengths: npt.NDArray[np.int64], usable: int, overlong: str) -> list[tuple[int, int, int]]:
    """(sample, start, stop) of every piece of an over-long sample."""
    length = int(lengths[sample])
    if overlong == "split":
        return [(sample, start, min(start + usable, length)) for start in range(0, length, usable)]
    return [(sample, 0, usable)] if overlong == "truncate" else []


def check(
    packs: Packs,
    lengths: npt.ArrayLike,
    *,
    max_samples: int | None = None,
    multiple_of: int = 1,
    overlong: str = "error",
) -> None:
    """Every sample once, whole or in its pieces; no limit exceeded; the numbers true."""
    lengths = np.asarray(lengths, dtype=np.int64)
    usable = packs.capacity // multiple_of * multiple_of
    whole = np.stack([np.zeros_like(packs.indices), lengths[packs.indices]], axis=1).astype(np.int64)
    segments = whole if packs.segments is None else packs.segments.astype(np.int64)
    tokens = segments[:, 1] - segments[:, 0]
    assert packs.indices.dtype == np.uint32
    assert packs.offsets.dtype == np.int64
    assert packs.offsets[0] == 0
    assert packs.offsets[-1] == packs.indices.size
    assert np.all(packs.sizes > 0)
    assert packs.sizes.max(initial=0) <= (max_samples or lengths.size)
    aligned = -(-tokens // multiple_of) * multiple_of
    occupied = np.add.reduceat(aligned, packs.offsets[:-1]) if len(packs) else np.zeros(0)
    assert occupied.max(initial=0) <= packs.capacity
    assert packs.real_tokens == tokens.sum()
    assert packs.lower_bound <= len(packs)
    if len(packs):
        assert packs.efficiency == packs.real_tokens / (len(packs) * packs.capacity)
        assert packs.gap == len(packs) / packs.lower_bound - 1
    entries = np.column_stack([packs.indices, segments])
    pieces = [
        entry
        for sample in np.flatnonzero(lengths > usable).tolist()
        for entry in expected(sample, lengths, usable, overlong)
    ]
    short = np.flatnonzero(lengths <= usable)
    whole = np.column_stack([short, np.zeros_like(short), lengths[short]])
    wanted = np.concatenate([whole, np.array(pieces, np.int64).reshape(-1, 3)])
    ours, theirs = (rows[np.lexsort(rows.T[::-1])] for rows in (entries, wanted))
    assert np.array_equal(ours, theirs)
    assert packs.dropped.tolist() == (np.flatnonzero(lengths > usable).tolist() if overlong == "drop" else [])


@given(
    st.integers(1, 40).flatmap(lambda c: st.tuples(st.just(c), st.lists(st.integers(0, c), max_size=60))),
    st.sampled_from(TEXTBOOK),
    st.one_of(st.none(), st.integers(1, 5)),
)
def test_packs_are_the_textbooks(case: tuple[int, list[int]], method: Any, max_samples: int | None) -> None:
    capacity, lengths = case
    packs = lw.pack(lengths, capacity, method=method, max_samples=max_samples)
    check(packs, lengths, max_samples=max_samples)
    twin = naive(lengths, capacity, method, max_samples)
    ours = [[lengths[i] for i in pack] for pack in packs]
    if method == "best_fit":
        if max_samples is None:
            assert sorted(map(sum, ours)) == sorted(map(sum, twin))
        assert len(ours) <= len(twin)
    else:
        assert ours == twin


@given(
    st.lists(st.integers(0, 300), max_size=80),
    st.integers(1, 100),
    st.fixed_dictionaries(
        {
            "multiple_of": st.integers(1, 8),
            "max_samples": st.one_of(st.none(), st.integers(1, 5)),
            "overlong": st.sampled_from(["drop", "truncate", "split"]),
        }
    ),
    st.sampled_from(METHODS),
)
def test_every_option_keeps_every_promise(
    lengths: list[int], capacity: int, options: dict[str, Any], method: Any
) -> None:
    options = options | {"multiple_of": min(options["multiple_of"], capacity)}
    check(lw.pack(lengths, capacity, method=method, **options), lengths, **options)


def test_story(story: npt.NDArray[np.uint16]) -> None:
    packs = lw.pack(story, 8192)
    check(packs, story)
    assert len(packs) == 231_837
    assert packs.lower_bound >= 231_498
    assert len(lw.pack(story, 8192, method="first_fit")) == 231_837
    auto = lw.pack(story, 8192, method="auto")
    check(auto, story)
    assert auto.gap < 0.0005


@pytest.mark.parametrize(("max_samples", "over"), [(3, 0.002), (4, 0.04), (8, 0.03)])
def test_capped_packs_come_close_to_the_bound(story: npt.NDArray[np.uint16], max_samples: int, over: float) -> None:
    packs = lw.pack(story, 8192, max_samples=max_samples)
    check(packs, story, max_samples=max_samples)
    assert packs.gap <= over


def repeated(measured: Path, name: str) -> npt.NDArray[np.uint32]:
    """Every length of a measured histogram as often as it was counted."""
    table = np.loadtxt(measured / f"{name}.csv", delimiter=",", skiprows=1, dtype=np.uint32)
    return np.repeat(table[:, 0], table[:, 1])


def test_wikipedia(measured: Path) -> None:
    lengths = repeated(measured, "wikipedia_bert_512").astype(np.uint16)
    best = lw.pack(lengths, 512)
    assert 100 * best.efficiency >= 99.949
    optimal = lw.pack(lengths, 512, method="optimal")
    assert (len(optimal), optimal.lower_bound) == (8_135_728, 8_135_727)
    capped = lw.pack(lengths, 512, method="optimal", max_samples=3)
    assert 100 * capped.efficiency >= 99.88
    assert capped.sizes.max() == 3
    assert capped.gap < 1e-5
    fill = np.add.reduceat(lengths[capped.indices].astype(np.int64), capped.offsets[:-1])
    assert fill.max() <= 512
    assert np.array_equal(np.bincount(capped.indices, minlength=lengths.size), np.ones(lengths.size))


def test_squad(measured: Path) -> None:
    lengths = repeated(measured, "squad_1_1_384")
    packs = lw.pack(lengths, 384, method="optimal")
    check(packs, lengths)
    assert packs.lower_bound == 40_195
    assert len(packs) <= 40_196


@pytest.mark.parametrize(
    ("name", "capacity"),
    [
        ("gsm8k_train_cl100k", 512),
        ("gsm8k_train_cl100k", 2048),
        ("python311_stdlib_files_cl100k", 8192),
        ("python311_stdlib_files_cl100k", 32_768),
        ("python311_stdlib_files_cl100k", 262_144),
    ],
)
def test_auto_comes_within_a_thousandth_of_its_bound(measured: Path, name: str, capacity: int) -> None:
    lengths = repeated(measured, name)
    packs = lw.pack(lengths, capacity, method="auto", overlong="split")
    check(packs, lengths, overlong="split")
    assert len(packs) <= packs.lower_bound * 1.001 + 1


def test_no_small_samples(rng: np.random.Generator) -> None:
    lengths = rng.integers(129, 257, 200_000)
    packs = lw.pack(lengths, 512, method="auto")
    check(packs, lengths)
    assert packs.gap < 0.001
    assert len(lw.pack(lengths, 512)) > 1.06 * len(packs)


def test_time_limit_is_work_not_time(rng: np.random.Generator) -> None:
    lengths = rng.integers(40, 250, 50_000)
    best = lw.pack(lengths, 512)
    none, short, long = (lw.pack(lengths, 512, method="optimal", time_limit=limit) for limit in (0, 0.001, 10))
    assert len(best) >= len(none) >= len(short) >= len(long)
    assert none.lower_bound <= short.lower_bound <= long.lower_bound <= len(long)
    again = lw.pack(lengths, 512, method="optimal", time_limit=0.001)
    assert np.array_equal(short.indices, again.indices)


def test_seed_draws_other_samples_for_the_same_sizes(story: npt.NDArray[np.uint16]) -> None:
    part = story[:50_000]
    plain, first, again, second = (lw.pack(part, 8192, seed=seed) for seed in (None, 1, 1, 2))
    check(first, part)
    assert np.array_equal(first.indices, again.indices)
    for one, other in ((plain, first), (first, second)):
        assert np.array_equal(one.offsets, other.offsets)
        assert np.array_equal(part[one.indices], part[other.indices])
        assert np.mean(one.indices == other.indices) < 0.2


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(1, 40), st.one_of(st.none(), st.integers(0, 9)))
def test_concat_cuts_one_stream(lengths: list[int], capacity: int, seed: int | None) -> None:
    packs = lw.pack(lengths, capacity, method="concat", seed=seed)
    assert packs.segments is not None
    fills = [int(np.diff(packs.segments[a:b].astype(int)).sum()) for a, b in pairwise(packs.offsets)]
    assert all(fill == capacity for fill in fills[:-1])
    assert sum(fills) == sum(lengths) == packs.real_tokens
    assert len(packs) == packs.lower_bound or sum(lengths) == 0
    samples, firsts = np.unique(packs.indices, return_index=True)
    assert samples.tolist() == list(range(len(lengths)))
    assert packs.segments[firsts, 0].tolist() == [0] * len(lengths)
    stream = [
        (sample, *segment) for sample, segment in zip(packs.indices.tolist(), packs.segments.tolist(), strict=True)
    ]
    for (sample, _, stop), (other, start, _) in pairwise(stream):
        assert start == (stop if sample == other else 0)
    if seed is None:
        assert packs.indices.tolist() == sorted(packs.indices.tolist())


def test_sum_of_squares_varies_lengths_too(story: npt.NDArray[np.uint16]) -> None:
    part = story[:100_000]
    first, second = (lw.pack(part, 8192, method="sum_of_squares", seed=seed) for seed in (1, 2))
    for packs in (first, second):
        check(packs, part)
        assert packs.efficiency > 0.98
    assert not np.array_equal(part[first.indices], part[second.indices])


def test_golden_packs() -> None:
    """These bits are a promise: a change of them is a major version."""
    packs = lw.pack(np.repeat(np.arange(1, 7), 3), 20, seed=7)
    assert [pack.tolist() for pack in packs] == [[13, 12, 14, 11, 0], [9, 10, 8, 7, 6, 5, 1], [16, 15, 17, 4], [3, 2]]


def test_all_integer_types_pack_alike(story: npt.NDArray[np.uint16]) -> None:
    part = story[:10_000]
    first = lw.pack(part, 8192)
    for other in (part.astype(np.uint32), part.astype(np.int64), part.astype(np.int32), part.tolist(), part[::1]):
        again = lw.pack(other, 8192)
        assert np.array_equal(first.indices, again.indices)
        assert np.array_equal(first.offsets, again.offsets)


@pytest.mark.parametrize("method", METHODS)
def test_extremes(method: Any) -> None:
    many = 1_000_000
    ones = lw.pack(np.ones(many, np.uint16), 8192, method=method)
    assert (len(ones), ones.lower_bound) == (123, 123)
    full = lw.pack(np.full(many, 8192, np.uint16), 8192, method=method)
    assert (len(full), full.efficiency, full.gap) == (many, 1.0, 0.0)
    empty = lw.pack([], 8, method=method)
    assert (len(empty), empty.efficiency, empty.gap, empty.lower_bound, list(empty)) == (0, 1.0, 0.0, 0, [])
    zeros = lw.pack([0, 0, 0], 8, method=method)
    assert [pack.tolist() for pack in zeros] == [[0, 1, 2]]
    assert len(lw.pack([0, 0, 0, 8], 8, method=method, max_samples=2)) == 2
    huge = lw.pack([2**31 - 1, 1, 2**30, 2**30], 2**31 - 1, method=method)
    check(huge, [2**31 - 1, 1, 2**30, 2**30])
    one = lw.pack([1, 1], 1, method=method)
    assert len(one) == 2


def test_alignment_counts_for_every_sample() -> None:
    assert len(lw.pack([1] * 8, 8)) == 1
    assert len(lw.pack([1] * 8, 8, multiple_of=4)) == 4
    packs = lw.pack([9, 3], 10, multiple_of=4, overlong="split")
    check(packs, [9, 3], multiple_of=4, overlong="split")


def test_split_cuts_only_the_overlong() -> None:
    packs = lw.pack([20, 3, 5, 8], 8, overlong="split")
    assert packs.segments is not None
    entries = [
        list(zip(packs.indices[a:b].tolist(), packs.segments[a:b].tolist(), strict=True))
        for a, b in zip(packs.offsets, packs.offsets[1:], strict=False)
    ]
    assert entries == [[(2, [0, 5]), (1, [0, 3])], [(3, [0, 8])], [(0, [16, 20])], [(0, [0, 8])], [(0, [8, 16])]]
    assert lw.pack([8, 3], 8, overlong="split").segments is None


def test_packs_behave_like_a_sequence() -> None:
    packs = lw.pack([5, 4, 3, 2, 6], 8)
    assert len(packs) == 3
    assert packs[0].tolist() == packs[-3].tolist() == [4, 3]
    assert packs[int(np.int64(1))].base is not None
    with pytest.raises(IndexError, match="pack 3 of 3"):
        packs[3]
    with pytest.raises(LengthwiseError, match="must be an integer"):
        packs["a"]  # type: ignore[index]
    assert "3 packs of 8 tokens" in repr(packs)
    assert "<table>" in packs._repr_html_()


@pytest.mark.parametrize(
    ("lengths", "capacity", "options", "message"),
    [
        ([1], 0, {}, "capacity is 0, but must be from 1 to 2147483647; pass the tokens of one row"),
        ([1], -8, {}, "capacity is -8"),
        ([1], 2**31, {}, "capacity is 2147483648"),
        ([1], 8.0, {}, "capacity is 8.0, but must be an integer"),
        ([1], True, {}, "capacity is True"),
        ([1], 8, {"max_samples": 0}, "max_samples is 0, but must be from 1 to"),
        ([1], 8, {"multiple_of": 0}, "multiple_of is 0, but must be from 1 to 8"),
        ([1], 8, {"multiple_of": 9}, "multiple_of is 9, but must be from 1 to 8"),
        ([1], 8, {"method": "worst"}, "method is 'worst', but must be one of 'auto', 'best_fit'"),
        ([1], 8, {"overlong": "alone"}, "overlong is 'alone', but must be one of 'error', 'drop'"),
        ([1], 8, {"overlong": ["error"]}, r"overlong is \['error'\]"),
        ([1], 8, {"time_limit": -1}, "time_limit is -1, but must be seconds from 0 to"),
        ([1], 8, {"time_limit": float("nan")}, "time_limit is nan"),
        ([1], 8, {"method": "concat", "max_samples": 2}, 'method is "concat", which cuts one stream'),
        ([1], 8, {"method": "concat", "overlong": "drop"}, 'method is "concat", which cuts one stream'),
        ([1], 8, {"seed": -1}, "seed is -1"),
        ([1, 9000], 8192, {}, r"lengths\[1\] is 9000 tokens, but a pack holds capacity=8192; choose overlong=\"trunc"),
        ([1, 8], 8, {"multiple_of": 3}, r"lengths\[1\] is 8 tokens, but a pack holds 6 tokens \(capacity=8 round"),
        ([1, -2], 8, {}, r"lengths\[1\] is -2"),
        ([1.0, float("nan")], 8, {}, r"lengths\[1\] is nan"),
        (np.ones((2, 2), int), 8, {}, "one-dimensional"),
    ],
)  # fmt: skip
def test_bad_input_is_named(lengths: Any, capacity: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(LengthwiseError, match=message):
        lw.pack(lengths, capacity, **options)
