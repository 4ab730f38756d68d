"""Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lengthwise._core import LengthwiseError
from lengthwise.sources.arrow import nested, schema_fields
from lengthwise.sources.base import Field, reading
from lengthwise.sources.files import as_path, first_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

MAGIC = b"PAR1"
ADVICE = "it may be truncated or damaged: write it again"


class ParquetSource:
    """One dataset in one or several Parquet files, read in the order given."""

    format = "Parquet"
    order = None
    reads_values = True

    def __init__(self, where: str, paths: Sequence[Path]) -> None:
        import pyarrow.parquet as pq

        self.where = where
        self.paths = paths
        self.rows: int | None = 0
        self.fields: Sequence[Field] = []
        for path in paths:
            with reading(str(path), ADVICE), pq.ParquetFile(path) as file:
                self.rows += file.metadata.num_rows
                if not self.fields:
                    self.fields = schema_fields(file.schema_arrow)

    def read(self, field: Field) -> Iterator[pa.ChunkedArray]:
        """Yield the column of each row group."""
        import pyarrow.parquet as pq

        for path in self.paths:
            with reading(str(path), ADVICE), pq.ParquetFile(path) as file:
                fields = {found.path for found in schema_fields(file.schema_arrow)}
                if field.path not in fields:
                    raise LengthwiseError(
                        f"{path} has no column {field.path!r}, which the first file has; write all with one schema"
                    )
                for group in range(file.num_row_groups):
                    yield nested(file.read_row_group(group, columns=[field.path]), field.path)


def open(source: Any) -> ParquetSource | None:  # noqa: A001 - the name of the format's entry point
    """Open a Parquet file, or a folder of them in the order of their names."""
    path = as_path(source)
    if path is None:
        return None
    if path.is_dir():
        paths = sorted(path.rglob("*.parquet"))
        return ParquetSource(str(path), paths) if paths else None
    if path.is_file() and first_bytes(path).startswith(MAGIC):
        return ParquetSource(str(path), [path])
    return None
