"""Buckets of samples with two lengths: source and target, audio and text."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lengthwise import _core
from lengthwise._arrays import MAX_LENGTH, as_lengths
from lengthwise._core import LengthwiseError
from lengthwise._integers import as_integer
from lengthwise._objective import as_integers
from lengthwise.boundaries import candidates_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt


@dataclass(frozen=True, eq=False, repr=False)
class Stripes:
    """Cells for two lengths: stripes along the first, each with its own boundaries along the second.

    Attributes:
        shapes: uint32[k, 2]: the inclusive upper bounds of every cell, stripe after stripe, both ascending. The last
            stripe reaches the longest first length, the last cell of each stripe the longest second length in it.
        counts: int64[k], samples in each cell.
        cost: what all samples cost, each padded to its cell.
        lower_bound: no k cells in stripes (over the same grid) cost less.
        padding: padded over real cost, less 1.
    """

    shapes: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.int64]
    cost: float
    lower_bound: float
    padding: float

    def __len__(self) -> int:
        return len(self.shapes)

    def __repr__(self) -> str:
        stripes = len(np.unique(self.shapes[:, 0]))
        return f"Stripes({len(self)} cells in {stripes} stripes, padding {self.padding:.2%})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{first:,}</td><td>{second:,}</td><td>{count:,}</td></tr>"
            for (first, second), count in zip(self.shapes.tolist(), self.counts.tolist(), strict=True)
        )
        head = "<tr><th>first up to</th><th>second up to</th><th>samples</th></tr>"
        return f"<table><caption>padding {self.padding:.2%}</caption>{head}{rows}</table>"

    def cell_of(self, first: Any, second: Any) -> npt.NDArray[np.uint32]:
        """Return uint32[n]: the cell of every sample, a row of `shapes`, by its first length and then its second.

        Raises:
            LengthwiseError: arrays of different sizes, or a sample that fits no cell of its stripe (one that the
                stripes were not made for).
        """
        return _cells(self.shapes, *_pair(first, second))


def optimal_stripes(
    first: Any,
    second: Any,
    k: int,
    *,
    cost: Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64]], npt.ArrayLike] = np.add,
    grid: int = 128,
) -> Stripes:
    """Return k cells for samples of two lengths that cost nearly least, with a bound that says how nearly.

    Args:
        first: array-like of n integers: the lengths by which stripes are cut.
        second: array-like of n integers: the lengths by which each stripe is cut into cells.
        k: how many cells.
        cost: a function of two arrays that broadcast, int64[x, 1] and int64[1, y], which returns [x, y]: what one
            sample padded to these lengths costs; by default their sum. It must fall with neither.
        grid: bounds along each length are some of at most this many, which round the lengths up optimally.

    Raises:
        LengthwiseError: no samples, arrays of different sizes, `k` above what the grid holds, a falling cost.

    Cost: 10 to 20 passes of 10 ms over a grid of 128.

    Method: cells of general rectangles are a hard problem (two-dimensional assortment), stripes are not: a charge per
    cell, at which every stripe is solved exactly and the best stripes by dynamic programming. Where no charge leads to
    k, the cells are shared out among the stripes of the next numbers, and `lower_bound` is below `cost`.

    Examples:
        >>> import lengthwise as lw
        >>> stripes = lw.optimal_stripes([10, 11, 10, 11, 30, 31], [5, 5, 40, 40, 6, 50], 4)
        >>> stripes
        Stripes(4 cells in 3 stripes, padding 0.80%)
        >>> stripes.shapes.tolist()
        [[11, 5], [11, 40], [30, 6], [31, 50]]
        >>> stripes.cell_of([9, 31], [20, 20])
        array([1, 3], dtype=uint32)
    """
    k = as_integer(k, "k", 1, MAX_LENGTH)
    grid = as_integer(grid, "grid", 1, 1024)
    lengths = _pair(first, second)
    bounds = [grid_of(along, grid) for along in lengths]
    row, column = (place(bound, along) for bound, along in zip(bounds, lengths, strict=True))
    shape = (len(bounds[0]), len(bounds[1]))
    counts = np.bincount(row * shape[1] + column, minlength=shape[0] * shape[1])
    values = _costs(cost, *(bound.astype(np.int64) for bound in bounds))
    costs, scale = as_integers(values, len(row))
    rows, sizes, columns, total, lower = _core.stripes(counts.astype(np.uint64), costs.ravel(), shape[1], k)
    shapes = np.stack([np.repeat(bounds[0][rows - 1], sizes), bounds[1][columns - 1]], axis=1).astype(np.uint32)
    real = np.asarray(cost(*(along.astype(np.int64) for along in lengths)), np.float64).sum()
    paid, proof = (math.ldexp(total, -scale), math.ldexp(lower, -scale)) if scale else (total, lower)
    held = np.bincount(_cells(shapes, *lengths), minlength=len(shapes))
    return Stripes(shapes, held, paid, proof, paid / real - 1 if real else 0.0)


def _pair(first: Any, second: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Both lengths of every sample."""
    pair = as_lengths(first, "first"), as_lengths(second, "second")
    if len(pair[0]) != len(pair[1]):
        raise LengthwiseError(f"first has {len(pair[0])} samples, but second has {len(pair[1])}")
    return pair


