"""Cells for two lengths, chosen for a budget.

Problem: k cells so that samples, each padded to the cheapest cell that holds it, cost least. Method: three starts:
stripes along the first length, stripes along the second, and cells that grow in both lengths together. From each,
bounds move while that saves anything (the core's `boundaries::rectangles`), and the best end is kept. The first starts
are good where lengths go their own ways (audio and text), the last where they go together (source and target).
Cost: 0.1 to 0.5 s, most of it in the descents. When it is wrong: descents end in local optima, and no bound tells how
far from the best cells these are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise import _core
from lengthwise.boundaries import optimal_boundaries
from lengthwise.stripes import grid_of, place

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

#: Bounds along each length that cells are made of.
GRID: Final = 64
#: What is no cell.
NONE: Final = np.uint64(2**64 - 1)


def choose_cells(
    pairs: npt.NDArray[np.int64], k: int, *, weights: tuple[int, int], limit: int | None
) -> tuple[npt.NDArray[np.uint32], int]:
    """Return at most k cells as uint32[m, 2], and how many samples are in none because it would exceed `limit`.

    Args:
        pairs: int64[n, 2], padded lengths, at least one sample.
        k: how many cells.
        weights: what one unit of each length counts.
        limit: the most tokens of a cell's shape; None for no limit.
    """
    bounds = [grid_of(pairs[:, side], GRID) for side in range(2)]
    rows, columns = (place(bound, pairs[:, side]) for side, bound in enumerate(bounds))
    shape = (len(bounds[0]), len(bounds[1]))
    counts = np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1]).astype(np.uint64)
    first, second = (bound.astype(np.int64) * weight for bound, weight in zip(bounds, weights, strict=True))
    costs = (first[:, None] + second[None, :]).astype(np.uint64)
    allowed = costs if limit is None else np.where(costs > limit, NONE, costs)
    k = min(k, int(np.count_nonzero(counts)))
    ends = []
    for start in _starts(pairs, bounds, counts.reshape(shape), costs, k):
        cells, unheld, cost = _core.descend_cells(counts, allowed.ravel(), shape[1], start.tolist())
        ends.append((unheld, cost, cells))
    unheld, _, cells = min(ends)
    found = np.array(cells, np.intp).reshape(-1, 2) - 1
    return np.stack([bounds[0][found[:, 0]], bounds[1][found[:, 1]]], axis=1), unheld


def _starts(
    pairs: npt.NDArray[np.int64], bounds: list[npt.NDArray[np.uint32]], counts: Any, costs: Any, k: int
) -> Iterator[npt.NDArray[Any]]:
    """Yield cells to begin with, [k, 2] rows and columns counted from 1."""
    rows, sizes, columns, _, _ = _core.stripes(counts.ravel(), costs.ravel(), costs.shape[1], k)
    yield np.stack([np.repeat(rows, sizes), columns], axis=1)
    across, along = np.ascontiguousarray(counts.T), np.ascontiguousarray(costs.T)
    columns, sizes, rows, _, _ = _core.stripes(across.ravel(), along.ravel(), along.shape[1], k)
    yield np.stack([rows, np.repeat(columns, sizes)], axis=1)
    # The longer of both, in units of the first.
    unit = int(pairs[:, 0].sum()) / int(pairs[:, 1].sum())
    longer = np.maximum(pairs[:, 0], np.ceil(pairs[:, 1] * unit)).astype(np.uint32)
    together = optimal_boundaries(longer, min(k, len(np.unique(longer))))
    yield 1 + np.stack([_at_most(bounds[0], together), _at_most(bounds[1], together / unit)], axis=1)


def _at_most(bounds: npt.NDArray[np.uint32], lengths: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """The first bound that is not below each length, or else the last."""
    return np.minimum(np.searchsorted(bounds, lengths), len(bounds) - 1)
