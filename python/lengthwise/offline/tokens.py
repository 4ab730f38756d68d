"""Random access to the tokens of a data set, where planning needs none: for writing packs, and for checking them.

Problem: packs gather samples from everywhere. Method: a list column is opened once, chunk by chunk, as flat values and
offsets; a sample is then a slice. Arrow files stay on disk, mapped into memory, and are read where they are touched;
Parquet has no such access and is decoded into memory whole. Cost: about a microsecond a sample, and its copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from lengthwise._core import LengthwiseError
from lengthwise.sources import open_source
from lengthwise.sources.base import reading
from lengthwise.sources.columns import LIST_NAMES
from lengthwise.sources.nested import nested
from lengthwise.sources.parquet import ParquetSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from lengthwise.offline.rows import Pieces
    from lengthwise.sources.base import Field, Source

#: Columns that go with the tokens, value by value, where the data set has them.
COMPANIONS: Final = ("labels", "loss_mask")


class _Chunk(NamedTuple):
    """Rows of a list column: row i is values[offsets[i] : offsets[i + 1]], bit by bit where `bits`."""

    values: npt.NDArray[Any]
    offsets: npt.NDArray[np.int64]
    bits: bool

    def slice(self, start: int, stop: int) -> npt.NDArray[Any]:
        if not self.bits:
            return self.values[start:stop]
        unpacked = np.unpackbits(self.values[start // 8 : (stop + 7) // 8], bitorder="little")
        return unpacked[start % 8 : start % 8 + stop - start]


class TokenColumn:
    """One list column of a data set.

    Attributes:
        name: its name.
        lengths: int64[n], values of every row.
        dtype: of the values; uint8 where they are truth values.
    """

    def __init__(self, source: Source, field: Field) -> None:
        self.name = field.path
        self._order = source.order
        self._chunks = [
            _chunk(chunk, field, source) for part in _parts(source, field) for chunk in _chunks(part) if len(chunk)
        ]
        counts = [np.diff(chunk.offsets) for chunk in self._chunks]
        stored = np.concatenate(counts) if counts else np.empty(0, np.int64)
        self.lengths: npt.NDArray[np.int64] = stored if self._order is None else stored[self._order]
        self._firsts = np.cumsum([0, *(len(count) for count in counts)])
        self.dtype = self._chunks[0].values.dtype if self._chunks else np.dtype(np.int32)

    def take(self, pieces: Pieces) -> npt.NDArray[Any]:
        """Return the values of pieces of samples, one after another."""
        rows = pieces.samples if self._order is None else self._order[pieces.samples]
        chunks = np.searchsorted(self._firsts, rows, side="right") - 1
        within = rows - self._firsts[chunks]
        places = zip(*(each.tolist() for each in (chunks, within, pieces.starts, pieces.stops)), strict=True)
        parts = [self._part(*place) for place in places]
        return np.concatenate(parts) if parts else np.empty(0, self.dtype)

    def _part(self, chunk: int, row: int, start: int, stop: int) -> npt.NDArray[Any]:
        found = self._chunks[chunk]
        first = int(found.offsets[row])
        return found.slice(first + start, first + stop)


@dataclass(frozen=True)
class Tokens:
    """The tokens of a data set, and what goes with them value by value.

    Attributes:
        ids: the tokens.
        labels: what to predict, None where the data set does not say.
        loss_mask: where to predict, None where it does not say.
    """

    ids: TokenColumn
    labels: TokenColumn | None
    loss_mask: TokenColumn | None

    @classmethod
    def open(cls, source: Any, column: str | None = None) -> Tokens:
        """Open the columns of a data set.

        Args:
            source: what `read_lengths` reads, in a format that holds tokens: a saved data set, Arrow or Parquet.
            column: the list column of tokens; by default the first of the usual names, `input_ids` before all.

        Raises:
            LengthwiseError: there is no such column, it holds nulls or no numbers, or a companion has other lengths.
        """
        opened = open_source(source)
        lists = {field.path: field for field in opened.fields if field.kind == "list"}
        name = column or next((name for name in LIST_NAMES if name in lists), None)
        if name not in lists:
            asked = f"no list column {name!r}" if name else "no list column of tokens with a usual name"
            raise LengthwiseError(f"{opened.where} has {asked}; it has {', '.join(map(repr, lists)) or 'none'}")
        ids = TokenColumn(opened, lists[name])
        labels, loss_mask = (
            _companion(opened, lists[other], ids) if other in lists and other != name else None for other in COMPANIONS
        )
        return cls(ids, labels, loss_mask)


def _companion(source: Source, field: Field, ids: TokenColumn) -> TokenColumn:
    companion = TokenColumn(source, field)
    differing = np.flatnonzero(companion.lengths != ids.lengths)
    if differing.size:
        row = int(differing[0])
        raise LengthwiseError(
            f"{source.where} has {companion.lengths[row]} values of {field.path!r} in row {row}, but "
            f"{ids.lengths[row]} of {ids.name!r}; they must be equally long"
        )
    return companion


def _parts(source: Source, field: Field) -> Iterator[Any]:
    """Yield the column with its values, which the reader of lengths leaves out where the format allows it."""
    if not isinstance(source, ParquetSource):
        yield from source.values(field)
        return
    import pyarrow.parquet as pq

    for file in source.files:
        with reading(str(file.item), "it may be truncated or damaged: write it again"):
            yield nested(pq.read_table(file.item.open(), columns=[field.path]), field.path)


def _chunks(part: Any) -> list[Any]:
    return list(part.chunks) if hasattr(part, "chunks") else [part]


def _chunk(chunk: Any, field: Field, source: Source) -> _Chunk:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not hasattr(chunk, "null_count"):
        raise LengthwiseError(f"{source.where} ({source.format}) gives lengths, but no tokens to pack")
    values = chunk.flatten()
    if chunk.null_count or values.null_count:
        raise LengthwiseError(f"{source.where} has nulls in {field.path!r}; replace or drop them before packing")
    counts = np.from_dlpack(pc.list_value_length(chunk).cast(pa.int64()))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    if pa.types.is_boolean(values.type):
        bits = np.frombuffer(values.buffers()[1], np.uint8) if len(values) else np.empty(0, np.uint8)
        return _Chunk(bits, offsets + values.offset, bits=True)
    if not pa.types.is_integer(values.type) and not pa.types.is_floating(values.type):
        raise LengthwiseError(f"{source.where} has {values.type} in {field.path!r}, but tokens must be numbers")
    return _Chunk(np.from_dlpack(values), offsets, bits=False)
