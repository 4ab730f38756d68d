"""WebDataset: shards that are tar archives, a sample being the files that follow each other under one name.

Nothing in the format is a length, and the indexes that go with it (DALI's `.idx`, lists of shards) count bytes and
samples. But a sample often has its own: an array in `.npy`, whose header tells its shape; a list or a number in a
`.json`; a number as text (`.cls`, or a `.seq_len` of yours). Those are read in one pass over the headers of the
archives; the other files are skipped. Bytes are not tokens, and counted only on request (unit="bytes").

Cost: 20 us a file in a shard, and a read of the small ones that are asked for.

Source: https://github.com/webdataset/webdataset, `tools/wds2idx.py` in https://github.com/NVIDIA/DALI
"""

from __future__ import annotations

import json
import re
import tarfile
from typing import TYPE_CHECKING, Any, Final

from lengthwise._core import LengthwiseError
from lengthwise.sources.base import Field, Kind, reading
from lengthwise.sources.columns import INTEGER_NAMES
from lengthwise.sources.files import FilesSource, Location, Paths
from lengthwise.sources.folders import NAMES, files_of
from lengthwise.sources.sequences import integers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SUFFIXES: Final = tuple(name[1:] for name in NAMES["WebDataset"])
ADVICE: Final = "it may be truncated or damaged: write it again"
#: What the format's own writer stores as a number in text, and what lengths are called.
NUMBERS: Final = frozenset(("cls", "cls2", "class", "count", "index", "inx", "id", *INTEGER_NAMES))
#: How DALI's indexes start: the version, and how many samples there are.
INDEX: Final = b"v1.2 "
#: How deep the objects in a .json are searched for fields.
MAX_DEPTH: Final = 4


class ShardsSource(FilesSource):
    """The samples of one or several shards, in their order."""

    format = "WebDataset"

    def __init__(self, where: str, items: Sequence[Location]) -> None:
        self.where = where
        self.items = items
        #: path of a field -> the file in a sample, and the keys in that file.
        self.places: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.fields: list[Field] = []
        for number, extension, file in _files(items[0]):
            if number:
                break
            with reading(f"{extension!r} of the first sample of {items[0]}", ADVICE):
                for keys, kind, stored in _contents(extension, file):
                    path = ".".join((extension, *keys))
                    self.places[path] = extension, keys
                    self.fields.append(Field(path, kind, stored))

    def read(self, field: Field, skip: int = 0) -> Iterator[Any]:
        """Yield the lengths in each shard."""
        extension, keys = self.places[field.path]
        for item in self.items[skip:]:
            lengths: list[int | None] = []
            for number, name, file in _files(item):
                lengths.extend([None] * (number + 1 - len(lengths)))
                if name == extension:
                    with reading(f"{extension!r} of sample {number} of {item}", ADVICE):
                        lengths[number] = _length(file, field, keys)
            yield integers(lengths, str(item))


class IndexSource(FilesSource):
    """DALI's index of one shard: the bytes of each file of each sample."""

    format = "WebDataset index"

    def __init__(self, item: Location) -> None:
        self.where = str(item)
        self.items = [item]
        with reading(str(item), ADVICE):
            head, *lines = item.bytes().decode().splitlines()
            self.samples = [_sizes(line) for line in lines]
            self.rows = int(head.split()[1])
            if self.rows != len(lines):
                raise ValueError(f"it says that there are {self.rows} samples, but has {len(lines)}")
        self.fields = [Field(name, "bytes", "file") for name in (self.samples[0] if self.samples else ())]

    def read(self, field: Field, skip: int = 0) -> Iterator[Any]:
        """Yield the sizes."""
        if skip == 0:
            yield integers([sample.get(field.path) for sample in self.samples], self.where)


def open(source: Any) -> ShardsSource | IndexSource | None:  # noqa: A001 - the name of the format's entry point
    """Open tar archives, a folder of them in the order of their names, or an index of one."""
    if not isinstance(source, Paths):
        return None
    if items := files_of(source, "WebDataset"):
        series = sorted({re.split(r"\d*\.(?:tar|tgz)", item.name)[0] for item in items})
        if len(series) > 1:
            raise LengthwiseError(f"{source.where} holds shards of {', '.join(series)}; pass {series[0]}*.tar")
        return ShardsSource(source.where, items)
    if source.ending(*SUFFIXES):
        return ShardsSource(source.where, source.items)
    return IndexSource(source.items[0]) if len(source.items) == 1 and source.starting(INDEX) else None


class _File:
    """A file in an archive that has been found, but not read."""

    def __init__(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        self.archive = archive
        self.member = member

    def open(self) -> Any:
        return self.archive.extractfile(self.member)

    def read(self) -> bytes:
        return bytes(self.open().read())


def _files(item: Location) -> Iterator[tuple[int, str, _File]]:
    """Yield the files of a shard: the number of the sample, the extension and the file."""
    plain = item.name.lower().endswith(".tar")
    with reading(str(item), ADVICE), tarfile.open(fileobj=item.open(), mode="r:" if plain else "r|*") as archive:
        number, last = -1, None
        while (member := archive.next()) is not None:
            archive.members.clear()  # type: ignore[attr-defined] # it would remember every file
            folder, _, file = member.name.rpartition("/")
            stem, _, extension = file.partition(".")
            if member.isfile() and stem and extension and not re.match(r"__[^/]*__(/|$)", member.name):
                number += (folder, stem) != last
                last = folder, stem
                yield number, extension.lower(), _File(archive, member)


def _contents(extension: str, file: _File) -> Iterator[tuple[tuple[str, ...], Kind, str]]:
    """Yield what of a file could give lengths: the keys that lead to it, its kind and how it is stored."""
    last = extension.rsplit(".", 1)[-1]
    if last == "json":
        for keys, value in _walk(json.loads(file.read()), ()):
            yield keys, "list" if isinstance(value, list) else "integer", "json"
    elif last == "npy":
        yield (), "list", "array"
    elif last in NUMBERS:
        yield (), "integer", "number"
    else:
        yield (), "bytes", "file"


def _length(file: _File, field: Field, keys: tuple[str, ...]) -> int | None:
    if field.kind == "bytes":
        return file.member.size
    if field.stored == "array":
        return _first_dimension(file)
    content = file.read()
    if field.stored == "number":
        return int(content)
    value = json.loads(content)
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    if value is None:
        return None
    if isinstance(value, list) != (field.kind == "list"):
        raise ValueError(f"{'.'.join(keys)!r} is {value!r:.60}, where the first sample has a {field.kind}")
    return len(value) if isinstance(value, list) else value


def _first_dimension(file: _File) -> int:
    from numpy.lib import format as npy

    stream = file.open()
    version = npy.read_magic(stream)
    shape = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(stream)[0]
    if not shape:
        raise ValueError("it holds a single value, which has no length")
    return int(shape[0])


def _walk(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the keys that lead to each list and each integer in what JSON gave."""
    if isinstance(value, dict) and len(keys) < MAX_DEPTH:
        for key, inner in value.items():
            yield from _walk(inner, (*keys, key))
    elif isinstance(value, list) or type(value) is int:
        yield keys, value


def _sizes(line: str) -> dict[str, int]:
    """Return the bytes of each file of a sample by its extension: four words a file (and no spaces in names)."""
    words = line.split(" ")
    return dict(zip(words[::4], map(int, words[2::4]), strict=True))
