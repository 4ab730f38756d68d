"""The shortest way to the lengths of lists that pyarrow holds in memory, for what needs no second look.

Why: a million lengths are under way to and from memory for 0.3 ms, in which all else leaves the cache, so that whatever
Python touches next takes several times as long as in a loop. The way of `read_lengths` that serves every source adds
40 us to that, this one 15. Where the column has to be chosen with more care, or holds nulls, lengths that look wrong or
damaged offsets, there is no answer here, and that way is taken: both give the same lengths, described the same.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from lengthwise._core import LengthwiseError
from lengthwise.lengths import Lengths, LengthsInfo
from lengthwise.sources.arrays import OFFSETS, fill, in_few_chunks
from lengthwise.sources.arrow import ArrowSource
from lengthwise.sources.base import Field
from lengthwise.sources.columns import INTEGER_NAMES, LIST_NAMES, NAMED, ONLY, reason_for
from lengthwise.sources.measure import NO_ROWS
from lengthwise.sources.schema import column_field, is_flat_list
from lengthwise.sources.suspicion import evidently_fine

if TYPE_CHECKING:
    from collections.abc import Callable


def of_column(column: pa.Array | pa.ChunkedArray, name: Any) -> Lengths | None:
    """Return the lengths of an unnamed column."""
    return _read(column, column, "", ONLY) if name is None else None


def of_table(table: pa.Table | pa.RecordBatch, name: Any) -> Lengths | None:
    """Return the lengths in the column called `name`, or the one that `choose` settles on."""
    names = table.schema.names
    if name is not None:
        # What has dots may be a path as well.
        index = names.index(name) if names.count(name) == 1 and "." not in name else None
        return None if index is None else _read(table, table.column(index), name, NAMED)
    if len(names) == 1:
        column = table.column(0)
        return _read(table, column, names[0], ONLY) if is_flat_list(column.type) else None
    for usual in LIST_NAMES:
        if usual in names:
            column = table.column(names.index(usual))
            sure = names.count(usual) == 1 and STORED.isdisjoint(names) and is_flat_list(column.type)
            return _read(table, column, usual, None) if sure else None
    return None


#: What reads the types that are read so.
READERS: Final[dict[type, Callable[[Any, Any], Lengths | None]]] = {
    pa.ListArray: of_column,
    pa.LargeListArray: of_column,
    pa.ChunkedArray: of_column,
    pa.Table: of_table,
    pa.RecordBatch: of_table,
}
STORED: Final = frozenset(INTEGER_NAMES)


def _read(source: Any, column: pa.Array | pa.ChunkedArray, path: str, reason: str | None) -> Lengths | None:
    """Return the lengths of a column, used for what is in it where there is no other `reason`."""
    type_ = column.type
    large = OFFSETS.get(type_.id)
    # What is in chunks knows its nulls without a look at their buffers, which are not validated yet.
    if large is None or not in_few_chunks(column) or (isinstance(column, pa.ChunkedArray) and column.null_count):
        return None
    try:
        column.validate()
        rows = len(column)
        lengths = Lengths(rows, np.uint32, pa.allocate_buffer(rows * 4))
        if column.null_count or fill(lengths, column, large) is not None or not evidently_fine(lengths):
            return None
    except (pa.ArrowException, LengthwiseError):
        return None
    lengths.describe(partial(_info, type(source), path, type_, reason))
    return lengths


def _info(kind: type, path: str, type_: pa.DataType, reason: str | None) -> LengthsInfo:
    where, field = f"pyarrow.{kind.__name__}", column_field(path, type_) if path else Field("", "list", type_)
    return LengthsInfo(where, ArrowSource.format, (field,), reason or reason_for(path, "list"), "tokens", NO_ROWS)
