"""Megatron's indexed datasets (.idx beside .bin): the lengths are stored as int32, and are mapped as they are.

A header of 34 bytes (magic, version 1, a code for the type of the tokens, the number of sequences and of documents) is
followed by the length of each sequence, where each starts, and which start a document.

Source: `megatron/core/datasets/indexed_dataset.py` in https://github.com/NVIDIA/Megatron-LM
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise._core import LengthwiseError
from lengthwise.sources.base import Field, reading
from lengthwise.sources.files import FilesSource, Location, Paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

MAGIC: Final = b"MMIDIDX\x00\x00"
HEADER: Final = struct.Struct("<QBQQ")
START: Final = len(MAGIC) + HEADER.size
ADVICE: Final = "it may be truncated or damaged: write it again"


class MegatronSource(FilesSource):
    """The lengths in one index file."""

    format = "Megatron index"
    fields = (Field("sequence_lengths", "integer", "int32"),)

    def __init__(self, item: Location) -> None:
        self.where = str(item)
        self.items = [item]
        head = item.head[:START]
        if len(head) < START:
            raise LengthwiseError(f"{item} ends within its header; {ADVICE}")
        version, _, rows, documents = HEADER.unpack(head[len(MAGIC) :])
        if version != 1:
            raise LengthwiseError(f"{item} is of version {version}, but only version 1 is known; convert it")
        needed = START + rows * (4 + 8) + documents * 8
        if item.size() < needed:
            raise LengthwiseError(f"{item} has {item.size()} bytes, but {rows} sequences take {needed}; {ADVICE}")
        self.rows = int(rows)

    def read(self, field: Field, skip: int = 0) -> Iterator[npt.NDArray[np.int32]]:  # noqa: ARG002 - there is only one
        """Yield the stored lengths, mapped."""
        rows, item = self.rows or 0, self.items[0]
        if skip:
            return
        if item.local is None:
            yield np.frombuffer(item.bytes(), "<i4", rows, START)
        elif rows:
            with reading(self.where, ADVICE):
                mapped = np.memmap(item.local, "<i4", "r", START, (rows,))
            yield mapped.view(np.ndarray)


def open(source: Any) -> MegatronSource | None:  # noqa: A001 - the name of the format's entry point
    """Open an .idx file, or the one beside a .bin file."""
    if not isinstance(source, Paths) or len(source.items) != 1:
        return None
    item = source.items[0]
    if source.ending(".bin"):
        index = item.sibling(item.name.removesuffix(".bin") + ".idx")
        return MegatronSource(index) if index.is_file() and index.head.startswith(MAGIC) else None
    return MegatronSource(item) if source.starting(MAGIC) else None
