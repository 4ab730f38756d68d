"""Fields inside of structs and lists, by their path.

A field of a struct is a column of its own. Of a field inside of a list, a row has several: their lengths are added up,
from the offsets of both lists, so that still no value is read.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from lengthwise._core import LengthwiseError
from lengthwise.sources.measure import Column, measured
from lengthwise.sources.schema import is_any, is_list, top_level

if TYPE_CHECKING:
    import pyarrow as pa


def nested(table: pa.Table | pa.RecordBatch, path: str) -> pa.ChunkedArray | pa.Array:
    """Return the column called `path`, or the field that it leads to; a field of a null struct is null.

    Of a field inside of a list, a row has several: their lengths are added up, and the sums returned.
    """
    schema = table.schema
    index = top_level(schema, path)
    column = table.column(index)
    rest = path[len(schema.names[index]) + 1 :]
    if not rest:
        return column
    column.validate()
    import pyarrow as pa

    return _below(column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column]), rest)


def _below(column: pa.ChunkedArray, rest: str) -> pa.ChunkedArray:
    """Return the field that the rest of a path leads to."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not rest:
        return column
    if is_list(column.type):
        sums = pa.chunked_array([_sums(chunk, rest) for chunk in column.chunks], pa.int64())
        with suppress(pa.ArrowInvalid):  # what does not fit is no length, and refused with its row where it is measured
            sums = sums.cast(pa.uint32())
        return sums
    if not is_any(column.type, "struct"):
        raise LengthwiseError(f"there is no field {rest!r} in {column.type}")
    fields = pa.schema(list(column.type))
    step = fields.names[top_level(fields, rest)]
    return _below(pc.struct_field(column, [step]), rest[len(step) + 1 :])


def _measured(column: pa.ChunkedArray) -> Column:
    try:
        return measured(column, f"{column.type}")
    except LengthwiseError as error:
        # The caller knows the file, and names it.
        raise ValueError(str(error)) from error


def _sums(array: pa.Array, rest: str) -> pa.Array:
    """Return the sum of the lengths of a field in each list: what is null inside of a list has none."""
    import pyarrow as pa

    from lengthwise.sources.arrays import as_numpy

    type_ = array.type
    sizes, nulls = _measured(pa.chunked_array([array]))
    if is_any(type_, "list", "large_list"):
        bounds = as_numpy(array.offsets).astype(np.int64)
        values = array.values.slice(bounds[0], bounds[-1] - bounds[0])
        bounds -= bounds[0]
    elif is_any(type_, "fixed_size_list"):
        bounds = np.arange(len(array) + 1) * type_.list_size
        values = array.values.slice(array.offset * type_.list_size, bounds[-1])
    else:
        bounds = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        values = array.flatten()
    if is_list(type_.value_type):
        # The name of what is in a list of lists may be another here: see `top_level`.
        rest = rest.partition(".")[2]
    lengths, _ = _measured(_below(pa.chunked_array([values]), rest))
    before = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    is_null = np.zeros(len(array), bool)
    is_null[nulls] = True
    return pa.array(before[bounds[1:]] - before[bounds[:-1]], mask=is_null)