def grid_of(lengths: npt.NDArray[Any], most: int) -> npt.NDArray[np.uint32]:
    """At most so many bounds that round the lengths up with the least padding."""
    candidates = candidates_of(lengths, 1, ())
    bounds, _ = candidates.arrays()
    if len(bounds) <= most:
        return bounds
    return candidates.solve("boundary", None, (1, 1, 1, 1), k=most, overhead=0, min_count=0, max_ratio=math.inf)[0]


def place(bounds: npt.NDArray[np.uint32], lengths: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """The first bound that is not below each length: as `searchsorted`, by one look into a table."""
    longest = int(lengths.max(initial=0))
    if longest > lengths.size:
        return np.searchsorted(bounds, lengths)
    table = np.searchsorted(bounds, np.arange(longest + 1))
    places: npt.NDArray[np.intp] = table[lengths]
    return places


def _costs(cost: Any, rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """The cost of one sample padded to every cell of the grid: finite, not negative, not falling."""
    values = np.asarray(cost(rows[:, None], columns[None, :]))
    if values.shape != (len(rows), len(columns)) or values.dtype.kind not in "iuf":
        raise LengthwiseError(
            f"cost gave {values.dtype}{list(values.shape)} for {len(rows)} by {len(columns)} lengths, but must give "
            "each pair a number"
        )
    if not np.all(np.isfinite(values) & (values >= 0)):
        raise LengthwiseError("cost gave a number that is not finite, or below 0")
    if np.any(values[1:] < values[:-1]) or np.any(values[:, 1:] < values[:, :-1]):
        raise LengthwiseError("cost falls with a length, but must not")
    return values


def _cells(shapes: npt.NDArray[np.uint32], first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    """The cell of every sample."""
    bounds, starts = np.unique(shapes[:, 0], return_index=True)
    stripe = place(bounds, first)
    # Cells ascend by (stripe, second bound), so that one search places a sample in both.
    keys = (np.repeat(np.arange(len(bounds)), np.diff([*starts, len(shapes)])) << 32) + shapes[:, 1]
    cell = np.searchsorted(keys, (stripe.astype(np.int64) << 32) + second)
    fits = cell < len(shapes)
    fits[fits] = shapes[cell[fits], 0] == bounds[stripe[fits]]
    if not fits.all():
        index = int(np.argmin(fits))
        raise LengthwiseError(f"sample {index} is {first[index]} by {second[index]} tokens, which fits no cell")
    cells: npt.NDArray[np.uint32] = cell.astype(np.uint32)
    return cells
