"""Parquet files and folders.

The footers say how many rows there are, and bound the tokens of a list column without reading any of it. Row groups are
read one at a time, so memory stays bounded.

Source: https://parquet.apache.org/docs/file-format/
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from lengthwise._core import LengthwiseError
from lengthwise.sources.arrow import nested, schema_fields
from lengthwise.sources.base import Field, Source, reading
from lengthwise.sources.files import Location, Paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"
ADVICE = "it may be truncated or damaged: write it again"
#: Rows that pyarrow decodes at a time.
BATCH = 1 << 16


class ParquetSource(Source):
    """One dataset in one or several Parquet files, read in the order given."""

    format = "Parquet"
    reads_values = True

    def __init__(self, where: str, items: Sequence[Location]) -> None:
        self.where = where
        self.items = items
        self.fields = []
        self.rows = 0
        self.footers: list[Any] = []
        for item in items:
            with reading(str(item), ADVICE), _open(item) as file:
                self.footers.append(file.metadata)
                self.rows += file.metadata.num_rows
                if len(self.footers) == 1:
                    self.fields = schema_fields(file.schema_arrow)

    def read(self, field: Field, skip: int = 0) -> Iterator[pa.ChunkedArray]:
        """Yield the column of each row group, in batches."""
        for item, footer in zip(self.items, self.footers, strict=True):
            if skip >= footer.num_row_groups:
                skip -= footer.num_row_groups
                continue
            with reading(str(item), ADVICE), _open(item, footer) as file:
                _require(item, file.schema_arrow, field)
                for group in range(skip, file.num_row_groups):
                    yield _group(file, group, field)
            skip = 0

    def sample(self, field: Field) -> Iterator[tuple[int, pa.ChunkedArray]]:
        """Yield the first rows of the first local file; a URL is left alone."""
        import pyarrow as pa

        if not self.items or self.items[0].local is None or not self.footers[0].num_row_groups:
            return
        with reading(str(self.items[0]), ADVICE), _open(self.items[0], self.footers[0]) as file:
            batch = next(file.iter_batches(64, row_groups=[0], columns=[field.path]), None)
            if batch is not None:
                yield 0, nested(pa.Table.from_batches([batch]), field.path)

    def stamp(self) -> str:
        """Return sizes and times of the files."""
        return "\n".join(item.stamp() for item in self.items)

    def folder(self) -> str | None:
        """Return the folder of the first file."""
        local = self.items[0].local if self.items else None
        return str(local.parent) if local else None

    def tokens(self, field: Field) -> tuple[int, int] | None:
        """Return bounds from the footers: a list column stores one entry a token and one for each list without any."""
        if field.kind != "list":
            return None
        stored = 0
        for footer in self.footers:
            columns = [index for index in range(footer.num_columns) if _within(footer, index, field)]
            if len(columns) != 1 or footer.schema.column(columns[0]).max_repetition_level != 1:
                return None
            stored += sum(footer.row_group(g).column(columns[0]).num_values for g in range(footer.num_row_groups))
        return max(0, stored - (self.rows or 0)), stored


def open(source: Any) -> ParquetSource | None:  # noqa: A001 - the name of the format's entry point
    """Open Parquet files, or a folder of them in the order of their names."""
    if not isinstance(source, Paths):
        return None
    if source.folder:
        items = source.folder.files("*.parquet", "*.pq")
        _refuse_splits(source.where, items)
        return ParquetSource(source.where, items) if items else None
    if source.starting(MAGIC) or source.ending(".parquet", ".pq"):
        for item in source.items:
            start = item.head()
            if start.startswith(ENCRYPTED_MAGIC):
                raise LengthwiseError(f"{item} is encrypted; decrypt it first")
            if not start.startswith(MAGIC):
                raise LengthwiseError(f"{item} is not a Parquet file, whatever its name says; check how it was written")
        return ParquetSource(source.where, source.items)
    return None


def _open(item: Location, footer: Any = None) -> Any:
    import pyarrow.parquet as pq

    return pq.ParquetFile(item.open(), metadata=footer)


def _group(file: Any, group: int, field: Field) -> pa.ChunkedArray:
    import pyarrow as pa

    batches = list(file.iter_batches(BATCH, row_groups=[group], columns=[field.path]))
    return nested(pa.Table.from_batches(batches, batches[0].schema if batches else file.schema_arrow), field.path)


def _require(item: Location, schema: pa.Schema, field: Field) -> None:
    if field.kind not in {found.kind for found in schema_fields(schema) if found.path == field.path}:
        raise LengthwiseError(
            f"{item} has no {field.kind} column {field.path!r}, which the first file has; write all with one schema"
        )


def _within(footer: Any, index: int, field: Field) -> bool:
    return f"{footer.schema.column(index).path}.".startswith(f"{field.path}.")


def _refuse_splits(where: str, items: Sequence[Location]) -> None:
    """Refuse a folder in which names say that the files are of several splits, as downloads from the Hub do."""
    matches = [re.match(r"(.+?)-\d+-of-\d+", item.name) for item in items]
    splits = sorted({match.group(1) for match in matches if match})
    if len(splits) > 1:
        raise LengthwiseError(f"{where} holds files of several splits, {', '.join(splits)}; pass {splits[0]}-*.parquet")
