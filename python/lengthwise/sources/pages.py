"""The pages of a Parquet column chunk: lengths of lists from their levels, without decoding a value.

A chunk is a series of pages, each with a header in Thrift's compact protocol. A data page starts with the levels; in
version 2 they are not compressed, in version 1 the page is decompressed as a whole, which costs a tenth of decoding it.

Source: https://parquet.apache.org/docs/file-format/data-pages/
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from lengthwise._core import LengthwiseError, fill_from_levels
from lengthwise.sources.thrift import Reader

if TYPE_CHECKING:
    import numpy.typing as npt

#: What stands for a null row.
NULL: Final = np.uint32(0xFFFFFFFF)
DATA_PAGE: Final = 0
DATA_PAGE_V2: Final = 3
RLE: Final = 3
#: Bytes in which the first pages of a chunk are, which take a megabyte each as a rule.
START: Final = 1 << 22
#: Bytes; a header that is longer (by its statistics) is not worth reading.
MAX_HEADER: Final = 1 << 20


class UnusualPageError(Exception):
    """A page is written in a way that only a full reader knows."""


class Levels(NamedTuple):
    """What the levels of a stored column say of one of the lists that its values are in.

    Attributes:
        max_repetition: how many lists the values are in.
        max_definition: the greatest definition level of the column.
        depth: which of the lists is measured, 1 for the outermost; of one in others, a row has the sum.
        element: the definition level from which on that list has an entry.
        outermost: the same of the outermost list.
    """

    max_repetition: int
    max_definition: int
    depth: int
    element: int
    outermost: int


@dataclass(frozen=True)
class Chunk:
    """A column chunk of a row group.

    Attributes:
        start: its first byte in the file.
        size: its bytes.
        entries: values, nulls and empty lists in it.
        rows: rows of its row group.
        codec: how its pages are compressed, None for not at all.
        levels: what the levels of its entries mean.
    """

    start: int
    size: int
    entries: int
    rows: int
    codec: str | None
    levels: Levels


def read_chunk(file: Any, chunk: Chunk, *, enough: int | None = None) -> npt.NDArray[np.uint32]:
    """Return the length of each list in a chunk, NULL for null rows.

    Args:
        file: the open pyarrow file.
        chunk: where the column is.
        enough: rows after which to stop, at the end of a page; None for all.

    Raises:
        UnusualPageError: a full reader is needed.
        ValueError, LookupError, ArithmeticError: the chunk is damaged.
    """
    if chunk.entries < chunk.rows:
        raise ValueError(f"a row group of {chunk.rows} rows has only {chunk.entries} entries")
    file.seek(chunk.start)
    data = memoryview(file.read_buffer(chunk.size)).cast("B")
    out = np.zeros(chunk.rows, np.uint32)
    at = entries = done = 0
    while entries < chunk.entries:
        header, size = _header(data[at:])
        body = data[at + size : at + size + header[3]]
        if len(body) != header[3] or header[3] < 0:
            raise ValueError("a page goes on past the end of its column chunk")
        at += size + header[3]
        levels = _levels(header, body, chunk)
        if levels is None:
            continue
        repetition, definition, count = levels
        try:
            done = fill_from_levels(out, done, repetition, definition, count, chunk.levels)
        except LengthwiseError as error:
            # The caller knows the file, and names it.
            raise ValueError(str(error)) from error
        entries += count
        if enough is not None and enough < done < chunk.rows:
            # The last of them may go on in the next page.
            return out[: done - 1]
    if done != chunk.rows:
        raise ValueError(f"a row group of {chunk.rows} rows holds {done}")
    return out


def read_start(file: Any, chunk: Chunk, enough: int) -> npt.NDArray[np.uint32]:
    """Return the lengths of the first rows of a chunk, more than `enough` or all, from as few of its bytes as may do.

    Raises:
        UnusualPageError, ValueError, LookupError, ArithmeticError: as `read_chunk`.
    """
    if chunk.size > START:
        with suppress(ValueError, LookupError):  # rows that go on behind
            return read_chunk(file, replace(chunk, size=START), enough=enough)
    return read_chunk(file, chunk, enough=enough)


def _levels(
    header: dict[int, Any], body: memoryview, chunk: Chunk
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], int] | None:
    """Return repetition levels, definition levels and entries of a data page; None for another page."""
    if header[1] == DATA_PAGE_V2:
        page = header[8]
        middle, end = page[6], page[6] + page[5]
        if not 0 <= middle <= end <= len(body):
            raise ValueError("the levels of a page are longer than the page")
        return _bytes(body[:middle]), _bytes(body[middle:end]), page[1]
    if header[1] != DATA_PAGE:
        return None
    page = header[5]
    if page[3] != RLE or page[4] != RLE:
        raise UnusualPageError
    if chunk.codec is not None:
        body = _decompressed(body, chunk.codec, header[2])
    repetition, rest = _prefixed(body)
    definition, _ = _prefixed(rest)
    return _bytes(repetition), _bytes(definition), page[1]


def _decompressed(body: memoryview, codec: str, size: int) -> memoryview:
    import pyarrow as pa

    return memoryview(pa.Codec(codec).decompress(pa.py_buffer(body), max(0, size))).cast("B")


def _prefixed(data: memoryview) -> tuple[memoryview, memoryview]:
    """Return the bytes whose number is written before them, and what follows."""
    size = int.from_bytes(data[:4], "little")
    if 4 + size > len(data):
        raise ValueError("the levels of a page are longer than the page")
    return data[4 : 4 + size], data[4 + size :]


def _bytes(view: memoryview) -> npt.NDArray[np.uint8]:
    return np.frombuffer(view, np.uint8)


def _header(data: memoryview) -> tuple[dict[int, Any], int]:
    """Return the fields of a page header by number, and the bytes that it takes."""
    reader = Reader(data[:MAX_HEADER])
    return reader.struct(), reader.at
