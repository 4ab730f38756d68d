"""Arrow data in memory or in motion, and what every Arrow-based format shares: fields of a schema, lengths of a column.

The lengths of a list column are the differences of its offsets (or its sizes, for list views): pyarrow computes them
without looking at a value. Every column is validated first, in constant time a chunk, since offsets that come from a
damaged file would otherwise be followed out of bounds.

Anything with `__arrow_c_stream__` or `__arrow_c_array__` is taken: https://arrow.apache.org/docs/format/CDataInterface
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lengthwise._core import LengthwiseError
from lengthwise.sources.base import Field, Kind, Source, reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

#: How deep structs are searched for fields.
MAX_DEPTH: Final = 8
#: No run-length or fixed-size encoding may claim more rows than this, however few bytes it takes.
MAX_ROWS: Final = 1 << 36
#: A column of nulls takes no bytes at all.
MAX_NULLS: Final = 1 << 32
ADVICE: Final = "check how it was made"


class ArrowSource(Source):
    """A table in memory."""

    format = "Arrow"

    def __init__(self, where: str, table: pa.Table) -> None:
        self.where = where
        self.table = table
        self.rows = table.num_rows
        self.fields = schema_fields(table.schema)

    def read(self, field: Field, skip: int = 0) -> Iterator[pa.ChunkedArray]:
        """Yield the column, whole."""
        if skip == 0:
            yield nested(self.table, field.path)

    def sample(self, field: Field) -> Iterator[tuple[int, pa.ChunkedArray]]:
        """Yield rows from the start, the middle and the end."""
        rows = self.table.num_rows
        for start in sorted({0, max(0, rows // 2 - 32), max(0, rows - 64)}):
            yield start, nested(self.table.slice(start, 64), field.path)


class ColumnSource(Source):
    """One column in memory, which has no name."""

    format = "Arrow"

    def __init__(self, where: str, column: pa.ChunkedArray) -> None:
        self.where = where
        self.column = column
        self.rows = len(column)
        self.fields = [Field("", kind_of(column.type), str(column.type))]

    def read(self, field: Field, skip: int = 0) -> Iterator[pa.ChunkedArray]:  # noqa: ARG002 - there is only one
        """Yield the column, whole."""
        if skip == 0:
            yield self.column


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

        top = self.dataset.schema.names[top_level(self.dataset.schema, field.path) or 0]
        with reading(self.where, ADVICE):
            for index, batch in enumerate(self.dataset.scanner(columns=[top]).to_batches()):
                if index >= skip:
                    yield nested(pa.Table.from_batches([batch]), field.path)


def open(source: Any) -> Source | None:  # noqa: A001 - the name of the format's entry point
    """Open pyarrow objects and whatever speaks the Arrow C interface."""
    where = f"{type(source).__module__.split('.')[0]}.{type(source).__name__}"
    if any(base.__module__ == "pyarrow._dataset" for base in type(source).__mro__):
        return DatasetSource(where, source) if hasattr(source, "scanner") else _stream(where, source)
    if not hasattr(source, "__arrow_c_stream__") and not hasattr(source, "__arrow_c_array__"):
        return None
    import pyarrow as pa

    if isinstance(source, pa.Table):
        return ArrowSource(where, source)
    if hasattr(source, "read_next_batch") and hasattr(source, "schema"):
        return StreamSource(where, source, source.schema)
    with reading(where, ADVICE):
        if isinstance(source, pa.ChunkedArray):
            column = source
        else:
            column = pa.chunked_array(source if hasattr(source, "__arrow_c_stream__") else [pa.array(source)])
        if not pa.types.is_struct(column.type):
            return ColumnSource(where, column)
        batches = [pa.RecordBatch.from_struct_array(chunk) for chunk in column.chunks]
        return ArrowSource(where, pa.Table.from_batches(batches, pa.schema(list(column.type))))


def _stream(where: str, scanner: Any) -> StreamSource:
    reader = scanner.to_reader()
    return StreamSource(where, reader, reader.schema)


def schema_fields(schema: pa.Schema) -> list[Field]:
    """Return the fields of a schema, those inside structs after the column they are in."""
    return [Field(path, kind_of(type_), str(type_)) for path, type_ in schema_types(schema)]


def schema_types(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    """Return the paths of the fields of a schema and their types, in the same order."""
    found: list[tuple[str, pa.DataType]] = []
    for column in schema:
        _walk(column.name, column.type, 0, found)
    return found


def _walk(path: str, type_: pa.DataType, depth: int, found: list[tuple[str, pa.DataType]]) -> None:
    import pyarrow as pa

    found.append((path, type_))
    if pa.types.is_struct(type_) and depth < MAX_DEPTH:
        for child in type_:
            _walk(f"{path}.{child.name}", child.type, depth + 1, found)


def kind_of(type_: pa.DataType) -> Kind:
    """Return how a column of this type gives lengths."""
    import pyarrow as pa
    from pyarrow import types

    if isinstance(type_, pa.BaseExtensionType):
        return kind_of(type_.storage_type)
    if types.is_dictionary(type_) or _is(type_, "run_end_encoded"):
        return "integer" if types.is_integer(type_.value_type) else "other"
    if types.is_integer(type_):
        return "integer"
    # A column of nulls may be an empty dataset's lists.
    if is_list(type_) or types.is_null(type_):
        return "list"
    return "bytes" if _is_bytes(type_) else "other"


def is_list(type_: pa.DataType) -> bool:
    """Whether a type is one of Arrow's five kinds of list."""
    return _is(type_, "list", "large_list", "fixed_size_list", "list_view", "large_list_view")


