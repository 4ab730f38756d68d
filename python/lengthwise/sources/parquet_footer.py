"""The footer of a Parquet file: which stored columns are lists, and where their chunks are.

pyarrow knows all this, but asks its C++ library for it in a way that ends the process when a damaged footer
contradicts itself (seen with 26.0.1: `RowGroupMetaData.column` on statistics that do not fit the schema). So the few
fields that are needed are read here, where damage is an exception.

Source: https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lengthwise.sources.pages import Chunk
from lengthwise.sources.thrift import Reader

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

#: The footer ends with its size in 4 bytes and the magic.
TAIL: Final = 8
REQUIRED, OPTIONAL, REPEATED = range(3)
#: Number of a compression -> the codec's name in pyarrow, None where pages are stored as they are.
CODECS: Final = {0: None, 1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}


@dataclass(frozen=True)
class Leaf:
    """A stored column.

    Attributes:
        path: its names from the root.
        repeated: where in the path its one repeated node is.
        element: the definition level of that node: from it on, the list has an entry.
        max_definition: the greatest definition level of the column.
    """

    path: tuple[str, ...]
    repeated: int
    element: int
    max_definition: int


class Footer:
    """The lists in a file that are in no other list, by the path that Arrow gives them.

    Args:
        file: the open pyarrow file.
        paths: the paths of the list columns that are in no other list.
    """

    def __init__(self, file: Any, paths: Collection[str]) -> None:
        size = file.size()
        file.seek(size - TAIL)
        length = int.from_bytes(file.read(4), "little")
        if not 0 < length <= size - TAIL:
            raise ValueError(f"its footer claims {length} of its {size} bytes")
        file.seek(size - TAIL - length)
        fields = Reader(memoryview(file.read(length))).struct()
        self.groups: list[dict[int, Any]] = fields.get(4, [])
        self._leaves = list(_leaves(fields[2]))
        self.lists: dict[str, int] = {}
        for index, leaf in enumerate(self._leaves):
            path = _arrow_path(leaf, paths) if leaf else None
            # A list of structs is stored in several columns, of which any tells its lengths.
            if path and (path not in self.lists or self._size(index) < self.size(path)):
                self.lists[path] = index

    def chunk(self, group: int, path: str) -> Chunk | None:
        """Return where a list column is in a row group; None where a full reader is needed."""
        index = self.lists[path]
        leaf, column = self._leaves[index], self.groups[group][1][index]
        about = column.get(3)
        if leaf is None or about is None or about[4] not in CODECS or 1 in column or 8 in column:
            return None
        # The dictionary comes first, where there is one.
        start = min(about[9], about.get(11) or about[9])
        return Chunk(
            start, about[7], about[5], self.groups[group][3], CODECS[about[4]], leaf.max_definition, leaf.element
        )

    def entries(self, path: str) -> list[int]:
        """Return the entries of a list column in each row group: its values, nulls and empty lists."""
        return [about[5] for about in self._about(self.lists[path])]

    def size(self, path: str) -> int:
        """Return the bytes of a list column."""
        return self._size(self.lists[path])

    def _size(self, index: int) -> int:
        return sum(about[7] for about in self._about(index))

    def _about(self, index: int) -> Iterator[dict[int, Any]]:
        for group in self.groups:
            yield group[1][index].get(3, {5: -1, 7: 0})


def _leaves(elements: list[dict[int, Any]]) -> Iterator[Leaf | None]:
    """Yield the leaves of a schema, which is a tree in preorder; None for one that is in no list, or in several."""
    at = 1

    def walk(path: tuple[str, ...], definition: int, repeated: tuple[tuple[int, int], ...]) -> Iterator[Leaf | None]:
        nonlocal at
        element = elements[at]
        at += 1
        repetition = element.get(3, REQUIRED)
        definition += repetition != REQUIRED
        if repetition == REPEATED:
            repeated = (*repeated, (len(path), definition))
        path = (*path, bytes(element[4]).decode())
        children = element.get(5, 0)
        if not children:
            yield Leaf(path, *repeated[0], definition) if len(repeated) == 1 else None
        for _ in range(children):
            yield from walk(path, definition, repeated)

    while at < len(elements):
        yield from walk((), 0, ())


def _arrow_path(leaf: Leaf, paths: Collection[str]) -> str | None:
    """Return the path of the list whose values a leaf holds: what its repeated node is in, or that node itself."""
    for names in (leaf.path[: leaf.repeated], leaf.path[: leaf.repeated + 1]):
        path = ".".join(names)
        if path in paths:
            return path
    return None
