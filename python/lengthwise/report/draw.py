"""Pictures in text: a histogram on a logarithmic axis and a bar, from block characters.

Problem: show a distribution of lengths in a terminal. Lengths spread over orders of magnitude, so the axis is
logarithmic; but they are whole numbers, so at its lower end a column is narrower than one token and plain counting
leaves gaps. Method: a length L is spread evenly over (L - 1/2, L + 1/2), and a column takes its share of that; the sum
is kept. Cost: one pass over the distinct lengths. When it is wrong: a column of a few tokens shows a mean, not a peak.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise.report.words import short

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

#: A cell filled from below by 0 to 8 eighths, and from the left.
RISING: Final = " ▁▂▃▄▅▆▇█"
GROWING: Final = " ▏▎▍▌▋▊▉█"


def edges(shortest: int, longest: int, columns: int) -> Floats:
    """Return float64[columns + 1], the column edges of a logarithmic axis that holds both lengths."""
    low, high = max(shortest, 1) - 0.5, max(longest, 1) + 0.5
    return np.geomspace(low, high, columns + 1)


def spread(lengths: Any, weights: Any, column_edges: Floats) -> Floats:
    """Return float64[columns], the weight in each column, every length spread over half a token to either side.

    Args:
        lengths: ascending distinct lengths, in tokens; zeros fall into the first column.
        weights: how much each of them counts (samples, or tokens).
        column_edges: ascending edges that enclose all lengths above zero.
    """
    lengths = np.asarray(lengths, np.float64)
    total = np.cumsum(np.asarray(weights, np.float64))
    knots = np.stack([lengths - 0.5, lengths + 0.5], axis=1).ravel()
    heights = np.stack([np.concatenate([[0.0], total[:-1]]), total], axis=1).ravel()
    reached = np.interp(column_edges, knots, heights)
    reached[0], reached[-1] = 0.0, total[-1] if total.size else 0.0
    result: Floats = np.diff(reached)
    return result


def columns(heights: Any, rows: int) -> list[str]:
    """Return `rows` lines, the top one first, with a column of blocks for each height; what is above 0 is visible.

    Example:
        >>> for line in columns([0, 1, 8, 16], rows=2): print(line)
           █
         ▁██
    """
    heights = np.asarray(heights, np.float64)
    top = heights.max(initial=0.0)
    eighths = np.round(heights / top * 8 * rows).astype(int) if top else np.zeros(len(heights), int)
    eighths[(heights > 0) & (eighths == 0)] = 1
    return ["".join(RISING[min(max(filled - 8 * row, 0), 8)] for filled in eighths) for row in reversed(range(rows))]


def bar(share: float, width: int) -> str:
    """Return a bar of `width` cells filled from the left to `share`, to an eighth of a cell.

    Example:
        >>> bar(0.5, 5)
        '██▌  '
    """
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    full, part = divmod(eighths, 8)
    return (GROWING[8] * full + (GROWING[part] if part else "")).ljust(width)


def axis(column_edges: Floats) -> tuple[str, str]:
    """Return the two lines of a logarithmic axis: ticks at powers of two, and their labels where they fit."""
    width = len(column_edges) - 1
    ticks, labels = ["─"] * width, [" "] * (width + 8)
    free = 0
    for power in range(32):
        value = 2**power
        if not column_edges[0] <= value <= column_edges[-1]:
            continue
        column = column_of(value, column_edges)
        ticks[column] = "┬"
        label = short(value)
        start = max(column - len(label) // 2, 0)
        if start >= free:
            labels[start : start + len(label)] = label
            free = start + len(label) + 1
    return "".join(ticks), "".join(labels).rstrip()


def column_of(value: float, column_edges: Floats) -> int:
    """Return the column that holds a length."""
    last = len(column_edges) - 2
    return min(max(int(np.searchsorted(column_edges, value, side="right")) - 1, 0), last)


def marks(values: Any, column_edges: Floats, mark: str = "▲") -> str:
    """Return one line with a mark under the column of each value."""
    line = [" "] * (len(column_edges) - 1)
    for value in values:
        line[column_of(value, column_edges)] = mark
    return "".join(line)
