"""Arrow data in memory or in motion.

Anything with `__arrow_c_stream__` or `__arrow_c_array__` is taken: https://arrow.apache.org/docs/format/CDataInterface
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lengthwise.sources.base import Field, Source, described, reading
from lengthwise.sources.nested import nested
from lengthwise.sources.schema import kind_of, schema_fields, top_level

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

ADVICE: Final = "check how it was made"


class ArrowSource(Source):
    """A table or a record batch in memory."""

    format = "Arrow"
    whole = True

    def __init__(self, where: str, table: pa.Table | pa.RecordBatch) -> None:
        self.where = where
        self.table = table
        self.rows = table.num_rows
        self.fields = schema_fields(table.schema)

    def read(self, field: Field, skip: int = 0) -> Iterable[pa.ChunkedArray | pa.Array]:
        """Return the column, whole."""
        if skip:
            return ()
        try:
            return (nested(self.table, field.path),)
        except Exception as error:
            raise described(error, self.where, ADVICE) from error

    def sample(self, field: Field) -> Iterator[tuple[int, pa.ChunkedArray]]:
        """Yield rows from the start, the middle and the end."""
        rows = self.table.num_rows
        for start in sorted({0, max(0, rows // 2 - 32), max(0, rows - 64)}):
            yield start, nested(self.table.slice(start, 64), field.path)


class ColumnSource(Source):
    """One column in memory, which has no name."""

    format = "Arrow"
    whole = True

    def __init__(self, where: str, column: pa.ChunkedArray | pa.Array) -> None:
        type_ = column.type
        self.where = where
        self.column = column
        self.rows = len(column)
        self.fields = (Field("", kind_of(type_), type_),)

    def read(self, field: Field, skip: int = 0) -> Iterable[pa.ChunkedArray | pa.Array]:  # noqa: ARG002 - there is only one
        """Return the column, whole."""
        return () if skip else (self.column,)


class StreamSource(Source):
    """Record batches that come one after the other, and only once."""

    format = "Arrow stream"
    once = True

    def __init__(self, where: str, reader: Any, schema: pa.Schema) -> None:
        self.where = where
        self.reader = reader
        self.fields = schema_fields(schema)

    def read(self, field: Field, skip: int = 0) -> Iterator[pa.ChunkedArray]:
        """Yield the column of each batch."""
        import pyarrow as pa

        with reading(self.where, ADVICE):
            for index, batch in enumerate(self.reader):
                if index >= skip:
                    yield nested(pa.Table.from_batches([batch]), field.path)


class DatasetSource(Source):
    """A `pyarrow.dataset.Dataset`; one with a filter skips the row groups that the filter excludes."""

    format = "pyarrow.dataset"
    reads_values = True

    def __init__(self, where: str, dataset: Any) -> None:
        self.where = where
        self.dataset = dataset
        self.fields = schema_fields(dataset.schema)

    def read(self, field: Field, skip: int = 0) -> Iterator[pa.ChunkedArray]:
        """Yield the column of each batch."""
        import pyarrow as pa

        top = self.dataset.schema.names[top_level(self.dataset.schema, field.path)]
        with reading(self.where, ADVICE):
            for index, batch in enumerate(self.dataset.scanner(columns=[top]).to_batches()):
                if index >= skip:
                    yield nested(pa.Table.from_batches([batch]), field.path)


def open(source: Any) -> Source | None:  # noqa: A001 - the name of the format's entry point
    """Open pyarrow objects and whatever speaks the Arrow C interface."""
    kind = type(source)
    where = f"{kind.__module__.split('.')[0]}.{kind.__name__}"
    if not hasattr(source, "__arrow_c_stream__") and not hasattr(source, "__arrow_c_array__"):
        return _dataset(where, source)
    import pyarrow as pa

    if isinstance(source, (pa.ChunkedArray, pa.Array)):
        return _column(where, source)
    if isinstance(source, (pa.Table, pa.RecordBatch)):
        return ArrowSource(where, source)
    if hasattr(source, "read_next_batch") and hasattr(source, "schema"):
        return StreamSource(where, source, source.schema)
    return _dataset(where, source) or _converted(where, source)


def _converted(where: str, source: Any) -> Source:
    """Return what another library hands over."""
    import pyarrow as pa

    with reading(where, ADVICE):
        streams = hasattr(source, "__arrow_c_stream__")
        return _column(where, pa.chunked_array(source) if streams else pa.array(source))


def _column(where: str, column: pa.ChunkedArray | pa.Array) -> Source:
    """Return a column as a source; one of structs is a table, as the C interface has no other way to hand one over."""
    opened = ColumnSource(where, column)
    if opened.fields[0].kind != "other":
        return opened
    import pyarrow as pa

    if not pa.types.is_struct(column.type):
        return opened
    with reading(where, ADVICE):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        batches = [pa.RecordBatch.from_struct_array(chunk) for chunk in chunks]
        return ArrowSource(where, pa.Table.from_batches(batches, pa.schema(list(column.type))))


def _dataset(where: str, source: Any) -> Source | None:
    """Return a `pyarrow.dataset` or a scan of one as a source, None for anything else."""
    if not any(base.__module__ == "pyarrow._dataset" for base in type(source).__mro__):
        return None
    return DatasetSource(where, source) if hasattr(source, "scanner") else _stream(where, source)


def _stream(where: str, scanner: Any) -> StreamSource:
    reader = scanner.to_reader()
    return StreamSource(where, reader, reader.schema)
