"""datatrove's tokenized files: `*.ds.index` holds where each document ends, in tokens, as little-endian uint64.

Source: `datatrove/pipeline/tokens/tokenizer.py` in https://github.com/huggingface/datatrove
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise._core import LengthwiseError
from lengthwise.sources.base import Field
from lengthwise.sources.files import FilesSource, Location, Paths
from lengthwise.sources.folders import files_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

SUFFIX: Final = ".ds.index"


class DatatroveSource(FilesSource):
    """The documents of one or several index files."""

    format = "datatrove index"
    fields = (Field("document_ends", "integer", "uint64"),)

    def __init__(self, where: str, items: Sequence[Location]) -> None:
        self.where = where
        self.items = items
        for item in items:
            if item.size() % 8:
                raise LengthwiseError(f"{item} has {item.size()} bytes, not a multiple of 8; it may be truncated")
        self.rows = sum(item.size() // 8 for item in items)

    def read(self, field: Field, skip: int = 0) -> Iterator[npt.NDArray[np.uint32]]:  # noqa: ARG002 - there is only one
        """Yield the differences of the ends, file by file."""
        for item in self.items[skip:]:
            ends = np.frombuffer(item.bytes(), "<u8")
            if np.any(ends[1:] < ends[:-1]):
                raise LengthwiseError(f"{item} holds document ends that do not ascend; it may be damaged")
            yield np.diff(ends, prepend=np.uint64(0))


def open(source: Any) -> DatatroveSource | None:  # noqa: A001 - the name of the format's entry point
    """Open `*.ds.index` files, the ones beside `*.ds` files, or a folder of them."""
    if not isinstance(source, Paths):
        return None
    if items := files_of(source, "datatrove"):
        return DatatroveSource(source.where, items)
    if source.ending(SUFFIX):
        return DatatroveSource(source.where, source.items)
    if source.ending(".ds"):
        return DatatroveSource(source.where, [item.sibling(f"{item.name}.index") for item in source.items])
    return None
