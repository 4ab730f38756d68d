"""Lengths from any dataset, at the cost of its metadata.

The reader looks at the schema first, picks the column that costs least (stored lengths, else the offsets of a list of
tokens), and touches nothing else: memory grows by the result alone. A single contiguous chunk is returned as a view of
the memory that holds it; anything else takes one pass into uint32, block by block.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lengthwise._arrays import MAX_LENGTH
from lengthwise._core import LengthwiseError
from lengthwise.sources import open_source
from lengthwise.sources.base import reading
from lengthwise.sources.columns import choose, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from lengthwise.sources.base import Field, Source
    from lengthwise.sources.columns import Unit

#: Rows that are converted at a time: small enough for the cache, large enough to forget the cost of a call.
BLOCK = 1 << 17

Nulls = Literal["error", "drop", "zero"]


@dataclass(frozen=True)
class LengthsInfo:
    """Where lengths came from.

    Attributes:
        source: the path or the type of object.
        format: the format's name.
        column: the column that was used, "" for an unnamed array.
        reason: why that one.
        type: its type, as the format writes it.
        unit: what is counted.
        nulls: how many rows were null (and dropped, or counted as zero).
    """

    source: str
    format: str
    column: str
    reason: str
    type: str
    unit: Unit
    nulls: int = 0


class Lengths(np.ndarray[Any, np.dtype[Any]]):
    """A read-only integer array that remembers the column it came from; otherwise a numpy array.

    Attributes:
        info: the `LengthsInfo` of the read.
    """

    info: LengthsInfo | None

    def __array_finalize__(self, parent: Any) -> None:
        self.info = getattr(parent, "info", None)

    @property
    def column(self) -> str | None:
        """The column that was used, None for an unnamed array."""
        return (self.info.column or None) if self.info else None


def read_lengths(source: Any, column: str | None = None, *, nulls: Nulls = "error", unit: Unit = "tokens") -> Lengths:
    """Return the length of every sample of a dataset, without reading a token.

    Args:
        source: a folder written by `datasets.Dataset.save_to_disk`, a live `datasets.Dataset`, an Arrow IPC or Parquet
            file, a pyarrow array or table, a numpy array, or a sequence of integers or of samples.
        column: the column to use. By default the first integer column called seq_len, seq_length, sequence_length,
            length, lengths, num_tokens, ... (`lengthwise.sources.columns.INTEGER_NAMES`), else the first list column
            called input_ids, tokens, token_ids, ... (`LIST_NAMES`), else the only list column.
        nulls: what a null row is: an "error", a row to "drop", or a length of "zero".
        unit: "tokens", or "bytes" to measure a column of text.

    Returns:
        int[n], read-only: a view in the stored integer type where one chunk holds the column, else uint32. Its
        `column` and `info` say what was used.

    Raises:
        LengthwiseError: the source cannot be read, has no such column, or holds nulls, negative lengths or lengths
            above 2**31 - 1; the message names the file and the row.

    Examples:
        >>> import lengthwise as lw
        >>> import pyarrow as pa
        >>> lengths = lw.read_lengths(pa.table({"input_ids": [[5, 6, 7], [8], []]}))
        >>> lengths, lengths.column
        (Lengths([3, 1, 0], dtype=uint32), 'input_ids')
    """
    opened = open_source(source)
    field, reason = (named(opened, column, unit), "named by the caller") if column is not None else choose(opened, unit)
    values, null_rows = _collect(opened, field)
    if opened.order is not None:
        values, null_rows = _gather(values, null_rows, opened.order)
    if null_rows.size:
        values = _resolve_nulls(values, null_rows, nulls, f"column {field.path!r} of {opened.where}")
    values.flags.writeable = False
    result = values.view(Lengths)
    result.info = LengthsInfo(opened.where, opened.format, field.path, reason, field.type, unit, int(null_rows.size))
    return result


def _collect(source: Source, field: Field) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the lengths of all parts, zero where null, and the null rows."""
    parts = source.read(field)
    first = next(parts, None)
    second = None if first is None else next(parts, None)
    if first is None:
        return np.empty(0, np.uint32), np.empty(0, np.int64)
    if second is None:
        view = _view(first, source.where)
        if view is not None:
            return view, np.empty(0, np.int64)
    whole = [first] if second is None else chain((first, second), parts)
    return _copy(whole, source.where)


def _view(part: Any, where: str) -> npt.NDArray[Any] | None:
    """Return the lengths of a part that one chunk holds, in the type that is stored; None where it takes a copy."""
    if isinstance(part, np.ndarray):
        return _checked(part, where, 0).view() if part.flags.c_contiguous else None
    measured = _measured(part, where)
    if measured.num_chunks != 1 or measured.null_count:
        return None
    chunk = measured.chunk(0)
    values = _checked(chunk.to_numpy(zero_copy_only=True), where, 0)
    return values.view(np.uint32) if values.dtype == np.int32 else values


def _copy(parts: Iterable[Any], where: str) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    outputs: list[npt.NDArray[np.uint32]] = []
    nulls: list[npt.NDArray[np.int64]] = []
    start = 0
    for part in parts:
        output = np.empty(len(part), np.uint32)
        offset = 0
        for values, null_rows in _blocks(part, where):
            output[offset : offset + len(values)] = _checked(values, where, start + offset)
            nulls.append(null_rows + (start + offset))
            offset += len(values)
        outputs.append(output)
        start += offset
    joined = outputs[0] if len(outputs) == 1 else np.concatenate(outputs)
    return joined, np.concatenate(nulls) if nulls else np.empty(0, np.int64)


def _blocks(part: Any, where: str) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[np.int64]]]:
    none = np.empty(0, np.int64)
    for start in range(0, len(part), BLOCK):
        if isinstance(part, np.ndarray):
            yield part[start : start + BLOCK], none
            continue
        measured = _measured(part.slice(start, BLOCK), where)
        if measured.null_count:
            null_rows = np.flatnonzero(measured.is_null().to_numpy())
            yield measured.fill_null(0).to_numpy(), null_rows
        else:
            yield measured.to_numpy(), none


def _measured(part: Any, where: str) -> Any:
    import pyarrow as pa

    from lengthwise.sources.arrow import measure

    with reading(where, "it may be damaged: write it again"):
        return measure(part if isinstance(part, pa.ChunkedArray) else pa.chunked_array([part]))


def _checked(values: npt.NDArray[Any], where: str, start: int) -> npt.NDArray[Any]:
    """Return the values, which must be lengths; `start` is the row of the first."""
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise LengthwiseError(f"{where} must be one-dimensional integers, got shape {values.shape} of {values.dtype}")
    if values.size == 0:
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


def _gather(
    values: npt.NDArray[Any], null_rows: npt.NDArray[np.int64], order: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    if null_rows.size == 0:
        return values[order], null_rows
    mask = np.zeros(len(values), bool)
    mask[null_rows] = True
    return values[order], np.flatnonzero(mask[order])


def _resolve_nulls(
    values: npt.NDArray[Any], null_rows: npt.NDArray[np.int64], policy: Nulls, where: str
) -> npt.NDArray[Any]:
    if policy == "zero":
        return values
    if policy == "drop":
        return np.delete(values, null_rows)
    shown = ", ".join(str(row) for row in null_rows[:5])
    raise LengthwiseError(
        f"{where} is null in {null_rows.size} rows ({shown}{', ...' if null_rows.size > 5 else ''}); "
        f'pass nulls="drop" or nulls="zero", or fill them'
    )
