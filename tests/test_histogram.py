"""Counts by length: against a Counter, and merged in any order."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lengthwise as lw

some_lengths = st.lists(st.one_of(st.integers(0, 40), st.integers(0, 2**31 - 1)), max_size=60)


@given(some_lengths)
def test_counts_like_a_counter(lengths: list[int]) -> None:
    histogram = lw.Histogram.of(lengths)
    assert dict(zip(histogram.lengths.tolist(), histogram.counts.tolist(), strict=True)) == Counter(lengths)
    assert histogram.lengths.dtype == np.uint32
    assert histogram.counts.dtype == np.uint64
    assert (histogram.samples, histogram.tokens) == (len(lengths), sum(lengths))
    assert histogram.expand().tolist() == sorted(lengths)


@given(st.lists(some_lengths, max_size=5), st.randoms())
def test_shards_add_up_in_any_order(shards: list[list[int]], random: object) -> None:
    whole = lw.Histogram.of([length for shard in shards for length in shard])
    random.shuffle(shards)  # type: ignore[attr-defined]
    assert sum((lw.Histogram.of(shard) for shard in shards), lw.Histogram.of([])) == whole


@given(some_lengths.filter(len), st.floats(0, 100))
def test_percentiles_are_those_of_the_sorted_lengths(lengths: list[int], percent: float) -> None:
    assert lw.Histogram.of(lengths).percentile(percent) == sorted(lengths)[int(percent / 100 * (len(lengths) - 1))]


def test_story(story: npt.NDArray[np.uint16]) -> None:
    description = lw.Histogram.of(story).describe()
    assert description.percentiles == {
        0: 65, 10: 637, 25: 1035, 50: 1727, 75: 2912, 90: 4200, 95: 4374, 99: 4917, 100: 8191,
    }  # fmt: skip
    assert [count for _, _, count in description.ranges] == [1_140, 47_379, 172_819, 303_816, 255_713, 121_220]
    assert description.ranges[-1][:2] == (4096, 8192)


def test_edges() -> None:
    histogram = lw.Histogram.of([1, 5, 9, 9])
    assert histogram.describe([0, 5, 10]).ranges == ((0, 5, 1), (5, 10, 3))
    assert histogram.describe(np.array([5])).ranges == ()
    for edges, message in (([5, 3], "edges must ascend"), ([0.5, 1], "edges must be integers"), ([-1, 3], "edges")):
        with pytest.raises(lw.LengthwiseError, match=message):
            histogram.describe(edges)


def test_empty() -> None:
    empty = lw.Histogram.of([])
    assert (empty.samples, empty.tokens, len(empty)) == (0, 0, 0)
    assert empty.describe().ranges == ()
    assert "0 samples" in str(empty.describe())
    with pytest.raises(lw.LengthwiseError, match="no percentiles"):
        empty.percentile(50)


def test_sums_past_64_bits_do_not_wrap() -> None:
    histogram = lw.Histogram(np.array([1, 2**31 - 1]), np.array([1, 2**61]))
    assert (histogram.samples, histogram.tokens) == (1 + 2**61, 1 + 2**61 * (2**31 - 1))
    with pytest.raises(lw.LengthwiseError, match=r"2\^62 samples"):
        _ = histogram + histogram
    assert lw.solve_boundaries(histogram, 2).real_tokens == histogram.tokens


@pytest.mark.parametrize(
    ("lengths", "counts", "message"),
    [
        ([3, 3], [1, 1], "ascend"),
        ([1, 2], [1], "counts"),
        ([1], [0], r"counts\[0\] must be at least 1"),
        ([1], [0.5], "integers"),
        ([-1], [1], "negative"),
        ([1, 2], [2**61, 2**61], "more than the limit of 2\\^62 samples"),
    ],
)
def test_bad_input(lengths: list[int], counts: list[float], message: str) -> None:
    with pytest.raises(lw.LengthwiseError, match=message):
        lw.Histogram(np.array(lengths), np.array(counts))