def _is_bytes(type_: pa.DataType) -> bool:
    return _is(type_, "string", "large_string", "string_view", "binary", "large_binary", "binary_view")


def _is(type_: pa.DataType, *names: str) -> bool:
    # Older releases of pyarrow lack the newer types.
    from pyarrow import types

    return any(getattr(types, f"is_{name}", lambda _: False)(type_) for name in names)


def top_level(schema: pa.Schema, path: str) -> int | None:
    """Return the index of the column that is called `path`, or that a dotted path starts in."""
    names = schema.names
    if path in names:
        return int(names.index(path))
    return next((index for index, name in enumerate(names) if path.startswith(f"{name}.")), None)


def nested(table: pa.Table, path: str) -> pa.ChunkedArray:
    """Return the column called `path`, or the field that it leads to; a field of a null struct is null."""
    import pyarrow.compute as pc

    index = top_level(table.schema, path)
    if index is None:
        raise LengthwiseError(f"there is no column {path!r}")
    name = table.schema.names[index]
    column = table.column(index)
    if name == path:
        return column
    column.validate()
    steps: list[str] = []
    type_ = column.type
    rest = path[len(name) + 1 :]
    while rest:
        # Names inside structs may have dots as well: take the one that leads on.
        step = next((child.name for child in type_ if rest == child.name or rest.startswith(f"{child.name}.")), None)
        if step is None:
            raise LengthwiseError(f"there is no field {rest!r} in {type_}")
        steps.append(step)
        type_ = type_.field(step).type
        rest = rest[len(step) + 1 :]
    return pc.struct_field(column, steps)


def storage(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return what is stored in a column of an extension type, and any other column as it is."""
    import pyarrow as pa

    if not isinstance(column.type, pa.BaseExtensionType):
        return column
    return pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)


def measure(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the lengths in a validated column as integers, null where it is null; integers are returned as they are.

    Raises:
        pyarrow.ArrowInvalid: the buffers contradict each other.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import types

    if len(column) > (MAX_NULLS if types.is_null(column.type) else MAX_ROWS):
        raise LengthwiseError(f"the column claims {len(column)} rows")
    type_ = column.type
    if types.is_integer(type_):
        return column
    if types.is_dictionary(type_):
        column.validate(full=True)
        return column.cast(type_.value_type)
    if _is(type_, "run_end_encoded"):
        column.validate(full=True)
        return pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], type_.value_type)
    if types.is_null(type_):
        return column.cast(pa.int32())
    if is_list(type_):
        return pc.list_value_length(column)
    return pc.binary_length(column.cast(pa.large_binary()) if _is(type_, "string_view", "binary_view") else column)
