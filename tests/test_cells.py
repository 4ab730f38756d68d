"""Cells chosen for two lengths: never worse than the starts, all samples held, nothing beyond the limit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise import _core
from lengthwise.cells import choose_cells

Pairs = npt.NDArray[np.int64]


def speech(n: int) -> Pairs:
    """Frames of ten milliseconds, and the tokens that are spoken in them."""
    random = np.random.default_rng(5)
    frames = np.clip(random.gamma(6, 250, n), 50, 4000)
    return np.stack([frames, np.clip(frames * 0.03 * random.lognormal(0, 0.4, n), 1, 400)], axis=1).astype(np.int64)


def translation(n: int) -> Pairs:
    """A sentence in two languages."""
    random = np.random.default_rng(5)
    source = np.clip(random.lognormal(3.3, 0.7, n), 1, 500)
    return np.stack([source, np.clip(source * random.lognormal(0, 0.25, n) + 1, 1, 500)], axis=1).astype(np.int64)


def price(pairs: Pairs, cells: npt.ArrayLike, weights: tuple[int, int]) -> tuple[int, int]:
    """How many samples no cell holds, and what all others cost in their cheapest cells."""
    shapes = np.asarray(cells, np.int64)
    holds = (pairs[:, None, :] <= shapes[None, :, :]).all(axis=2)
    least = np.where(holds, shapes @ np.array(weights), 2**62).min(axis=1, initial=2**62)
    return int((least == 2**62).sum()), int(least[least < 2**62].sum())


@settings(max_examples=200, deadline=None)
@given(
    pairs=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=60),
    weights=st.sampled_from([(1, 1), (1, 8), (3, 1)]),
    k=st.integers(1, 8),
    limit=st.none() | st.integers(60, 200),
)
def test_all_are_held_for_no_more_than_stripes_cost(
    pairs: list[tuple[int, int]], weights: tuple[int, int], k: int, limit: int | None
) -> None:
    array = np.array(pairs, np.int64)
    cells, unheld = choose_cells(
        lambda: np.array_split(array, 2 if len(array) > 1 else 1), k, weights=weights, limit=limit
    )
    found = price(array, cells, weights)
    assert found[0] == unheld
    assert min(1, len(pairs) - unheld) <= len(cells) <= k
    tokens = cells.astype(np.int64) @ np.array(weights)
    if limit is None:
        assert unheld == 0
        first, second = array.T
        most = min(k, len(set(pairs)))
        stripes = lw.optimal_stripes(first, second, most, cost=lambda x, y: weights[0] * x + weights[1] * y)
        assert found <= price(array, stripes.shapes, weights)
    elif unheld == 0:
        assert tokens.max() <= limit
    # Nothing is left to be left out.
    for cell in range(len(cells)):
        assert price(array, np.delete(cells, cell, axis=0), weights) > found


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_descent_tells_what_its_cells_cost(data: st.DataObject) -> None:
    rows, width = data.draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    counts = np.array(data.draw(st.lists(st.integers(0, 9), min_size=rows * width, max_size=rows * width)), np.uint64)
    first, second = np.meshgrid(np.arange(1, rows + 1), np.arange(1, width + 1), indexing="ij")
    costs = (first + 2 * second).astype(np.uint64)
    start = data.draw(st.lists(st.tuples(st.integers(1, rows), st.integers(1, width)), min_size=1, max_size=5))
    cells, unheld, cost = _core.descend_cells(counts, costs.ravel(), width, [list(cell) for cell in start])
    fields = np.stack([first.ravel(), second.ravel()], axis=1)
    samples = np.repeat(fields, counts.astype(int), axis=0)
    if len(samples):
        assert (unheld, cost) == price(samples, cells, (1, 2)) <= price(samples, start, (1, 2))


@pytest.mark.parametrize(
    ("pairs", "weights", "most"), [(speech(50_000), (1, 8), 0.13), (translation(50_000), (1, 1), 0.16)]
)
def test_less_padding_than_buckets_of_one_length(pairs: Pairs, weights: tuple[int, int], most: float) -> None:
    cells, _ = choose_cells(lambda: [pairs], 32, weights=weights, limit=None)
    real = (pairs @ np.array(weights)).sum()
    padding = price(pairs, cells, weights)[1] / real - 1
    bounds = lw.optimal_boundaries(pairs.max(axis=1), 32)
    longer = price(pairs, np.stack([bounds, bounds], axis=1), weights)[1] / real - 1
    stripes = lw.optimal_stripes(pairs[:, 0], pairs[:, 1], 32, cost=lambda x, y: weights[0] * x + weights[1] * y)
    assert padding < most
    assert padding < min(longer, price(pairs, stripes.shapes, weights)[1] / real - 1)
