"""Arrow arrays and tables in memory, and what every Arrow-based format shares: fields of a schema, lengths of a column.

The lengths of a list column are the differences of its offsets (or its sizes, for list views): pyarrow computes them
without looking at a value. Every column is validated first, in constant time a chunk, since offsets that come from a
damaged file would otherwise be followed out of bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lengthwise._core import LengthwiseError
from lengthwise.sources.base import Field, Kind, reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

#: How deep structs are searched for fields.
MAX_DEPTH = 8


class ArrowSource:
    """Columns in memory, by name."""

    format = "Arrow"
    order = None
    reads_values = False

    def __init__(self, where: str, table: pa.Table) -> None:
        self.where = where
        self.table = table
        self.rows: int | None = table.num_rows
        self.fields: Sequence[Field] = schema_fields(table.schema)

    def read(self, field: Field) -> Iterator[pa.ChunkedArray]:
        """Yield the column, whole."""
        yield nested(self.table, field.path)


def open(source: Any) -> ArrowSource | None:  # noqa: A001 - the name of the format's entry point
    """Open pyarrow objects; their type's module says so, without importing pyarrow."""
    if not type(source).__module__.startswith("pyarrow"):
        return None
    import pyarrow as pa

    where = f"pyarrow.{type(source).__name__}"
    with reading(where, "pass a table, an array or a reader"):
        if isinstance(source, (pa.Array, pa.ChunkedArray)):
            columns = source if isinstance(source, pa.ChunkedArray) else pa.chunked_array([source])
            return ArrowSource(where, pa.table({"": columns}))
        if isinstance(source, pa.RecordBatch):
            return ArrowSource(where, pa.Table.from_batches([source]))
        if isinstance(source, pa.Table):
            return ArrowSource(where, source)
    return None


def schema_fields(schema: pa.Schema) -> list[Field]:
    """Return the fields of a schema, those inside structs after the column they are in."""
    found: list[Field] = []
    for column in schema:
        _walk(column.name, column.type, 0, found)
    return found


def _walk(path: str, type_: pa.DataType, depth: int, found: list[Field]) -> None:
    import pyarrow as pa

    found.append(Field(path, kind_of(type_), str(type_)))
    if pa.types.is_struct(type_) and depth < MAX_DEPTH:
        for child in type_:
            _walk(f"{path}.{child.name}", child.type, depth + 1, found)


def kind_of(type_: pa.DataType) -> Kind:
    """Return how a column of this type gives lengths."""
    from pyarrow import types

    if isinstance(getattr(type_, "storage_type", None), type(type_).__mro__[-2]):
        return kind_of(type_.storage_type)
    if types.is_dictionary(type_) or types.is_run_end_encoded(type_):
        return "integer" if types.is_integer(type_.value_type) else "other"
    if types.is_integer(type_):
        return "integer"
    if _is_list(type_):
        return "list"
    return "bytes" if _is_bytes(type_) else "other"


def _is_list(type_: pa.DataType) -> bool:
    from pyarrow import types

    tests = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
    return any(getattr(types, test)(type_) for test in tests if hasattr(types, test))


def _is_bytes(type_: pa.DataType) -> bool:
    from pyarrow import types

    tests = ("is_string", "is_large_string", "is_string_view", "is_binary", "is_large_binary", "is_binary_view")
    return any(getattr(types, test)(type_) for test in tests if hasattr(types, test))


def nested(table: pa.Table, path: str) -> pa.ChunkedArray:
    """Return the column called `path`, or the field that it leads to; a field of a null struct is null."""
    import pyarrow.compute as pc

    index = table.schema.get_field_index(path)
    if index >= 0:
        return table.column(index)
    name, *steps = path.split(".")
    while table.schema.get_field_index(name) < 0:
        if not steps:
            raise LengthwiseError(f"there is no column {path!r}")
        name = f"{name}.{steps.pop(0)}"
    column = table.column(table.schema.get_field_index(name))
    return pc.struct_field(column, steps) if steps else column


def measure(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the lengths in a column as integers, null where it is null; integers are returned as they are.

    Raises:
        pyarrow.ArrowInvalid: the buffers contradict each other.
    """
    import pyarrow.compute as pc
    from pyarrow import types

    type_ = column.type
    if types.is_dictionary(type_) or types.is_run_end_encoded(type_):
        column.validate(full=True)
        return column.cast(type_.value_type) if types.is_dictionary(type_) else pc.run_end_decode(column)
    column.validate()
    if types.is_integer(type_):
        return column
    if _is_list(type_):
        return pc.list_value_length(column)
    return pc.binary_length(column)
