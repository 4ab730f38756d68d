"""The fields of an Arrow schema, and how each gives lengths."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from lengthwise._core import LengthwiseError
from lengthwise.sources.base import Field, Holds, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

#: Types by their names in Arrow.
LISTS: Final = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")
BYTES: Final = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
INTEGERS: Final = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
#: How deep structs and lists are searched for fields.
MAX_DEPTH: Final = 8


class Node(NamedTuple):
    """A column, or a field inside of one.

    Attributes:
        path: the names that lead to it, joined by dots.
        type: its type.
        leaf: how many flat columns (as Parquet stores them) come before it.
        around: how many lists it is inside of.
    """

    path: str
    type: pa.DataType
    leaf: int
    around: int


def walk(schema: pa.Schema) -> Iterator[Node]:
    """Yield the columns of a schema, and the fields inside structs and lists after the column they are in."""
    leaf = 0
    for column in schema:
        yield from _walk_column(column, leaf)
        leaf += leaves(column.type)


def _walk_column(column: pa.Field, leaf: int) -> Iterator[Node]:
    return _walk(Node(column.name, column.type, leaf, 0), MAX_DEPTH)


def _walk(node: Node, depth: int) -> Iterator[Node]:
    yield node
    path, type_, leaf, around = node
    if is_list(type_):
        around, value = around + 1, type_.value_field
        # The items of a list of lists have a name of their own; those of a list of structs are named by its fields.
        children = [value] if is_list(value.type) else list(value.type) if is_any(value.type, "struct") else []
    else:
        children = list(type_) if is_any(type_, "struct") else []
    for child in children if depth else []:
        yield from _walk(Node(f"{path}.{child.name}", child.type, leaf, around), depth - 1)
        leaf += leaves(child.type)


def leaves(type_: pa.DataType) -> int:
    """Return how many flat columns a type is stored in by Parquet."""
    if _kinds().get(type_.id) in {"integer", "bytes"}:
        return 1
    if is_list(type_):
        return leaves(type_.value_type)
    if is_any(type_, "map"):
        return leaves(type_.key_type) + leaves(type_.item_type)
    if is_any(type_, "struct"):
        return sum(leaves(child.type) for child in type_)
    return leaves(type_.storage_type) if _is_extension(type_) else 1


def schema_fields(schema: pa.Schema) -> list[Field]:
    """Return what could give lengths."""
    return [Field(path, kind_of(type_), type_, around > 0, _holds(type_)) for path, type_, _, around in walk(schema)]


def _holds(type_: pa.DataType) -> Holds:
    """Return what the lists of a column are of."""
    kinds = _kinds()
    if kinds.get(type_.id) != "list":
        return "tokens"
    while kinds.get(type_.id) == "list" and not is_any(type_, "na"):
        type_ = type_.value_type
    kind = kinds.get(type_.id)
    return "text" if kind == "bytes" else "records" if kind is None and is_any(type_, "struct", "map") else "tokens"


def column_field(name: str, type_: pa.DataType) -> Field:
    """Return a column as a field."""
    return Field(name, kind_of(type_), type_, holds=_holds(type_))


def is_flat_list(type_: pa.DataType) -> bool:
    """Whether a column of this type is of lists that have no fields inside, of integers or text."""
    return is_list(type_) and _kinds().get(type_.value_type.id) in {"integer", "bytes"}


def require(schema: pa.Schema, field: Field, where: object) -> None:
    """Refuse a file of a dataset that lacks a field, or has another kind of it.

    Raises:
        LengthwiseError: it does.
    """
    if field.kind not in {found.kind for found in schema_fields(schema) if found.path == field.path}:
        raise LengthwiseError(
            f"{where} has no {field.kind} column {field.path!r}, which the first file has; write all with one schema"
        )


def kind_of(type_: pa.DataType) -> Kind:
    """Return how a column of this type gives lengths."""
    kind = _kinds().get(type_.id)
    if kind is not None:
        return kind
    if _is_extension(type_):
        return kind_of(type_.storage_type)
    encoded = is_any(type_, "dictionary", "run_end_encoded")
    return "integer" if encoded and kind_of(type_.value_type) == "integer" else "other"


@cache
def _kinds() -> dict[int, Kind]:
    # A column of nulls may be an empty dataset's lists.
    names: dict[Kind, tuple[str, ...]] = {"integer": INTEGERS, "list": (*LISTS, "na"), "bytes": BYTES}
    return {number: kind for kind, types in names.items() for number in _ids(types)}


def is_list(type_: pa.DataType) -> bool:
    """Whether a type is one of Arrow's five kinds of list."""
    return is_any(type_, *LISTS)


def list_format(type_: pa.DataType) -> str | None:
    """Return the name of a type of lists in Arrow's C interface, None for any other type."""
    return f"+w:{type_.list_size}" if is_any(type_, "fixed_size_list") else _list_formats().get(type_.id)


@cache
def _list_formats() -> dict[int, str]:
    names = {"list": "+l", "large_list": "+L", "list_view": "+vl", "large_list_view": "+vL"}
    return {number: format_ for name, format_ in names.items() for number in _ids((name,))}


def is_any(type_: pa.DataType, *names: str) -> bool:
    """Whether a type is one of those named."""
    return type_.id in _ids(names)


def _is_extension(type_: pa.DataType) -> bool:
    import pyarrow as pa

    return isinstance(type_, pa.BaseExtensionType)


@cache
def _ids(names: tuple[str, ...]) -> frozenset[int]:
    # Older releases of pyarrow lack the newer types.
    from pyarrow import lib

    found = (getattr(lib, f"Type_{name.upper()}", None) for name in names)
    return frozenset(number for number in found if number is not None)


def top_level(schema: pa.Schema, path: str) -> int:
    """Return the index of the column that is called `path`, or that a dotted path starts in.

    Raises:
        LengthwiseError: there is none.
    """
    names = schema.names
    if path in names:
        return int(names.index(path))
    # Names may have dots as well: it is in the column that leads on. Maybe none does: pyarrow calls what is in lists of
    # lists "item" where it reads some columns of a Parquet file, and as the file does ("element") where it reads all.
    starts = [index for index, name in enumerate(names) if path.startswith(f"{name}.")]
    if not starts:
        raise LengthwiseError(f"there is no column {path!r}")
    return next((i for i in starts if any(node.path == path for node in _walk_column(schema.field(i), 0))), starts[0])
