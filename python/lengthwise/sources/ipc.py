"""Arrow IPC files and streams (also called Feather 2; what `datasets` caches and saves).

Files are memory-mapped and only the buffers of one column are looked at: opening walks the headers of the record
batches, about 7 microseconds each, and leaves the tokens on disk. Compressed buffers are decompressed, and then not
zero-copy.

Source: https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lengthwise._core import LengthwiseError
from lengthwise.sources.arrow import nested, schema_fields
from lengthwise.sources.base import Field, reading
from lengthwise.sources.files import as_path, first_bytes, mapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

FILE_MAGIC = b"ARROW1"
STREAM_MAGIC = b"\xff\xff\xff\xff"
ADVICE = "it may be truncated or damaged: write it again"


class IpcSource:
    """One dataset in one or several Arrow IPC files, read in the order given."""

    reads_values = False
    rows = None
    order = None

    def __init__(self, where: str, paths: Sequence[Path], format: str = "Arrow IPC") -> None:  # noqa: A002
        self.where = where
        self.format = format
        self.paths = paths
        self.fields: Sequence[Field] = []
        if paths:
            with reading(str(paths[0]), ADVICE):
                self.fields = schema_fields(_open(paths[0], None).schema)

    def read(self, field: Field) -> Iterator[pa.ChunkedArray]:
        """Yield the column of each file."""
        for path in self.paths:
            with reading(str(path), ADVICE):
                column = read_column(path, field.path)
            yield column


def open(source: Any) -> IpcSource | None:  # noqa: A001 - the name of the format's entry point
    """Open a path whose first bytes are those of an Arrow file or stream."""
    path = as_path(source)
    if path is None or not path.is_file():
        return None
    start = first_bytes(path)
    if start.startswith((FILE_MAGIC, STREAM_MAGIC)):
        return IpcSource(str(path), [path])
    return None


def read_column(path: Path, name: str) -> pa.ChunkedArray:
    """Return one column of a file; the others stay unread."""
    schema = _open(path, None).schema
    top = next((i for i, top in enumerate(schema.names) if name == top or name.startswith(f"{top}.")), None)
    if top is None:
        raise LengthwiseError(
            f"{path} has no column {name!r}, which the first file of the dataset has; write all with one schema"
        )
    return nested(_open(path, [top]).read_all(), name)


def _open(path: Path, included: list[int] | None) -> Any:
    import pyarrow as pa

    file = mapped(path)
    options = pa.ipc.IpcReadOptions(included_fields=included)
    if first_bytes(path).startswith(FILE_MAGIC):
        return pa.ipc.open_file(file, options=options)
    return pa.ipc.open_stream(file, options=options)
