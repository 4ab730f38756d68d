"""Paths: what a file is by its first bytes, and how to open it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lengthwise._core import LengthwiseError
from lengthwise.sources.base import reading

if TYPE_CHECKING:
    import pyarrow as pa


def as_path(source: Any) -> Path | None:
    """Return the local path that `source` is, or None where it is something else."""
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if isinstance(path, str) and "://" not in path:
            return Path(path).expanduser()
    return None


def first_bytes(path: Path, count: int = 16) -> bytes:
    """Return the start of a file, which tells the format where the name may lie."""
    with reading(str(path), "check the path"), path.open("rb") as file:
        start = file.read(count)
    if not start:
        raise LengthwiseError(f"{path} is empty (0 bytes); write it again")
    return start


def mapped(path: Path) -> pa.MemoryMappedFile:
    """Return the file, memory-mapped: nothing is read until it is touched."""
    import pyarrow as pa

    return pa.memory_map(str(path), "r")
