"""Parquet files and folders.

The footers say how many rows there are, and bound the tokens of a list column without reading any of it. Row groups are
read one at a time, so memory stays bounded.

Source: https://parquet.apache.org/docs/file-format/
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lengthwise._core import LengthwiseError
from lengthwise.sources.base import Field, reading
from lengthwise.sources.files import FilesSource, Location, Paths, ends_and_middle
from lengthwise.sources.folders import files_of
from lengthwise.sources.parquet_file import ParquetFile
from lengthwise.sources.schema import require, schema_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

MAGIC: Final = b"PAR1"
ENCRYPTED_MAGIC: Final = b"PARE"
ADVICE: Final = "it may be truncated or damaged: write it again"


class ParquetSource(FilesSource):
    """One dataset in one or several Parquet files, read in the order given."""

    format = "Parquet"

    def __init__(self, where: str, items: Sequence[Location]) -> None:
        self.where = where
        self.items = items
        self.files: list[ParquetFile] = []
        for item in items:
            with reading(str(item), ADVICE):
                self.files.append(ParquetFile(item))
        self.rows = sum(file.rows for file in self.files)
        self.fields = schema_fields(self.files[0].schema) if items else []
        self.reads_values = not all(file.footer.lists for file in self.files)

    def read(self, field: Field, skip: int = 0) -> Iterator[Any]:
        """Yield the column of each row group."""
        for file in self.files:
            if skip >= file.groups:
                skip -= file.groups
                continue
            require(file.schema, field, file.item)
            with reading(str(file.item), ADVICE):
                yield from file.read(field.path, skip)
            skip = 0

    def sample(self, field: Field) -> Iterator[tuple[int, pa.ChunkedArray]]:
        """Yield the first rows of a few local files; a URL is left alone."""
        for index in ends_and_middle(len(self.files)):
            file = self.files[index]
            if file.item.local is None:
                return
            require(file.schema, field, file.item)
            with reading(str(file.item), ADVICE):
                rows = file.first_rows(field.path, 64)
            if rows is not None:
                yield sum(before.rows for before in self.files[:index]), rows

    def tokens(self, field: Field) -> tuple[int, int] | None:
        """Return bounds from the footers: a list column stores one entry a token and one for each list without any.

        Of lists in lists the rows do not tell how many are without.
        """
        stored = 0
        for file in self.files:
            if field.path not in file.footer.lists or file.footer.depth(field.path) != (1, 1):
                return None
            stored += sum(file.footer.entries(field.path))
        return max(0, stored - (self.rows or 0)), stored


def open(source: Any) -> ParquetSource | None:  # noqa: A001 - the name of the format's entry point
    """Open Parquet files, or a folder of them in the order of their names."""
    if not isinstance(source, Paths):
        return None
    if items := files_of(source, "Parquet"):
        return ParquetSource(source.where, items)
    if source.starting(MAGIC) or source.ending(".parquet", ".pq"):
        for item in source.items:
            start = item.head
            if start.startswith(ENCRYPTED_MAGIC):
                raise LengthwiseError(f"{item} is encrypted; decrypt it first")
            if not start.startswith(MAGIC):
                raise LengthwiseError(f"{item} is not a Parquet file, whatever its name says; check how it was written")
        return ParquetSource(source.where, source.items)
    return None
