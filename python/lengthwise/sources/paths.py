"""What the user named: text, bytes or a `pathlib.Path`; a URL, a glob, or a list of them."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from lengthwise._core import LengthwiseError
from lengthwise.sources.base import reading
from lengthwise.sources.files import Location, Paths
from lengthwise.sources.folders import NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

GLOB: Final = frozenset("*?[")
#: A URL, and what pathlib makes of one.
URL: Final = re.compile(r"[a-z][a-z0-9+.:-]*://\S+$")
CUT_URL: Final = re.compile(r"[a-z][a-z0-9+.-]+:/[^/]")
SUFFIXES: Final = (".npy", ".idx", ".bin", *(name[1:] for names in NAMES.values() for name in names))


def paths(source: Any) -> Paths | None:
    """Return the paths that `source` names: one, a glob, or a list of them; None where it is something else.

    Raises:
        LengthwiseError: a path does not exist, or a glob matches nothing.
    """
    if isinstance(source, (list, tuple)) and source and all(isinstance(item, (str, os.PathLike)) for item in source):
        if isinstance(source[0], str) and not _is_path(source[0]):
            return None
        items = [item for each in source for item in _expand(each)]
        where = f"{items[0]} and {len(items) - 1} more files" if len(items) > 1 else str(items[0])
    elif isinstance(source, (str, bytes, os.PathLike)):
        items = _expand(source)
        where = os.fsdecode(source) if len(items) > 1 else str(items[0])
    else:
        return None
    if len(items) > 1:
        _refuse_folders(items)
    return Paths(where, items)


def _refuse_folders(items: Sequence[Location]) -> None:
    # To ask a store about each of many files would take a request for each.
    folder = next((item for item in items if (item.local or item is items[0]) and item.is_dir()), None)
    if folder is not None:
        raise LengthwiseError(
            f"{folder} is a folder, one of several; pass one folder, or the files in them, as in {folder}/*"
        )


def _expand(source: Any) -> list[Location]:
    where = os.fsdecode(source)
    if not where:
        raise LengthwiseError("the path is empty; pass that of a dataset")
    with reading(where if len(where) < 200 else f"{where[:200]}...", "check the path"):
        system, path = _url(where) if "://" in where else (None, str(Path(where).expanduser()))
        location = Location(path, system)
        if location.exists():
            return [location]
        if GLOB.intersection(path):
            matches = _glob(path, system)
            if not matches:
                raise LengthwiseError(f"{where} matches no file; check the pattern")
            return [Location(match, system) for match in matches]
        if CUT_URL.match(where):
            raise LengthwiseError(
                f"{where} is no path, and as a URL, pathlib takes a slash from it; pass the URL as text"
            )
        return [_without_suffix(location)]


def _without_suffix(location: Location) -> Location:
    # Megatron names a dataset by the path without the .bin and .idx of its two files.
    index = Location(location.path + ".idx", location.system)
    if index.is_file():
        return index
    hint = (
        "write ranges in braces as globs, as in *"
        if "{" in location.name and ".." in location.name
        else "check the path"
    )
    raise LengthwiseError(f"{location} does not exist; {hint}")


def _glob(pattern: str, system: Any = None) -> list[str]:
    from glob import glob

    # pathlib cannot glob an absolute pattern.
    found = sorted(glob(pattern, recursive=True) if system is None else system.glob(pattern))  # noqa: PTH207
    if PurePath(pattern).name.startswith("_"):
        return found
    # What writers leave beside the data (_SUCCESS, _metadata) is left out, as hidden files are.
    return [path for path in found if not PurePath(path).name.startswith("_")]


def _is_path(text: str) -> bool:
    """Whether the first of several texts is a path rather than a sample."""
    if URL.match(text) or text.lower().endswith(SUFFIXES):
        return True
    with suppress(OSError):
        path = Path(text).expanduser()
        return path.exists() or bool(GLOB.intersection(text) and _glob(str(path)))
    return False


def _url(url: str) -> tuple[Any, str]:
    with reading(url, "check the URL"):
        from fsspec.core import url_to_fs

        system, path = url_to_fs(url)
        # What it has listed before may be out of date.
        system.invalidate_cache()
    protocols = (system.protocol,) if isinstance(system.protocol, str) else system.protocol
    if "file" not in protocols:
        return system, path
    return None, path if Path(path).exists() else unquote(path)
