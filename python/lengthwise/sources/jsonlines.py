"""JSON lines: one object a line, with a list of tokens or a stored length.

A length pass: every byte is parsed, by pyarrow and in blocks, but only the one column is converted. Compressed files
(.gz, .bz2, .zst, .lz4) are decompressed on the way.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from lengthwise._core import LengthwiseError
from lengthwise.sources.base import Field, reading
from lengthwise.sources.files import FilesSource, Location, Paths
from lengthwise.sources.folders import NAMES, files_of
from lengthwise.sources.nested import nested
from lengthwise.sources.schema import schema_fields, top_level

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

SUFFIXES: Final = (".json", *(name[1:] for name in NAMES["JSON lines"]))
ADVICE: Final = "write one object a line, all of one shape"
#: Lines that are looked at to learn the columns.
LINES: Final = 64
BLOCK: Final = 1 << 24


class JsonLinesSource(FilesSource):
    """One dataset in one or several JSON lines files."""

    format = "JSON lines"
    reads_values = True

    def __init__(self, where: str, items: Sequence[Location]) -> None:
        import pyarrow as pa

        self.where = where
        self.items = items
        columns = _columns(items[0])
        self.schema = pa.schema((name, type_) for name, type_ in columns.items() if isinstance(type_, pa.DataType))
        # Values of several types are of none; only when they are asked for does that matter.
        odd = [Field(name, "other", type_) for name, type_ in columns.items() if isinstance(type_, str)]
        self.fields = [*schema_fields(self.schema), *odd]

    def read(self, field: Field, skip: int = 0) -> Iterator[pa.ChunkedArray]:
        """Yield the column of each file, block by block."""
        for item in self.items:
            with reading(str(item), ADVICE):
                for table in _tables(item, self.schema.field(top_level(self.schema, field.path))):
                    if skip:
                        skip -= 1
                        continue
                    yield nested(table, field.path)

    def sample(self, field: Field) -> Iterator[tuple[int, pa.ChunkedArray]]:
        """Yield the rows of the first block, which is small beside the pass over all of them."""
        with reading(str(self.items[0]), ADVICE):
            table = next(_tables(self.items[0], self.schema.field(top_level(self.schema, field.path))), None)
            if table is not None:
                yield 0, nested(table, field.path)


def open(source: Any) -> JsonLinesSource | None:  # noqa: A001 - the name of the format's entry point
    """Open files called *.jsonl, *.ndjson or *.json, compressed or not, or a folder of them (of *.json, compressed)."""
    if not isinstance(source, Paths):
        return None
    if items := files_of(source, "JSON lines"):
        return JsonLinesSource(source.where, items)
    return JsonLinesSource(source.where, source.items) if source.ending(*SUFFIXES) else None


def _stream(item: Location) -> Any:
    import pyarrow as pa

    suffix = item.name.lower().rsplit(".", 1)[-1]
    compression = {"gz": "gzip", "bz2": "bz2", "zst": "zstd", "lz4": "lz4"}.get(suffix)
    file = item.open()
    return pa.CompressedInputStream(file, compression) if compression else file


def _columns(item: Location) -> dict[str, pa.DataType | str]:
    """Return the Arrow type of each key, from the first lines of a file; in words where it has none."""
    with reading(str(item), ADVICE):
        start = _stream(item).read(BLOCK)
        lines = [line for line in start.split(b"\n") if line.strip()]
        if len(lines) > 1 and len(start) == BLOCK:
            lines.pop()
        rows = [json.loads(line) for line in lines[:LINES]]
        if not rows or not all(isinstance(row, dict) for row in rows):
            raise LengthwiseError(f"{item} does not hold one JSON object a line; {ADVICE}")
        columns = {key: [row.get(key) for row in rows] for row in rows for key in row}
        return {key: _type(values) for key, values in columns.items()}


def _type(values: list[Any]) -> pa.DataType | str:
    import pyarrow as pa

    kinds = sorted({type(value).__name__ for value in values if value is not None})
    if len(kinds) > 1:
        return " or ".join(kinds)
    try:
        type_ = pa.array(values).type
    except (pa.ArrowException, OverflowError):
        return f"mixed {kinds[0]}"
    # Lists that are empty in all of the first lines say nothing of their values; tokens are integers.
    if pa.types.is_list(type_) and pa.types.is_null(type_.value_type):
        return pa.list_(pa.int64())
    return type_


def _tables(item: Location, column: pa.Field) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.json as pj

    read = pj.ReadOptions(block_size=BLOCK)
    parse = pj.ParseOptions(explicit_schema=pa.schema([column]), unexpected_field_behavior="ignore")
    if hasattr(pj, "open_json"):
        for batch in pj.open_json(_stream(item), read_options=read, parse_options=parse):
            yield pa.Table.from_batches([batch])
    else:
        yield pj.read_json(_stream(item), read_options=read, parse_options=parse)
