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
from lengthwise.sources.arrays import fill, readable
from lengthwise.sources.arrow import ArrowSource
from lengthwise.sources.base import Field
from lengthwise.sources.columns import INTEGER_NAMES, LIST_NAMES, NAMED, ONLY, reason_for
from lengthwise.sources.measure import NO_ROWS
from lengthwise.sources.schema import column_field, is_flat_list, list_format
from lengthwise.sources.suspicion import warn_if_alike

if TYPE_CHECKING:
    from collections.abc import Callable

    from lengthwise.sources.suspicion import Check


def of_column(column: pa.Array | pa.ChunkedArray, name: Any, check: Check) -> Lengths | None:
    """Return the lengths of an unnamed column."""
    return _read(column, column, "", ONLY, check) if name is None else None


def of_table(table: pa.Table | pa.RecordBatch, name: Any, check: Check) -> Lengths | None:
    """Return the lengths in the column called `name`, or the one that `choose` settles on."""
    names = table.schema.names
    if name is not None:
        # What has dots may be a path as well.
        index = names.index(name) if names.count(name) == 1 and "." not in name else None
        return None if index is None else _read(table, table.column(index), name, NAMED, check)
    if len(names) == 1:
        column = table.column(0)
        return _read(table, column, names[0], ONLY, check) if is_flat_list(column.type) else None
    for usual in LIST_NAMES:
        if usual in names:
            column = table.column(names.index(usual))
            sure = names.count(usual) == 1 and STORED.isdisjoint(names) and is_flat_list(column.type)
            return _read(table, column, usual, None, check) if sure else None
    return None


#: What reads the types that are read so; older releases of pyarrow lack some of them.
READERS: Final[dict[type, Callable[[Any, Any, Check], Lengths | None]]] = {
    getattr(pa, name): reader
    for reader, names in {
        of_column: "ChunkedArray ListArray LargeListArray ListViewArray LargeListViewArray FixedSizeListArray",
        of_table: "Table RecordBatch",
    }.items()
    for name in names.split()
    if hasattr(pa, name)
}
STORED: Final = frozenset(INTEGER_NAMES)


def _read(
    source: Any, column: pa.Array | pa.ChunkedArray, path: str, reason: str | None, check: Check
) -> Lengths | None:
    """Return the lengths of a column, used for what is in it where there is no other `reason`."""
    type_ = column.type
    format_ = list_format(type_)
    # What is in chunks knows its nulls without a look at their buffers, which are not validated yet.
    if format_ is None or not readable(column) or (isinstance(column, pa.ChunkedArray) and column.null_count):
        return None
    try:
        column.validate()
        if column.null_count:
            return None
        rows = len(column)
        lengths = Lengths(rows, np.uint32, pa.allocate_buffer(rows * 4))
        filled = fill(lengths, column, format_)
    except (pa.ArrowException, LengthwiseError):
        return None
    if check != "none":
        warn_if_alike(_where(type(source)), path, rows, filled.any, filled.all)
    lengths.describe(partial(_info, type(source), path, type_, reason))
    return lengths


def _where(kind: type) -> str:
    return f"pyarrow.{kind.__name__}"


def _info(kind: type, path: str, type_: pa.DataType, reason: str | None) -> LengthsInfo:
    field = column_field(path, type_) if path else Field("", "list", type_)
    reason = reason or reason_for(path, "list")
    return LengthsInfo(_where(kind), ArrowSource.format, (field,), reason, "tokens", NO_ROWS)
