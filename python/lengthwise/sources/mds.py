"""MosaicML's MDS shards: lengths from the byte sizes in the head of each sample, without its payload.

`index.json` names the shards and their columns. A shard starts with the number of samples and where each begins and
ends; a sample starts with the byte sizes of its columns of variable size. An array's tokens are what is left of its
size after the few bytes that describe its shape.

Source: `streaming/base/format/mds/writer.py` and `encodings.py` in https://github.com/mosaicml/streaming
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise._core import LengthwiseError
from lengthwise.sources.base import Field, Kind, reading
from lengthwise.sources.files import FilesSource, Location, Paths

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

ADVICE: Final = "it may be truncated or damaged: write it again"
INTEGERS: Final = {"int": "int64"} | {
    f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


@dataclass(frozen=True)
class Column:
    """Where a column lies in a sample: how many sizes and fixed bytes come before it, and how it is encoded."""

    encoding: str
    size: int | None
    variable: int
    before: tuple[int | None, ...]


class MdsSource(FilesSource):
    """The samples of the shards that one index names."""

    format = "MDS"

    def __init__(self, index: Location) -> None:
        self.where = str(index)
        self.items = [index]
        with reading(str(index), ADVICE):
            self.shards = json.loads(index.bytes())["shards"]
            names: dict[str, str] = {}
            for shard in self.shards:
                names |= dict(zip(shard["column_names"], shard["column_encodings"], strict=True))
            self.fields = [Field(name, _kind(encoding), encoding) for name, encoding in names.items()]
            self.rows = sum(int(shard["samples"]) for shard in self.shards)

    def read(self, field: Field, skip: int = 0) -> Iterator[npt.NDArray[Any]]:
        """Yield the lengths in each shard."""
        for shard in self.shards[skip:]:
            item = self.items[0].sibling(shard["raw_data"]["basename"])
            with reading(str(item), ADVICE):
                lengths = _lengths(_raw(item, shard), _column(shard, field.path), int(shard["samples"]))
            yield lengths


def open(source: Any) -> MdsSource | None:  # noqa: A001 - the name of the format's entry point
    """Open a folder that holds `index.json`, or that file."""
    if not isinstance(source, Paths) or len(source.items) != 1:
        return None
    index = source.folder.child("index.json") if source.folder else source.items[0]
    if index.name != "index.json" or not index.is_file():
        return None
    with reading(str(index), ADVICE):
        shards = json.loads(index.bytes())
    if not isinstance(shards, dict) or not isinstance(shards.get("shards"), list):
        return None
    formats = {shard.get("format") for shard in shards["shards"]}
    if formats - {"mds"}:
        raise LengthwiseError(f"{index} lists shards of format {sorted(map(str, formats))}; only mds is known")
    return MdsSource(index)


def _kind(encoding: str) -> Kind:
    if encoding in INTEGERS:
        return "integer"
    if encoding.split(":", maxsplit=1)[0] == "ndarray":
        return "list"
    return "bytes" if encoding in {"str", "bytes"} else "other"


def _column(shard: dict[str, Any], name: str) -> Column:
    names, sizes = shard["column_names"], [size or None for size in shard["column_sizes"]]
    if name not in names:
        raise LengthwiseError(f"the shard has no column {name!r}, which others have; write all with one schema")
    at = names.index(name)
    return Column(shard["column_encodings"][at], sizes[at], sizes.count(None), tuple(sizes[:at]))


def _raw(item: Location, shard: dict[str, Any]) -> npt.NDArray[np.uint8]:
    """Return the bytes of a shard: mapped, or decompressed where only the compressed file is there."""
    if item.is_file():
        return np.memmap(item.local, np.uint8, "r") if item.local else np.frombuffer(item.bytes(), np.uint8)
    packed, compression = shard.get("zip_data"), str(shard.get("compression")).partition(":")[0]
    if not packed:
        raise LengthwiseError(f"{item} does not exist, but index.json names it; copy the whole dataset")
    import pyarrow as pa

    codec = {"gz": "gzip", "br": "brotli", "zstd": "zstd", "bz2": "bz2"}.get(compression)
    if codec is None:
        raise LengthwiseError(f"{item} is compressed with {compression}, which cannot be read; decompress it first")
    stream = pa.CompressedInputStream(item.sibling(packed["basename"]).open(), codec)
    return np.frombuffer(stream.read(), np.uint8)


def _lengths(raw: npt.NDArray[np.uint8], column: Column, samples: int) -> npt.NDArray[Any]:
    count = int(_integers(raw, np.zeros(1, np.int64), "<u4")[0])
    if count != samples:
        raise ValueError(f"it holds {count} samples, but index.json says {samples}")
    starts = _integers(raw, 4 * np.arange(1, count + 1, dtype=np.int64), "<u4").astype(np.int64)
    at = starts + 4 * column.variable
    head = 0
    for size in column.before:
        at = at + (_integers(raw, starts + 4 * head, "<u4") if size is None else size)
        head += size is None
    if column.encoding in INTEGERS:
        return _integers(raw, at, np.dtype(INTEGERS[column.encoding]).newbyteorder("<").str)
    if column.size is None:
        stored = _integers(raw, starts + 4 * head, "<u4").astype(np.int64)
    else:
        stored = np.full(count, column.size, np.int64)
    return stored if column.encoding in {"str", "bytes"} else _array_lengths(raw, at, stored, column.encoding)


def _array_lengths(
    raw: npt.NDArray[np.uint8], at: npt.NDArray[np.int64], stored: npt.NDArray[np.int64], encoding: str
) -> npt.NDArray[np.int64]:
    """Return the first dimension of each array: the sizes of shape and values follow from the bytes before them."""
    _, dtype, shape = (*encoding.split(":"), "", "")[:3]
    if shape:
        return np.full(len(at), int(shape.split(",")[0]), np.int64)
    if not dtype:
        at = at + 1
    # One byte says how many dimensions there are and how wide each is written.
    described = _integers(raw, at, "u1").astype(np.int64)
    lengths = np.empty(len(at), np.int64)
    for code in np.unique(described):
        rows = described == code
        lengths[rows] = _integers(raw, at[rows] + 1, f"<u{1 << (int(code) & 3)}")
    if np.any(lengths > stored):
        raise ValueError(f"sample {int(np.argmax(lengths > stored))} claims more tokens than it has bytes")
    return lengths


def _integers(raw: npt.NDArray[np.uint8], at: npt.NDArray[np.int64], dtype: str) -> npt.NDArray[Any]:
    """Return the integers that start at the given bytes."""
    width = np.dtype(dtype).itemsize
    if at.size and (int(at.min()) < 0 or int(at.max()) + width > len(raw)):
        raise ValueError(f"it ends after {len(raw)} bytes, but a sample lies at {int(at.max())}")
    found: npt.NDArray[Any] = raw[at[:, None] + np.arange(width)].reshape(-1).view(dtype)
    return found
