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


#: Up to 25 samples of at most 7 lengths, so that brute force stays brief.
SMALL = (
    st.lists(st.integers(0, 30), min_size=1, max_size=7)
    .flatmap(lambda values: st.lists(st.sampled_from(values), min_size=1, max_size=25))
    .filter(any)
)


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


def batches(lengths: npt.ArrayLike, boundaries: npt.ArrayLike, max_tokens: int) -> int:
    """Batches when every batch is padded to its bound: the definition, in numpy."""
    bounds = np.asarray(boundaries, np.int64)
    held = np.bincount(np.searchsorted(bounds, np.asarray(lengths)), minlength=len(bounds))
    return int(-(-held // np.maximum(max_tokens // bounds, 1)).sum())


@pytest.mark.parametrize(("k", "ratio"), [(4, 1.290), (6, 1.195), (8, 1.144), (16, 1.068), (32, 1.035)])
def test_longest_predicts_a_real_plan(story: npt.NDArray[np.uint16], k: int, ratio: float) -> None:
    solution = lw.solve_boundaries(story, k, objective="longest", max_tokens=65_536)
    planner = lw.Planner(story, lw.Padded(65_536, boundaries=solution.boundaries), seed=1)
    plan = planner.plan(0)
    tokens = int(np.multiply(plan.sizes, plan.padded_lengths, dtype=np.int64).sum())
    assert tokens / solution.real_tokens < ratio
    assert solution.padded_tokens == solution.cost == pytest.approx(tokens, rel=0.002)
    assert solution.lower_bound is None


def test_longest_pays_less_than_boundary_in_a_real_plan(story: npt.NDArray[np.uint16]) -> None:
    def ratio(boundaries: npt.NDArray[np.uint32]) -> float:
        plan = lw.Planner(story, lw.Padded(65_536, boundaries=boundaries), seed=0).plan(0)
        return int(np.multiply(plan.sizes, plan.padded_lengths, dtype=np.int64).sum()) / int(story.sum(dtype=np.int64))

    longest = lw.optimal_boundaries(story, 6, objective="longest", max_tokens=65_536)
    assert ratio(longest) < 1.1951
    assert ratio(lw.optimal_boundaries(story, 6)) > 1.203


@pytest.mark.parametrize("multiple_of", [1, 8])
def test_longest_heeds_every_limit(story: npt.NDArray[np.uint16], multiple_of: int) -> None:
    options: dict[str, Any] = {"max_samples": 24, "multiple_of": multiple_of}
    solution = lw.solve_boundaries(story, 6, objective="longest", max_tokens=65_536, **options)
    plan = lw.Planner(story, lw.Padded(65_536, boundaries=solution.boundaries, **options)).plan(0)
    tokens = int(np.multiply(plan.sizes, plan.padded_lengths, dtype=np.int64).sum())
    assert solution.cost == pytest.approx(tokens, rel=0.003)


@pytest.mark.parametrize("k", [1, 6, 16])
def test_steps_are_counted_and_nearly_proven(story: npt.NDArray[np.uint16], k: int) -> None:
    solution = lw.solve_boundaries(story, k, objective="steps", max_tokens=65_536)
    assert solution.cost == batches(story, solution.boundaries, 65_536)
    assert solution.lower_bound is not None
    assert solution.cost - k < solution.lower_bound <= solution.cost
    assert solution.cost <= batches(story, lw.optimal_boundaries(story, k), 65_536)


def test_steps_are_nearly_proven_for_any_number_of_samples() -> None:
    counted = Histogram(np.arange(3, 60, 7, dtype=np.uint32), np.full(9, 2**40 + 12_345, np.uint64))
    solution = lw.solve_boundaries(counted, 4, objective="steps", max_tokens=1000)
    assert solution.lower_bound is not None
    assert solution.cost - 4 < solution.lower_bound <= solution.cost


@given(SMALL, st.integers(5, 80))
def test_steps_are_fewest(lengths: list[int], max_tokens: int) -> None:
    distinct = sorted({length for length in lengths if length})
    for k in range(1, len(distinct) + 1):
        solution = lw.solve_boundaries(lengths, k, objective="steps", max_tokens=max_tokens)
        choices = ([*bounds, distinct[-1]] for bounds in combinations(distinct[:-1], k - 1))
        assert solution.cost == min(batches(lengths, bounds, max_tokens) for bounds in choices)


@given(SMALL, st.sampled_from([lambda x: 3 * x + x * x, lambda x: x**1.5, lambda x: np.maximum(x, 9) / 7]))
def test_any_cost_of_one_sample(lengths: list[int], cost: Any) -> None:
    distinct = sorted({length for length in lengths if length})
    table = cost(np.arange(31))
    for k in range(1, len(distinct) + 1):
        solution = lw.solve_boundaries(lengths, k, objective=cost)
        least = min(
            float(cost(np.array([*bounds, distinct[-1]]))[np.searchsorted([*bounds, distinct[-1]], lengths)].sum())
            for bounds in combinations(distinct[:-1], k - 1)
        )
        assert solution.cost == pytest.approx(least, rel=1e-9)
        assert solution.cost == solution.lower_bound
        assert solution.boundaries.tolist() == lw.optimal_boundaries(lengths, k, objective=table).tolist()


def test_integer_costs_stay_exact() -> None:
    solution = lw.solve_boundaries([1, 2, 3], 2, objective=[0, 2**61, 2**61 + 1, 2**61 + 2])
    assert solution.cost == 2**61 + 2 * (2**61 + 2)


def test_attention_cost(story: npt.NDArray[np.uint16]) -> None:
    cost = np.polynomial.Polynomial([1000, 1, 1 / 4096])
    solution = lw.solve_boundaries(story, 8, objective=cost)
    padded_to = solution.boundaries[np.searchsorted(solution.boundaries, story)]
    assert solution.cost == pytest.approx(cost(padded_to.astype(np.float64)).sum(), rel=1e-9)
    assert solution.cost == solution.lower_bound
    assert "objective cost" in repr(solution)


def test_constraints_hold(story: npt.NDArray[np.uint16]) -> None:
    solution = lw.solve_boundaries(story, 9, multiple_of=64, min_count=7000, max_ratio=1.6, include=[8192, 2048, 2048])
    bounds = solution.boundaries.astype(np.int64)
    assert {2048, 8192} <= set(bounds.tolist())
    assert not (bounds % 64).any()
    assert (bounds[1:] / bounds[:-1]).max() <= 1.6
    assert solution.counts.min() >= 7000
    assert solution.cost == solution.lower_bound == padded(story, bounds)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_count": 200_000}, "min_count is 200000 .* at most 4 boundaries, not k=6; with 6 it can be at most 150"),
        ({"min_count": 10**9}, "there are only 902087"),
        ({"include": range(100, 800, 100)}, "include holds 7 bounds .* at least 8 boundaries, but k is 6"),
        ({"max_ratio": 1.0001}, "max_ratio is 1.0001, but no length lies between"),
        ({"min_count": 30_000, "max_ratio": 1.01}, "min_count=30000 and max_ratio=1.01 together allow only 1 to"),
        (
            {"min_count": 20_000, "max_ratio": 1.6, "include": [2048]},
            "min_count is 20000, but beside max_ratio=1.6 and",
        ),
        ({"max_ratio": 0.5}, "max_ratio is 0.5, but must be above 1"),
        ({"max_ratio": "big"}, "max_ratio is 'big'"),
        ({"min_count": -1}, "min_count is -1"),
        ({"include": [0]}, r"include\[0\] is 0"),
        ({"include": [512.0]}, r"include\[0\] is 512.0"),
        ({"include": 512}, "include is 512, but must be a sequence"),
        ({"include": [12], "multiple_of": 8}, "use 16"),
        ({"objective": "least"}, "objective is 'least'"),
        ({"objective": "longest"}, "needs max_tokens"),
        ({"objective": "steps", "max_tokens": 0}, "max_tokens is 0"),
        ({"objective": "steps", "max_tokens": 8, "max_samples": 0}, "max_samples is 0"),
        ({"objective": "steps", "max_tokens": 8, "samples_multiple_of": 0}, "samples_multiple_of is 0"),
        ({"max_tokens": 65_536}, "max_tokens is about batches"),
        ({"samples_multiple_of": 8}, "samples_multiple_of is about batches"),
        ({"objective": lambda x: -x}, "objective gave -65 for length 65"),
        ({"objective": lambda x: 10_000 - x}, "must not fall"),
        ({"objective": lambda x: x + np.nan}, "objective gave nan"),
        ({"objective": lambda _: 1.0}, "must give each a number"),
        ({"objective": lambda x: x.astype(str)}, "must give each a number"),
        ({"objective": [1, 2, 3]}, "a table needs a cost for every length from 0 to 8191"),
    ],
)
def test_bad_options(story: npt.NDArray[np.uint16], options: dict[str, Any], message: str) -> None:
    with pytest.raises(LengthwiseError, match=message):
        lw.solve_boundaries(story, 6, **options)


