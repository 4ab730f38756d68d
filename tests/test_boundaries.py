"""Boundaries: the seed costs, every small case against brute force, and bad input."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise import Histogram, LengthwiseError


def padded(lengths: npt.ArrayLike, boundaries: npt.ArrayLike) -> int:
    """Tokens when every sample is padded to its bound: the definition, in numpy."""
    bounds = np.asarray(boundaries, np.int64)
    return int(bounds[np.searchsorted(bounds, np.asarray(lengths))].sum())


def brute_force(lengths: list[int], k: int, multiple_of: int = 1) -> int:
    """The least padded tokens over all k subsets of the occupied lengths, rounded up."""
    aligned = sorted({-(-length // multiple_of) * multiple_of for length in lengths if length})
    return min(padded(lengths, [*bounds, aligned[-1]]) for bounds in combinations(aligned[:-1], k - 1))


SMALL = st.lists(st.integers(0, 30), min_size=1, max_size=25).filter(any)


@pytest.mark.parametrize(("k", "padding"), [(6, 417_807_138), (8, 296_538_773), (16, 141_145_226), (32, 70_634_951)])
def test_story_costs(story: npt.NDArray[np.uint16], k: int, padding: int) -> None:
    solution = lw.solve_boundaries(story, k)
    assert solution.padding_tokens == padding
    assert solution.cost == solution.lower_bound == solution.padded_tokens == padded(story, solution.boundaries)
    assert solution.real_tokens == int(story.sum(dtype=np.int64))
    assert solution.counts.sum() == story.size
    assert solution.boundaries.dtype == np.uint32


def test_story_boundaries(story: npt.NDArray[np.uint16]) -> None:
    assert lw.optimal_boundaries(story, 6).tolist() == [1115, 1887, 2911, 4297, 4917, 8191]


@given(SMALL, st.integers(1, 4))
def test_every_k_is_optimal(lengths: list[int], multiple_of: int) -> None:
    distinct = len({-(-length // multiple_of) for length in lengths if length})
    for k in range(1, distinct + 1):
        solution = lw.solve_boundaries(lengths, k, multiple_of=multiple_of)
        assert solution.cost == solution.lower_bound == brute_force(lengths, k, multiple_of)
        assert padded(lengths, solution.boundaries) == solution.cost
        assert len(solution) == k
        assert not (solution.boundaries % multiple_of).any()


@given(SMALL)
def test_histogram_and_lengths_agree(lengths: list[int]) -> None:
    counted = Histogram.of(lengths)
    assert lw.optimal_boundaries(counted, 1).tolist() == lw.optimal_boundaries(lengths, 1).tolist() == [max(lengths)]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_any_integer_type(dtype: npt.DTypeLike) -> None:
    assert lw.optimal_boundaries(np.array([3, 3, 4, 9, 10, 17], dtype), 3).tolist() == [4, 10, 17]


def test_zero_lengths_fall_in_the_first_bucket() -> None:
    solution = lw.solve_boundaries([0, 0, 5, 5, 9], 2)
    assert (solution.boundaries.tolist(), solution.counts.tolist()) == ([5, 9], [4, 1])
    assert (solution.cost, solution.real_tokens) == (29, 19)


def test_lengths_to_the_limit() -> None:
    lengths = [1, 2**31 - 1, 2**31 - 2, 5]
    assert lw.optimal_boundaries(lengths, 2).tolist() == [5, 2**31 - 1]


def test_sums_beyond_64_bits() -> None:
    counted = Histogram(np.array([1, 2**30, 2**31 - 1]), np.array([2**40, 2**41, 2**40]))
    solution = lw.solve_boundaries(counted, 2)
    assert solution.boundaries.tolist() == [2**30, 2**31 - 1]
    assert solution.cost == solution.lower_bound == (2**40 + 2**41) * 2**30 + 2**40 * (2**31 - 1)
    assert solution.real_tokens == 2**40 + 2**71 + 2**40 * (2**31 - 1)


@pytest.mark.parametrize(
    ("lengths", "k", "options", "message"),
    [
        ([], 1, {}, "lengths is empty"),
        ([0, 0], 1, {}, "only zeros"),
        ([1, 2], 0, {}, "k is 0"),
        ([1, 2], -1, {}, "k is -1"),
        ([1, 2], 3, {}, "k is 3 boundaries, but lengths allow at most 2"),
        ([1, 2], 2, {"multiple_of": 8}, "at most 1"),
        ([1, 2], 1.0, {}, "k is 1.0"),
        ([1, 2], True, {}, "k is True"),
        ([1, 2], 1, {"multiple_of": 0}, "multiple_of is 0"),
        ([1, 2**31 - 1], 1, {"multiple_of": 8}, "multiple_of is 8"),
        ([1, -2], 1, {}, r"lengths\[1\] is -2"),
        ([1.5], 1, {}, "must be integers"),
        (np.array([1.0, np.nan]), 1, {}, "must be integers"),
        (np.array([[1]]), 1, {}, "one-dimensional"),
        ([2**31], 1, {}, "more than the largest length"),
    ],
)
def test_bad_input(lengths: Any, k: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(LengthwiseError, match=message):
        lw.optimal_boundaries(lengths, k, **options)
