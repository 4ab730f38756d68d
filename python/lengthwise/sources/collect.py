"""From the parts of a column to one array of lengths, in the order of the dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise._core import LengthwiseError
from lengthwise.sources.measure import NO_ROWS, Column, measured

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from lengthwise.progress import Callback
    from lengthwise.sources.base import Field, Source

#: Rows that are measured at a time where no array of a part's size may be made.
BLOCK: Final = 1 << 17


def collect(source: Source, field: Field, report: Callback) -> Column:
    """Return the lengths of all parts, as a view where one chunk holds them."""
    parts = source.read(field)
    if source.whole:
        (part,) = parts
        column = measured(part, source.where)
        report(len(column.values), source.rows)
        return column
    return join(columns(source, parts, report))


def columns(source: Source, parts: Iterable[Any], report: Callback, start: int = 0) -> Iterator[Column]:
    """Yield the lengths of each part; `start` is the row of the first."""
    for part in parts:
        column = measured(part, source.where, start)
        start += len(column.values)
        report(start, source.rows)
        yield column


def join(parts: Iterable[Column]) -> Column:
    """Return the parts as one column, in uint32 where they are several."""
    found = list(parts)
    if len(found) == 1:
        return found[0]
    from lengthwise.sources.arrays import new

    values = new(sum(len(part.values) for part in found))
    nulls = [NO_ROWS]
    start = 0
    for part in found:
        stop = start + len(part.values)
        values[start:stop] = part.values
        nulls.append(part.nulls + start)
        start = stop
    return Column(values, np.concatenate(nulls))


def blocks(part: Any, where: str, start: int = 0) -> Iterator[Column]:
    """Yield the lengths of a part some rows at a time; `start` is the row of the first, nulls count from a block."""
    for offset in range(0, len(part), BLOCK):
        block = part[offset : offset + BLOCK] if isinstance(part, np.ndarray) else part.slice(offset, BLOCK)
        yield measured(block, where, start + offset)


def gather(column: Column, order: npt.NDArray[Any]) -> Column:
    """Return the rows of a column that a dataset is made of, in its order."""
    values, nulls = column
    if order.size and int(order.max()) >= len(values):
        raise LengthwiseError(f"the dataset's index names row {int(order.max())}, but its table has {len(values)}")
    if nulls.size == 0:
        return Column(values[order], nulls)
    mask = np.zeros(len(values), bool)
    mask[nulls] = True
    return Column(values[order], np.flatnonzero(mask[order]))
