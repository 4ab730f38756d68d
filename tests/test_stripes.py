"""Stripes for two lengths: the definition, the bound, and what they save."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise import LengthwiseError

PAIRS = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=200)


def speech(n: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Durations and token counts that go with them roughly."""
    random = np.random.default_rng(5)
    frames = np.clip(random.gamma(6, 250, n), 50, 4000).astype(np.int64)
    tokens = np.clip(frames * 0.1 * random.lognormal(0, 0.5, n), 1, 1000).astype(np.int64)
    return frames, tokens


@given(PAIRS | st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=12), st.integers(1, 12))
@settings(deadline=None, max_examples=300)
def test_samples_fit_their_cells(pairs: list[tuple[int, int]], k: int) -> None:
    first, second = np.array(pairs).T
    k = min(k, len(set(pairs)))
    stripes = lw.optimal_stripes(first, second, k)
    shapes = stripes.shapes.astype(np.int64)
    cells = stripes.cell_of(first, second)
    assert len(stripes) == k
    assert np.all(shapes[cells] >= np.stack([first, second], axis=1))
    assert stripes.counts.tolist() == np.bincount(cells, minlength=k).tolist()
    assert stripes.cost == shapes[cells].sum()
    assert stripes.lower_bound <= stripes.cost
    assert stripes.padding == pytest.approx(stripes.cost / (first + second).sum() - 1)


def test_one_length_is_the_one_dimensional_optimum() -> None:
    lengths = np.random.default_rng(0).integers(1, 100, 5000)
    one = np.ones_like(lengths)
    best = lw.solve_boundaries(lengths, 9)
    for pair in ((lengths, one), (one, lengths)):
        assert lw.optimal_stripes(*pair, 9).cost == best.cost + 5000


def test_better_than_equal_counts() -> None:
    frames, tokens = speech(50_000)
    stripes = lw.optimal_stripes(frames, tokens, 32)
    rows = np.quantile(frames, np.arange(1, 9) / 8, method="higher")
    row = np.searchsorted(rows, frames)
    equal = 0
    for stripe in range(8):
        held = tokens[row == stripe]
        columns = np.quantile(held, np.arange(1, 5) / 4, method="higher")
        equal += int((rows[stripe] + columns[np.searchsorted(columns, held)]).sum())
    assert stripes.cost < 0.96 * equal
    assert stripes.cost <= 1.01 * stripes.lower_bound
    assert "32 cells in" in repr(stripes)
    assert stripes._repr_html_().count("<tr>") == 33


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=15),
    st.tuples(st.integers(0, 5), st.integers(0, 5)),
    st.integers(1, 15),
)
@settings(deadline=None, max_examples=300)
def test_as_many_cells_as_there_are_shapes(pairs: list[tuple[int, int]], weights: tuple[int, int], k: int) -> None:
    """Few samples far apart leave no charge that leads to k, and a cost that does not grow leaves nothing to gain."""
    first, second = np.array(pairs).T
    k = min(k, len(set(pairs)))
    stripes = lw.optimal_stripes(first, second, k, cost=lambda x, y: weights[0] * x + weights[1] * y)
    assert len(stripes) == k
    assert stripes.counts.sum() == len(pairs)
    assert stripes.lower_bound <= stripes.cost
    assert stripes.cost == (stripes.shapes[stripes.cell_of(first, second)] * np.array(weights)).sum()


def test_any_cost() -> None:
    frames, tokens = speech(2000)
    stripes = lw.optimal_stripes(frames, tokens, 6, cost=lambda x, y: 0.5 * x + y * y / 64, grid=32)
    x, y = stripes.shapes[stripes.cell_of(frames, tokens)].astype(np.float64).T
    assert stripes.cost == pytest.approx((0.5 * x + y * y / 64).sum(), rel=1e-9)


def test_zero_lengths_are_padded_to_the_first_cells() -> None:
    stripes = lw.optimal_stripes([0, 5, 9], [3, 0, 4], 2)
    assert stripes.counts.sum() == 3


@pytest.mark.parametrize(
    ("first", "second", "k", "options", "message"),
    [
        ([1, 2], [1], 1, {}, "first has 2 samples, but second has 1"),
        ([], [], 1, {}, "is empty"),
        ([1], [0], 1, {}, "only zeros"),
        ([1, 2], [1, 2], 3, {}, "k is 3 cells, but the samples lie in 2"),
        ([1, 2], [1, 2], 0, {}, "k is 0"),
        ([1, 2], [1, 2], 1, {"grid": 0}, "grid is 0"),
        ([1, -2], [1, 2], 1, {}, r"first\[1\] is -2"),
        ([1, 2], [1, 2], 1, {"cost": lambda x, y: x - y + 10}, "falls with a length"),
        ([1, 2], [1, 2], 1, {"cost": lambda x, y: -x - y}, "below 0"),
        ([1, 2], [1, 2], 1, {"cost": lambda x, _: x}, "must give each pair a number"),
    ],
)
def test_bad_input(first: Any, second: Any, k: int, options: dict[str, Any], message: str) -> None:
    with pytest.raises(LengthwiseError, match=message):
        lw.optimal_stripes(first, second, k, **options)


def test_samples_outside_are_named() -> None:
    stripes = lw.optimal_stripes([10, 11, 10, 11, 30, 31], [5, 5, 40, 40, 6, 50], 4)
    for pair in ((32, 5), (31, 51), (10, 41), (30, 20)):
        with pytest.raises(LengthwiseError, match=f"sample 1 is {pair[0]} by {pair[1]}"):
            stripes.cell_of([10, pair[0]], [5, pair[1]])
