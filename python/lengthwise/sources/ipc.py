"""Arrow IPC files and streams (also called Feather 2; what `datasets` caches and saves).

Files are memory-mapped and only the buffers of one column are looked at: opening walks the headers of the record
batches, about 7 microseconds each, and leaves the tokens on disk. Compressed buffers are decompressed, and then not
zero-copy.

Source: https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
"""

from __future__ import annotations

from os import SEEK_END
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lengthwise._core import LengthwiseError
from lengthwise.sources.base import Field, reading
from lengthwise.sources.files import FilesSource, Location, Paths, ends_and_middle
from lengthwise.sources.folders import files_of
from lengthwise.sources.nested import nested
from lengthwise.sources.schema import require, schema_fields, top_level

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

FILE_MAGIC = b"ARROW1"
STREAM_MAGIC = b"\xff\xff\xff\xff"
STREAM_END = STREAM_MAGIC + b"\x00\x00\x00\x00"
OLD_FEATHER = b"FEA1"
#: Rows that are looked at in a file to see whether stored lengths are those of the lists beside them.
SOME = 256
ADVICE = "it may be truncated or damaged: write it again"


class IpcSource(FilesSource):
    """One dataset in one or several Arrow IPC files, read in the order given."""

    def __init__(self, where: str, items: Sequence[Location], format: str = "Arrow IPC") -> None:  # noqa: A002
        self.where = where
        self.format = format
        self.items = items
        self.fields: Sequence[Field] = []
        self.counts: dict[int, int] = {}
        if items:
            with reading(str(items[0]), ADVICE):
                self.fields = schema_fields(_reader(_memory(items[0])).schema)

    def read(self, field: Field, skip: int = 0) -> Iterator[pa.ChunkedArray]:
        """Yield the column of each file."""
        for index, item in enumerate(self.items[skip:], skip):
            with reading(str(item), ADVICE):
                column = nested(_opened(item, field).read_all(), field.path)
            self.counts[index] = len(column)
            yield column

    def doubt(self) -> str | None:
        """Return which stream lacks an end mark: the format allows that, but so ends what a dying writer leaves."""
        for item in (item for item in self.items if item.local is not None):
            with reading(str(item), ADVICE), Path(item.path).open("rb") as file:
                streams = file.read(len(STREAM_MAGIC)) == STREAM_MAGIC
                file.seek(-len(STREAM_END), SEEK_END)
                if streams and file.read() != STREAM_END:
                    return f"{item.name} ends without an end mark; was its writer interrupted, and are rows missing?"
        return None

    def sample(self, field: Field) -> Iterator[tuple[int, pa.ChunkedArray]]:
        """Yield the start of a few files, as far as it is known at which row they start."""
        for index in ends_and_middle(len(self.items)):
            if all(before in self.counts for before in range(index)):
                item = self.items[index]
                with reading(str(item), ADVICE):
                    part = _first_rows(item, field)
                if part is not None:
                    yield sum(self.counts[before] for before in range(index)), part


def open(source: Any) -> IpcSource | None:  # noqa: A001 - the name of the format's entry point
    """Open files that start as Arrow files or streams do, or a folder of *.arrow or *.feather files."""
    if not isinstance(source, Paths):
        return None
    if items := files_of(source, "Arrow"):
        return IpcSource(source.where, items)
    if source.starting(FILE_MAGIC, STREAM_MAGIC):
        return IpcSource(source.where, source.items)
    if source.starting(OLD_FEATHER):
        raise LengthwiseError(f"{source.where} is a Feather file of version 1; write it again with version 2")
    return None


def open_file(path: str) -> Any:
    """Return the reader of a file or a stream."""
    return _reader(_memory(Location(path)))


def _opened(item: Location, field: Field) -> Any:
    """Return a reader of the one column that holds a field, in a file that must have it."""
    file = _memory(item)
    schema = _reader(file).schema
    require(schema, field, item)
    # To leave out nothing would take pyarrow a microsecond more a batch.
    return _reader(file, [top_level(schema, field.path)] if len(schema) > 1 else None)


def _first_rows(item: Location, field: Field) -> pa.ChunkedArray | None:
    import pyarrow as pa

    reader = _opened(item, field)
    stream = hasattr(reader, "read_next_batch")
    if not stream and not reader.num_record_batches:
        return None
    batch = next(iter(reader), None) if stream else reader.get_batch(0)
    return batch and nested(pa.Table.from_batches([batch.slice(0, SOME)]), field.path)


def _memory(item: Location) -> Any:
    """Return a file to be read: a local one as mapped memory, where pyarrow finds batches a fifth sooner."""
    import pyarrow as pa

    file = item.open()
    return pa.BufferReader(file.read_buffer()) if isinstance(file, pa.MemoryMappedFile) else file


def _reader(file: Any, included: list[int] | None = None) -> Any:
    import pyarrow as pa

    file.seek(0)
    reader = pa.ipc.open_file if file.read(len(FILE_MAGIC)) == FILE_MAGIC else pa.ipc.open_stream
    file.seek(0)
    return reader(file, options=pa.ipc.IpcReadOptions(included_fields=included))
