"""One Parquet file: its footer, and a column of it row group by row group.

The lengths of lists are in the levels of the pages, so values are not decoded. Where another list column has as many
entries in every row group and takes less than half the bytes (a mask beside the tokens), its levels are read instead.
Integers, and lists that are written in an unusual way, are decoded by pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from lengthwise.sources.arrow import is_list, nested, schema_types
from lengthwise.sources.pages import CODECS, NULL, Chunk, UnusualPageError, read_chunk

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    import pyarrow as pa

    from lengthwise.sources.files import Location

#: Rows that pyarrow decodes at a time.
BATCH: Final = 1 << 16


class ListColumn(NamedTuple):
    """A list of plain values that is in no other list: its place in the file, and its levels."""

    leaf: int
    max_definition: int
    element: int


class ParquetFile:
    """An opened file; only the footer has been read."""

    def __init__(self, item: Location) -> None:
        self.item = item
        with self.open() as file:
            self.footer = file.metadata
            self.schema: pa.Schema = file.schema_arrow
        self.rows: int = self.footer.num_rows
        self.groups: int = self.footer.num_row_groups
        self.lists = {path: found for path, type_ in schema_types(self.schema) if (found := self._list(path, type_))}

    def open(self) -> Any:
        """Return pyarrow's reader of the file."""
        import pyarrow.parquet as pq

        return pq.ParquetFile(self.item.open(), metadata=getattr(self, "footer", None))

    def read(self, path: str, skip: int) -> Iterator[Any]:
        """Yield the column in each row group from `skip` on: lengths where levels give them, else what is decoded."""
        cheapest = self._cheapest(path)
        with self.open() as file, self.item.open() as raw:
            for group in range(skip, self.groups):
                chunk = self._chunk(group, cheapest)
                try:
                    yield self._decode(file, group, path) if chunk is None else _nullable(read_chunk(raw, chunk))
                except UnusualPageError:
                    yield self._decode(file, group, path)

    def first_rows(self, path: str, rows: int) -> pa.ChunkedArray | None:
        """Return the column in the first rows, None where there are none."""
        import pyarrow as pa

        if not self.groups:
            return None
        with self.open() as file:
            batch = next(file.iter_batches(rows, row_groups=[0], columns=[path]), None)
        return None if batch is None else nested(pa.Table.from_batches([batch]), path)

    def entries(self, path: str) -> list[int] | None:
        """Return the entries of a list column in each row group: its values, nulls and empty lists."""
        if path not in self.lists:
            return None
        leaf = self.lists[path].leaf
        return [self.footer.row_group(group).column(leaf).num_values for group in range(self.groups)]

    def _list(self, path: str, type_: pa.DataType) -> ListColumn | None:
        import pyarrow as pa

        if not is_list(type_) or pa.types.is_nested(type_.value_type):
            return None
        columns = [self.footer.schema.column(leaf) for leaf in range(self.footer.num_columns)]
        leaves = [leaf for leaf, column in enumerate(columns) if f"{column.path}.".startswith(f"{path}.")]
        if len(leaves) != 1 or columns[leaves[0]].max_repetition_level != 1:
            return None
        # A value that may be null has one level more than the entry that holds it.
        levels = columns[leaves[0]].max_definition_level
        return ListColumn(leaves[0], levels, levels - int(type_.value_field.nullable))

    def _chunk(self, group: int, path: str) -> Chunk | None:
        if path not in self.lists:
            return None
        found, rows = self.lists[path], self.footer.row_group(group)
        column = rows.column(found.leaf)
        if column.compression not in CODECS or column.file_path:
            return None
        start = column.data_page_offset
        if column.has_dictionary_page and column.dictionary_page_offset:
            start = min(start, column.dictionary_page_offset)
        return Chunk(
            start,
            column.total_compressed_size,
            column.num_values,
            rows.num_rows,
            CODECS[column.compression],
            found.max_definition,
            found.element,
        )

    def _cheapest(self, path: str) -> str:
        """Return the list column with the lengths of this one that takes the fewest bytes."""
        best, size = path, self._bytes(path) / 2
        for other in self.lists:
            if self._bytes(other) < size and self.entries(other) == self.entries(path) and self._alike(path, other):
                best, size = other, self._bytes(other)
        return best

    def _bytes(self, path: str) -> int:
        if path not in self.lists:
            return 0
        leaf = self.lists[path].leaf
        return sum(self.footer.row_group(group).column(leaf).total_compressed_size for group in range(self.groups))

    def _alike(self, path: str, other: str) -> bool:
        """Whether two columns have the same lengths in the first pages of the first and the last row group."""
        with self.item.open() as raw:
            for group in {0, self.groups - 1}:
                chunks = self._chunk(group, path), self._chunk(group, other)
                if chunks[0] is None or chunks[1] is None:
                    return False
                try:
                    one, two = (read_chunk(raw, chunk, first_page=True) for chunk in chunks if chunk)
                except UnusualPageError:
                    return False
                both = min(len(one), len(two))
                if not np.array_equal(one[:both], two[:both]):
                    return False
        return True

    def _decode(self, file: Any, group: int, path: str) -> pa.ChunkedArray:
        import pyarrow as pa

        batches = list(file.iter_batches(BATCH, row_groups=[group], columns=[path]))
        return nested(pa.Table.from_batches(batches, batches[0].schema if batches else self.schema), path)


def _nullable(lengths: npt.NDArray[np.uint32]) -> Any:
    import pyarrow as pa

    return pa.array(lengths, mask=lengths == NULL) if lengths.size and lengths.max() == NULL else lengths
