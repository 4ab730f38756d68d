"""Paths and URLs: what they name, what a file is by its first bytes, and how to open it.

Local files are memory-mapped, so nothing is read until it is touched. Others go through fsspec, which knows s3://,
gs://, hf://, https:// and whatever else is installed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any

from lengthwise._core import LengthwiseError
from lengthwise.sources.base import Source, reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Bytes at the start of a file that are looked at.
HEAD = 64
HIDDEN = "._"
LFS = b"version https://git-lfs"
EMPTY = "is empty (0 bytes); write it again"


class Location:
    """A file or a folder.

    Args:
        path: its path, as the file system writes it.
        system: an fsspec file system, or None for the local one.
    """

    def __init__(self, path: str, system: Any = None) -> None:
        self.path = path
        self.system = system

    def __str__(self) -> str:
        return self.path if self.system is None else str(self.system.unstrip_protocol(self.path))

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self.path).name if self.system else Path(self.path).name

    @property
    def local(self) -> Path | None:
        """The local path, or None for a URL."""
        return None if self.system else Path(self.path)

    @cached_property
    def info(self) -> dict[str, Any]:
        """What the file system of a URL says of it, nothing where it does not exist.

        It is asked once: each question takes a request, and some systems fetch all of a file to say it is no folder.
        """
        with reading(str(self), "check the URL"), suppress(FileNotFoundError):
            return dict(self.system.info(self.path))
        return {}

    def is_file(self) -> bool:
        """Whether it is a file that exists."""
        with reading(str(self), "check the path"):
            return self.info.get("type") == "file" if self.system else Path(self.path).is_file()

    def is_dir(self) -> bool:
        """Whether it is a folder that exists."""
        with reading(str(self), "check the path"):
            return self.info.get("type") == "directory" if self.system else Path(self.path).is_dir()

    def exists(self) -> bool:
        """Whether it exists at all."""
        with reading(str(self), "check the path"):
            return bool(self.info) if self.system else Path(self.path).exists()

    def child(self, name: str) -> Location:
        """Return what is called `name` in this folder."""
        return Location(f"{self.path.rstrip('/')}/{name}", self.system)

    def sibling(self, name: str) -> Location:
        """Return what is called `name` beside this file."""
        head, _, _ = self.path.rpartition("/")
        return Location(f"{head}/{name}" if "/" in self.path else name, self.system)

    @cached_property
    def below(self) -> list[Location]:
        """The files below this folder; hidden and underscored ones, and what is in such folders, left out.

        They are in the order of their paths as text, in which pyarrow, datasets, polars and pandas read a folder: a row
        here is the same row there.
        """
        with reading(str(self), "check the folder"):
            found = sorted(_walk(self.path) if self.system is None else self.system.find(self.path))
        depth = len(PurePath(self.path).parts)
        return [
            Location(path, self.system)
            for path in found
            if not any(part[0] in HIDDEN for part in PurePath(path).parts[depth:])
        ]

    @cached_property
    def head(self) -> bytes:
        """The first bytes, which tell the format where the name may lie."""
        with reading(str(self), "check the path"):
            if self.system is not None:
                start = bytes(self.system.cat_file(self.path, start=0, end=HEAD))
            else:
                with Path(self.path).open("rb") as file:
                    start = file.read(HEAD)
        if not start:
            raise LengthwiseError(f"{self} {EMPTY}")
        if start.startswith(LFS):
            raise LengthwiseError(f"{self} is a pointer of Git LFS; fetch what it points to with git lfs pull")
        return start

    def bytes(self) -> bytes:
        """Return the whole file."""
        with reading(str(self), "check the path"):
            return bytes(self.system.cat_file(self.path)) if self.system else Path(self.path).read_bytes()

    def size(self) -> int:
        """Return the number of bytes."""
        with reading(str(self), "check the path"):
            return int(self.info["size"]) if self.system else Path(self.path).stat().st_size

    def stamp(self) -> str:
        """Return what changes when the file does: its size and time of change, or what the object store says of it."""
        if self.system is not None:
            return f"{self}:{self.system.ukey(self.path)}:{self.info.get('size')}:{self.info.get('ETag')}"
        status = Path(self.path).stat()
        return f"{Path(self.path).resolve()}:{status.st_size}:{status.st_mtime_ns}"

    def open(self, *, ahead: bool = True) -> Any:
        """Return a pyarrow file: over the mapped bytes, or one that reads through fsspec.

        Args:
            ahead: whether reading what follows as well, megabytes of it, is worth it; of a URL only.

        pyarrow's own memory map asks the kernel to fetch all that a reader passes over, tokens as well: on a file of
        2 GB that takes ten times as long as to find the lengths.
        """
        import mmap

        import pyarrow as pa

        if self.system is not None:
            file = self.system.open(self.path, "rb", **({} if ahead else {"cache_type": "none"}))
            if getattr(file, "size", None) == 0:
                raise LengthwiseError(f"{self} {EMPTY}")
            return pa.PythonFile(file, mode="r")
        with Path(self.path).open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise LengthwiseError(f"{self} {EMPTY}")
            return pa.BufferReader(pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))


class Paths:
    """What the user named: one folder or file, or several files that make one dataset."""

    def __init__(self, where: str, items: Sequence[Location]) -> None:
        self.where = where
        self.items = items

    @property
    def folder(self) -> Location | None:
        """The folder, where exactly one was named."""
        return self.items[0] if len(self.items) == 1 and self.items[0].is_dir() else None

    def starting(self, *magics: bytes) -> bool:
        """Whether the first item is a file that starts with one of `magics`."""
        return self.items[0].is_file() and self.items[0].head.startswith(magics)

    def ending(self, *suffixes: str) -> bool:
        """Whether the first item is a file whose name ends in one of `suffixes`."""
        return self.items[0].name.lower().endswith(suffixes) and self.items[0].is_file()


class FilesSource(Source):
    """A dataset in files; it is what it was as long as those are."""

    items: Sequence[Location]

    def stamp(self) -> str:
        """Return sizes and times of the files."""
        return "\n".join(item.stamp() for item in self.items)

    def folder(self) -> str | None:
        """Return the folder of the first file."""
        local = self.items[0].local if self.items else None
        return str(local.parent) if local else None


def ends_and_middle(count: int) -> list[int]:
    """Return which of `count` files to look at where a few tell of all."""
    return sorted({0, count // 2, count - 1}) if count else []


def _walk(folder: str) -> Iterator[str]:
    """Yield the files below a local folder, links to others followed; a link to where it is would never end."""
    for at, names, files in os.walk(folder, onerror=_raise, followlinks=True):
        here = Path(at).resolve()
        names[:] = [
            name for name in names if name[0] not in HIDDEN and not here.is_relative_to((here / name).resolve())
        ]
        for path in (os.path.join(at, name) for name in files):  # noqa: PTH118 - a quarter of the time
            # A link to nothing is data that is missing; pipes and sockets are no data.
            if os.path.isfile(path) or os.path.islink(path):  # noqa: PTH113, PTH114 - likewise
                yield path


def _raise(error: OSError) -> None:
    raise error