@pytest.mark.parametrize(
    ("k", "constraints"),
    [
        (60, {"max_ratio": 1.1}),
        (8, {"min_count": 112_000}),
        (17, {"min_count": 50_000}),
        (12, {"min_count": 15_000, "max_ratio": 1.7, "include": np.array([2047])}),
    ],
)
def test_what_one_objective_allows_all_do(story: npt.NDArray[np.uint16], k: int, constraints: dict[str, Any]) -> None:
    """The objectives about batches are solved on a grid of some lengths, which must not stand in the way."""
    counted = Histogram.of(story)
    for objective in ("boundary", "steps", "longest"):
        options: dict[str, Any] = {} if objective == "boundary" else {"max_tokens": 65_536}
        solution = lw.solve_boundaries(counted, k, objective=objective, **constraints, **options)
        bounds = solution.boundaries.astype(np.int64)
        assert len(bounds) == k
        assert solution.counts.min() >= constraints.get("min_count", 0)
        assert (bounds[1:] / bounds[:-1]).max() <= constraints.get("max_ratio", np.inf)
        assert set(constraints.get("include", ())) <= set(bounds.tolist())
        if objective == "steps":
            assert solution.lower_bound is not None
            assert solution.cost <= solution.lower_bound + k


@given(SMALL, st.integers(0, 60))
def test_auto_is_worth_its_overhead(lengths: list[int], overhead: int) -> None:
    auto = lw.solve_boundaries(lengths, lw.Auto(overhead))
    every = [
        lw.solve_boundaries(lengths, k).cost + overhead * k
        for k in range(1, len({length for length in lengths if length}) + 1)
    ]
    assert auto.cost + overhead * len(auto) == min(every)


