"""One Parquet file: its footer, and a column of it row group by row group.

The lengths of lists are in the levels of the pages, so values are not decoded, of lists in lists neither. Where another
list column has as many entries in every row group and takes less than half the bytes (a mask beside the tokens), its
levels are read instead. Integers, and lists that are written in an unusual way, are decoded by pyarrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise.sources.nested import nested
from lengthwise.sources.pages import NULL, UnusualPageError, read_chunk, read_start
from lengthwise.sources.parquet_footer import Footer
from lengthwise.sources.schema import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    import pyarrow as pa

    from lengthwise.sources.files import Location

#: Rows that pyarrow decodes at a time.
BATCH: Final = 1 << 16
#: Rows of a row group that are compared before another column is read in place of the one asked for.
COMPARED: Final = 64


class ParquetFile:
    """An opened file; only the footer has been read."""

    def __init__(self, item: Location) -> None:
        self.item = item
        with self.open() as file:
            self.metadata = file.metadata
            self.schema: pa.Schema = file.schema_arrow
        self.rows: int = self.metadata.num_rows
        self.groups: int = self.metadata.num_row_groups
        self.nodes = {node.path: node for node in walk(self.schema)}
        with item.open(ahead=False) as raw:
            self.footer = Footer(raw, self.schema)

    def open(self) -> Any:
        """Return pyarrow's reader of the file."""
        import pyarrow.parquet as pq

        return pq.ParquetFile(self.item.open(ahead=False), metadata=getattr(self, "metadata", None))

    def read(self, path: str, skip: int) -> Iterator[Any]:
        """Yield the column in each row group from `skip` on: lengths where levels give them, else what is decoded."""
        cheapest = self._cheapest(path)
        with self.open() as file, self.item.open(ahead=False) as raw:
            for group in range(skip, self.groups):
                chunk = self.footer.chunk(group, cheapest) if cheapest in self.footer.lists else None
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
            batch = next(file.iter_batches(rows, row_groups=[0], columns=self._stored(path)), None)
        return None if batch is None else nested(pa.Table.from_batches([batch]), path)

    def _cheapest(self, path: str) -> str:
        """Return the list column with the lengths of this one that takes the fewest bytes."""
        footer = self.footer
        if path not in footer.lists:
            return path
        best, size, entries, depth = path, footer.size(path) / 2, footer.entries(path), footer.depth(path)
        for other in footer.lists:
            alike = footer.size(other) < size and footer.entries(other) == entries and footer.depth(other) == depth
            if alike and self._alike(path, other):
                best, size = other, footer.size(other)
        return best

    def _alike(self, path: str, other: str) -> bool:
        """Whether two columns have the same lengths at the start of the first and the last row group.

        As many entries are not enough: an empty list and one of one token take one each.
        """
        with self.item.open(ahead=False) as raw:
            for group in {0, self.groups - 1}:
                chunks = self.footer.chunk(group, path), self.footer.chunk(group, other)
                if chunks[0] is None or chunks[1] is None:
                    return False
                try:
                    one, two = (read_start(raw, chunk, COMPARED) for chunk in chunks if chunk)
                except UnusualPageError:
                    return False
                both = min(len(one), len(two))
                if not np.array_equal(one[:both], two[:both]):
                    return False
        return True

    def _stored(self, path: str) -> list[str]:
        """Return the one stored column that tells the lengths of a field: of a struct or a list, any of its fields."""
        return [self.metadata.schema.column(self.nodes[path].leaf).path]

    def _decode(self, file: Any, group: int, path: str) -> pa.ChunkedArray:
        import pyarrow as pa

        batches = list(file.iter_batches(BATCH, row_groups=[group], columns=self._stored(path)))
        return nested(pa.Table.from_batches(batches, batches[0].schema if batches else self.schema), path)


def _nullable(lengths: npt.NDArray[np.uint32]) -> Any:
    import pyarrow as pa

    return pa.array(lengths, mask=lengths == NULL) if lengths.size and lengths.max() == NULL else lengths
