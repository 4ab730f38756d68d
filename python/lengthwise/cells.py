"""Cells for two lengths, chosen for a budget.

Problem: k cells so that samples, each padded to the cheapest cell that holds it, cost least. Method: three starts:
stripes along the first length, stripes along the second, and cells that grow in both lengths together. From each,
bounds move while that saves anything (the core's `boundaries::rectangles`), and the best end is kept. The first starts
are good where lengths go their own ways (audio and text), the last where they go together (source and target).
Cost: 0.2 s for 32 cells, 1 s for hundreds, most of it in the descents. When it is wrong: descents end in local optima,
and no bound tells how far from the best cells these are.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise import _core
from lengthwise.boundaries import optimal_boundaries
from lengthwise.histogram import Histogram
from lengthwise.stripes import grid_of, place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

#: Bounds along each length that cells are made of.
GRID: Final = 64
#: What is no cell.
NONE: Final = np.uint64(2**64 - 1)


def choose_cells(
    blocks: Callable[[], Iterable[npt.NDArray[np.int64]]], k: int, *, weights: tuple[int, int], limit: int | None
) -> tuple[npt.NDArray[np.uint32], int]:
    """Return at most k cells as uint32[m, 2], and how many samples are in none because it would exceed `limit`.

    Args:
        blocks: gives the padded lengths, int64[n, 2] in all, block after block, as often as it is called: they are
            never needed at once.
        k: how many cells.
        weights: what one unit of each length counts.
        limit: the most tokens of a cell's shape; None for no limit.
    """
    along = [[Histogram.of(block[:, side]) for side in range(2)] for block in blocks()]
    bounds = [grid_of(functools.reduce(operator.add, histograms), GRID) for histograms in zip(*along, strict=True)]
    shape = (len(bounds[0]), len(bounds[1]))
    counts = np.zeros(shape[0] * shape[1], np.uint64)
    for block in blocks():
        rows, columns = (place(bound, block[:, side]) for side, bound in enumerate(bounds))
        counts += np.bincount(rows * shape[1] + columns, minlength=counts.size).astype(np.uint64)
    first, second = (bound.astype(np.int64) * weight for bound, weight in zip(bounds, weights, strict=True))
    costs = (first[:, None] + second[None, :]).astype(np.uint64)
    allowed = costs if limit is None else np.where(costs > limit, NONE, costs)
    k = min(k, int(np.count_nonzero(counts)))
    ends = []
    for start in _starts(bounds, counts.reshape(shape), costs, k):
        cells, unheld, cost = _core.descend_cells(counts, allowed.ravel(), shape[1], start.tolist())
        ends.append((unheld, cost, cells))
    unheld, _, cells = min(ends)
    found = np.array(cells, np.intp).reshape(-1, 2) - 1
    return np.stack([bounds[0][found[:, 0]], bounds[1][found[:, 1]]], axis=1), unheld


def _starts(bounds: list[npt.NDArray[np.uint32]], counts: Any, costs: Any, k: int) -> Iterator[npt.NDArray[Any]]:
    """Yield cells to begin with, [k, 2] rows and columns counted from 1."""
    rows, sizes, columns, _, _ = _core.stripes(counts.ravel(), costs.ravel(), costs.shape[1], k)
    yield np.stack([np.repeat(rows, sizes), columns], axis=1)
    across, along = np.ascontiguousarray(counts.T), np.ascontiguousarray(costs.T)
    columns, sizes, rows, _, _ = _core.stripes(across.ravel(), along.ravel(), along.shape[1], k)
    yield np.stack([rows, np.repeat(columns, sizes)], axis=1)
    # The longer of both, in units of the first.
    first, second = (bound.astype(np.int64) for bound in bounds)
    unit = int(counts.sum(axis=1) @ first.astype(np.uint64)) / int(counts.sum(axis=0) @ second.astype(np.uint64))
    longer = np.maximum(first[:, None], np.ceil(second * unit).astype(np.int64)[None, :])
    lengths, field = np.unique(longer[counts > 0], return_inverse=True)
    held = np.bincount(field, weights=counts[counts > 0]).astype(np.uint64)
    together = optimal_boundaries(Histogram(lengths.astype(np.uint32), held), min(k, len(lengths)))
    yield 1 + np.stack([_at_most(bounds[0], together), _at_most(bounds[1], together / unit)], axis=1)


def _at_most(bounds: npt.NDArray[np.uint32], lengths: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """The first bound that is not below each length, or else the last."""
    return np.minimum(np.searchsorted(bounds, lengths), len(bounds) - 1)
