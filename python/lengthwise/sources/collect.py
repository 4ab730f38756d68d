"""From the parts of a column to one array of lengths.

One contiguous chunk is returned as a view of the memory that holds it. Anything else takes one pass into uint32, block
by block: a block is small enough to stay in the cache, so that no second array of the dataset's size is ever made.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from lengthwise._arrays import MAX_LENGTH
from lengthwise._core import LengthwiseError, fill_from_offsets
from lengthwise.sources.base import reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from lengthwise.progress import Callback
    from lengthwise.sources.base import Field, Source

#: Rows that are converted at a time: small enough for the cache, large enough to forget the cost of a call.
BLOCK: Final = 1 << 17
#: Lists in at most so many chunks are measured one chunk at a time.
FEW_CHUNKS: Final = 32
ADVICE: Final = "it may be damaged: write it again"


class Column(NamedTuple):
    """Lengths, zero where a row is null, and the rows that are."""

    values: npt.NDArray[Any]
    nulls: npt.NDArray[np.int64]


def nothing() -> Column:
    """Return a column without rows."""
    return Column(np.empty(0, np.uint32), np.empty(0, np.int64))


def collect(source: Source, field: Field, report: Callback) -> Column:
    """Return the lengths of all parts, as a view where one chunk holds them."""
    parts = source.read(field)
    head = [part for part in (next(parts, None), next(parts, None)) if part is not None]
    if len(head) == 1:
        view = _view(head[0], source.where)
        if view is not None:
            report(len(view), source.rows)
            return Column(view, np.empty(0, np.int64))
    return join(columns(source, chain(head, parts), report))


def columns(source: Source, parts: Iterable[Any], report: Callback, start: int = 0) -> Iterator[Column]:
    """Yield each part as uint32; `start` is the row of the first."""
    for part in parts:
        values = np.empty(len(part), np.uint32)
        nulls = []
        done = 0
        for block in blocks(part, source.where, start):
            values[done : done + len(block.values)] = block.values
            nulls.append(block.nulls + done)
            done += len(block.values)
            report(start + done, source.rows)
        start += done
        yield Column(values, np.concatenate(nulls) if nulls else np.empty(0, np.int64))


def join(parts: Iterable[Column]) -> Column:
    """Return the parts as one column."""
    found = list(parts)
    if len(found) <= 1:
        return found[0] if found else nothing()
    starts = np.cumsum([0, *(len(part.values) for part in found)])
    return Column(
        np.concatenate([part.values for part in found]),
        np.concatenate([part.nulls + start for part, start in zip(found, starts, strict=False)]),
    )


def blocks(part: Any, where: str, start: int = 0) -> Iterator[Column]:
    """Yield the checked lengths of a part some rows at a time, in the type that is stored; nulls count from a block."""
    none = np.empty(0, np.int64)
    for offset in range(0, len(part), BLOCK):
        if isinstance(part, np.ndarray):
            yield Column(checked(part[offset : offset + BLOCK], where, start + offset), none)
            continue
        measured = _measured(part.slice(offset, BLOCK), where)
        with reading(where, ADVICE):
            nulls = np.flatnonzero(measured.is_null().to_numpy()) if measured.null_count else none
            values = as_numpy((measured.fill_null(0) if measured.null_count else measured).combine_chunks())
        yield Column(checked(values, where, start + offset), nulls)


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


def checked(values: npt.NDArray[Any], where: str, start: int) -> npt.NDArray[Any]:
    """Return the values, which must be lengths; `start` is the row of the first."""
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise LengthwiseError(
            f"{where} must be one-dimensional integers, got shape {values.shape} of {values.dtype}; samples padded to "
            f"one length do not tell theirs, but attention_mask.sum(1) does"
        )
    if values.size == 0:
        return values
    # Seen as unsigned, negative numbers are the largest of all: one pass finds both kinds of wrong ones.
    if int(values.view(f"u{values.dtype.itemsize}").max()) <= min(MAX_LENGTH, np.iinfo(values.dtype).max):
        return values
    if values.dtype.kind == "i" and int(values.min()) < 0:
        index = int(np.argmax(values < 0))
        raise LengthwiseError(f"row {start + index} of {where} has length {values[index]}; lengths cannot be negative")
    if values.dtype.itemsize >= 4 and int(values.max()) > MAX_LENGTH:
        index = int(np.argmax(values > MAX_LENGTH))
        raise LengthwiseError(
            f"row {start + index} of {where} has length {values[index]}, more than the largest length {MAX_LENGTH}"
        )
    return values


def _view(part: Any, where: str) -> npt.NDArray[Any] | None:
    """Return the lengths of a part that one chunk holds, in the type that is stored; None where it takes a copy."""
    if isinstance(part, np.ndarray):
        return checked(part, where, 0).view() if part.flags.c_contiguous and part.dtype.isnative else None
    if _has_offsets(part):
        return _differences(part, where)
    measured = _measured(part, where)
    # Sizes of lists that pyarrow has just made are joined as they are; what is stored in several chunks is narrowed.
    sizes = measured.type != part.type and measured.type.bit_width == 32
    if measured.null_count or (measured.num_chunks != 1 and not sizes):
        return None
    with reading(where, ADVICE):
        whole = measured.chunk(0) if measured.num_chunks == 1 else measured.combine_chunks()
        values = checked(as_numpy(whole), where, 0)
    return values.view(np.uint32) if sizes else values


def as_numpy(array: Any) -> npt.NDArray[Any]:
    """Return an Arrow array of integers without nulls as the same memory.

    Arrow's own `to_numpy` imports pandas where that is installed, which takes longer than to read a million lengths.
    """
    return np.from_dlpack(array)


def _has_offsets(part: Any) -> bool:
    import pyarrow as pa

    types = (pa.types.is_list(part.type), pa.types.is_large_list(part.type))
    return any(types) and isinstance(part, pa.ChunkedArray) and part.num_chunks <= FEW_CHUNKS


def _differences(part: Any, where: str) -> npt.NDArray[np.uint32] | None:
    """Return the differences of the offsets, checked in the same pass; None where some are no lengths, or null."""
    import pyarrow as pa

    with reading(where, ADVICE):
        part.validate()
        if part.null_count or not len(part):
            return None
        # Arrow's pool hands out memory that the process has used before, which saves the page faults of new memory.
        out = np.frombuffer(pa.allocate_buffer(len(part) * 4), np.uint32)
        start = 0
        for chunk in part.chunks:
            try:
                fill_from_offsets(out[start : start + len(chunk)], as_numpy(chunk.offsets))
            except LengthwiseError:
                return None
            start += len(chunk)
    return out


def _measured(part: Any, where: str) -> Any:
    import pyarrow as pa

    from lengthwise.sources.arrow import measure

    with reading(where, ADVICE):
        return measure(part if isinstance(part, pa.ChunkedArray) else pa.chunked_array([part]))