def test_auto_by_default(story: npt.NDArray[np.uint16]) -> None:
    auto = lw.solve_boundaries(story, "auto")
    saved = [lw.solve_boundaries(story, len(auto) + more).cost for more in (-1, 0, 1)]
    worth = auto.real_tokens / 200
    assert saved[0] - saved[1] > worth >= saved[1] - saved[2]
    assert lw.optimal_boundaries(story, lw.Auto()).tolist() == auto.boundaries.tolist()
    for objective in ("longest", "steps"):
        assert 10 < len(lw.optimal_boundaries(story, "auto", objective=objective, max_tokens=65_536)) < 20
    assert len(lw.optimal_boundaries(story, lw.Auto(0.5), objective=lambda x: x / 2**20)) > 20


@pytest.mark.parametrize("overhead", [-1, float("nan"), float("inf"), "5", [5]])
def test_bad_overheads(overhead: Any) -> None:
    with pytest.raises(LengthwiseError, match="overhead is"):
        lw.Auto(overhead)


def test_html(story: npt.NDArray[np.uint16]) -> None:
    html = lw.solve_boundaries(story, 6)._repr_html_()
    assert "<td>1,115</td>" in html
    assert "padding 22.03%" in html


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
        ([1, 2], "many", {}, "k is 'many'"),
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
