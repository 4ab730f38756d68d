"""The footer of a Parquet file: which stored columns are lists, and where their chunks are.

pyarrow knows all this, but asks its C++ library for it in a way that ends the process when a damaged footer
contradicts itself (seen with 26.0.1: `RowGroupMetaData.column` on statistics that do not fit the schema). So the few
fields that are needed are read here, where damage is an exception.

Source: https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lengthwise.sources.pages import Chunk, Levels
from lengthwise.sources.schema import is_list, leaves, walk
from lengthwise.sources.thrift import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

#: The footer ends with its size in 4 bytes and the magic.
TAIL: Final = 8
REQUIRED, OPTIONAL, REPEATED = range(3)
#: Number of a compression -> the codec's name in pyarrow, None where pages are stored as they are.
CODECS: Final = {0: None, 1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}


class Leaf(NamedTuple):
    """A stored column.

    Attributes:
        elements: the definition level of each repeated node on the way to it: from it on, that list has an entry.
        max_definition: the greatest definition level of the column.
    """

    elements: tuple[int, ...]
    max_definition: int


class Footer:
    """The lists in a file, by the path that Arrow gives them.

    Args:
        file: the open pyarrow file.
        schema: its schema in Arrow.

    Attributes:
        lists: the path of each -> the stored column that tells its lengths, and how many lists it is in, with itself.
    """

    def __init__(self, file: Any, schema: pa.Schema) -> None:
        size = file.size()
        file.seek(size - TAIL)
        length = int.from_bytes(file.read(4), "little")
        if not 0 < length <= size - TAIL:
            raise ValueError(f"its footer claims {length} of its {size} bytes")
        file.seek(size - TAIL - length)
        fields = Reader(memoryview(file.read(length))).struct()
        self.groups: list[dict[int, Any]] = fields.get(4, [])
        self._leaves = list(_leaves(fields[2]))
        self.lists: dict[str, tuple[int, int]] = {}
        if sum(leaves(field.type) for field in schema) != len(self._leaves):
            return
        for node in walk(schema):
            # A list of structs is stored in several columns, of which any tells its lengths.
            stored = range(node.leaf, node.leaf + leaves(node.type)) if is_list(node.type) else range(0)
            known = [index for index in stored if len(self._leaves[index].elements) > node.around]
            if known:
                self.lists[node.path] = min(known, key=self._size), node.around + 1

    def chunk(self, group: int, path: str) -> Chunk | None:
        """Return where a list column is in a row group; None where a full reader is needed."""
        index, _ = self.lists[path]
        column = self.groups[group][1][index]
        about = column.get(3)
        if about is None or about[4] not in CODECS or 1 in column or 8 in column:
            return None
        # The dictionary comes first, where there is one.
        start = min(about[9], about.get(11) or about[9])
        return Chunk(start, about[7], about[5], self.groups[group][3], CODECS[about[4]], self.levels(path))

    def levels(self, path: str) -> Levels:
        """Return what the levels of a list column mean."""
        index, depth = self.lists[path]
        elements, most = self._leaves[index]
        return Levels(len(elements), most, depth, elements[depth - 1], elements[0])

    def depth(self, path: str) -> tuple[int, int]:
        """Return how many lists a list is in, with itself, and how many the values are in that tell its lengths."""
        index, depth = self.lists[path]
        return depth, len(self._leaves[index].elements)

    def entries(self, path: str) -> list[int]:
        """Return the entries of a list column in each row group: its values, nulls and empty lists."""
        return [about[5] for about in self._about(self.lists[path][0])]

    def size(self, path: str) -> int:
        """Return the bytes of a list column."""
        return self._size(self.lists[path][0])

    def _size(self, index: int) -> int:
        return sum(about[7] for about in self._about(index))

    def _about(self, index: int) -> Iterator[dict[int, Any]]:
        for group in self.groups:
            yield group[1][index].get(3, {5: -1, 7: 0})


def _leaves(elements: list[dict[int, Any]]) -> Iterator[Leaf]:
    """Yield the leaves of a schema, which is a tree in preorder."""
    at = 1

    def walk(definition: int, repeated: tuple[int, ...]) -> Iterator[Leaf]:
        nonlocal at
        element = elements[at]
        at += 1
        repetition = element.get(3, REQUIRED)
        definition += repetition != REQUIRED
        if repetition == REPEATED:
            repeated = (*repeated, definition)
        children = element.get(5, 0)
        if not children:
            yield Leaf(repeated, definition)
        for _ in range(children):
            yield from walk(definition, repeated)

    while at < len(elements):
        yield from walk(0, ())
