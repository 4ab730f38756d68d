"""The lengths in one column of Arrow data.

One chunk of integers is returned as a view of the memory that holds it; anything else takes one pass into uint32. The
sizes of lists are the differences of their offsets, checked in the pass that subtracts them, so that no second array of
the column's size is made. Every column is validated first, in constant time a chunk, since offsets that come from a
damaged file would otherwise be followed out of bounds.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from lengthwise._core import LengthwiseError, fill_from_array, fill_from_lengths, fill_from_stream, unset_bits
from lengthwise.sources.base import described
from lengthwise.sources.measure import NO_ROWS, Column, checked
from lengthwise.sources.schema import INTEGERS, is_any, is_list, list_format

if TYPE_CHECKING:
    import numpy.typing as npt

#: Lists in chunks of fewer rows are measured by pyarrow and checked in a second pass: it goes from one chunk to the
#: next in 0.05 us, where it takes 0.2 us to hand a chunk over.
ROWS_PER_CHUNK: Final = 1 << 9
#: No run-length or fixed-size encoding may claim more rows than this, however few bytes it takes.
MAX_ROWS: Final = 1 << 36
#: A column of nulls takes no bytes at all.
MAX_NULLS: Final = 1 << 32
ADVICE: Final = "it may be damaged: write it again"


class Filled(NamedTuple):
    """What a pass over lists saw.

    Attributes:
        nulls: int64[k], the rows that are null, or None where none is.
        any: the bits that some length has; those under nulls are lengths here.
        all: the bits that all lengths have.
    """

    nulls: npt.NDArray[np.int64] | None
    any: int
    all: int


def measured_arrow(part: pa.Array | pa.ChunkedArray, where: str, start: int) -> Column:
    """Return the checked lengths of a part, as a view where one chunk holds them; `start` is the row of the first."""
    try:
        part.validate()
        found = _lists(part)
        if found is not None:
            return found
        column = _storage(part if isinstance(part, pa.ChunkedArray) else pa.chunked_array([part]))
        sizes = _sizes(column)
        array = whole(sizes)
        values, nulls = as_numpy(array), null_rows(array)
    except LengthwiseError:
        raise
    except Exception as error:
        raise described(error, where, ADVICE) from error
    view = sizes is column and column.num_chunks == 1
    if nulls.size:
        # What is under a null may be anything, and in a view it is the owner's.
        values = values.copy() if view or not values.flags.writeable else values
        values[nulls] = 0
    elif view:
        return Column(checked(values, where, start), nulls)
    return Column(_narrowed(values, where, start), nulls)


def whole(column: pa.ChunkedArray) -> pa.Array:
    """Return integers as one array: the only chunk as it is, several in uint32 where they are lengths."""
    if column.num_chunks > 1:
        # One pass into one array, and checked, where `combine_chunks` copies chunk by chunk.
        with suppress(pa.ArrowInvalid):
            column = column.cast(pa.uint32())
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def as_numpy(array: pa.Array) -> npt.NDArray[Any]:
    """Return an Arrow array of integers as the same memory, whatever is under its nulls.

    Arrow's own `to_numpy` imports pandas where that is installed, which takes longer than to read a million lengths.
    """
    dtype = np.dtype(str(array.type))
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)


def null_rows(array: pa.Array) -> npt.NDArray[np.int64]:
    """Return the rows that are null."""
    if not array.null_count:
        return NO_ROWS
    return unset_bits(np.frombuffer(array.buffers()[0], np.uint8), array.offset, len(array))


def new(rows: int) -> npt.NDArray[np.uint32]:
    """Return an array to be filled.

    Arrow's pool hands out memory that the process has used before, which saves the page faults of new memory.
    """
    return np.ndarray(rows, np.uint32, pa.allocate_buffer(rows * 4))


def fill(out: npt.NDArray[np.uint32], part: pa.Array | pa.ChunkedArray, format_: str) -> Filled:
    """Write the lengths of validated lists, of a type that `list_format` has named, zero for nulls.

    Raises:
        LengthwiseError: a length is negative or too long.
    """
    if isinstance(part, pa.ChunkedArray):
        if part.num_chunks != 1:
            return Filled(*fill_from_stream(out, part.__arrow_c_stream__(), format_))
        part = part.chunk(0)
    return Filled(*fill_from_array(out, part, format_))


def _lists(part: pa.Array | pa.ChunkedArray) -> Column | None:
    """Return the sizes of lists; None where `fill` is not for them, or some are no lengths."""
    format_ = list_format(part.type)
    if format_ is None or not readable(part):
        return None
    out = new(len(part))
    try:
        nulls = fill(out, part, format_).nulls
    except LengthwiseError:
        return None
    return Column(out, NO_ROWS if nulls is None else nulls)


def readable(part: pa.Array | pa.ChunkedArray) -> bool:
    """Whether `fill` is for these lists: not in many small chunks, nor so many as only a damaged column claims."""
    chunks = 1 if isinstance(part, pa.Array) else part.num_chunks
    return (chunks - 1) * ROWS_PER_CHUNK <= len(part) <= MAX_ROWS


def _narrowed(values: npt.NDArray[Any], where: str, start: int) -> npt.NDArray[np.uint32]:
    """Return checked lengths in uint32, without a copy where they have its width."""
    if values.dtype == np.int64:
        out = new(len(values))
        try:
            fill_from_lengths(out, values)
        except LengthwiseError:
            pass  # and the row is named below
        else:
            return out
    values = checked(values, where, start)
    return values.view(np.uint32) if values.dtype.itemsize == 4 else values.astype(np.uint32)


def _storage(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return what is stored in a column of an extension type, and any other column as it is."""
    if not isinstance(column.type, pa.BaseExtensionType):
        return column
    return pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)


def _sizes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the lengths in a validated column as integers, null where it is null; integers are returned as they are.

    Raises:
        pyarrow.ArrowInvalid: the buffers contradict each other.
    """
    type_ = column.type
    if len(column) > (MAX_NULLS if is_any(type_, "na") else MAX_ROWS):
        raise LengthwiseError(f"the column claims {len(column)} rows")
    if is_any(type_, *INTEGERS):
        return column
    import pyarrow.compute as pc

    if is_any(type_, "dictionary"):
        column.validate(full=True)
        return column.cast(type_.value_type)
    if is_any(type_, "run_end_encoded"):
        column.validate(full=True)
        return pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], type_.value_type)
    if is_any(type_, "na"):
        return column.cast(pa.int32())
    if is_list(type_):
        return pc.list_value_length(column)
    return pc.binary_length(column.cast(pa.large_binary()) if is_any(type_, "string_view", "binary_view") else column)
