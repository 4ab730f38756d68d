"""Folders of files that make one dataset, in the order of their paths.

Files of two formats or of two splits are two datasets, which a reader that takes all of them makes into one without a
word: so they are refused, and the user says which. Who names all of them by a glob gets all of them.
"""

from __future__ import annotations

import re
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Final

from lengthwise._core import LengthwiseError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lengthwise.sources.files import Location, Paths

#: Names of the files of each format.
NAMES: Final[dict[str, tuple[str, ...]]] = {
    "Parquet": ("*.parquet", "*.pq"),
    "Arrow": ("*.arrow", "*.feather", "*.ipc"),
    "WebDataset": ("*.tar", "*.tar.gz", "*.tgz", "*.tar.bz2", "*.tar.xz"),
    "JSON lines": tuple(
        f"*{name}{end}"
        for name in (".jsonl", ".ndjson", ".json")
        for end in ("", ".gz", ".bz2", ".zst", ".lz4")
        if name + end != ".json"  # which is a setting more often than data
    ),
    "datatrove": ("*.ds.index",),
}
SPLITS: Final = re.compile(r"(?<![a-z])(train|training|test|testing|valid|validation|val|dev|eval|evaluation)(?![a-z])")
#: How the Hub names the files of a split.
NUMBERED: Final = re.compile(r"(.+?)-\d+-of-\d+")


def files_of(source: Paths, kind: str) -> list[Location]:
    """Return the files of a format in the folder that was named; none where it has none.

    Raises:
        LengthwiseError: there are files of another format too, or of several splits.
    """
    if source.folder is None:
        return []
    found = {name: [item for item in source.folder.below if _matches(item, name)] for name in NAMES}
    items = found.pop(kind)
    others = [name for name in found if found[name]]
    if not items:
        return []
    if others:
        raise LengthwiseError(
            f"{source.where} holds files of several formats, {' and '.join([kind, *others])}; pass those of one, as in "
            f"{source.where}/{NAMES[kind][0]}"
        )
    _refuse_splits(source.where, NAMES[kind][0], [item.path[len(source.folder.path) :].strip("/") for item in items])
    return items


def described(folder: Location, limit: int = 5) -> str:
    """Return what is in a folder that no format knows, for a message."""
    names = [item.name for item in folder.below]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return f"it has {', '.join(names[:limit])}{more}" if names else "it is empty"


def _matches(item: Location, kind: str) -> bool:
    return any(fnmatch(item.name.lower(), pattern) for pattern in NAMES[kind])


def _refuse_splits(where: str, pattern: str, names: Sequence[str]) -> None:
    """Refuse files whose paths say that they are of several splits."""
    for find in (_numbered, _words):
        # Each split, and a part of a path that tells it from others.
        splits = dict(split for name in reversed(names) for split in find(name))
        if len(splits) > 1:
            named = sorted(splits)
            raise LengthwiseError(
                f"{where} holds files of several splits, {', '.join(named)}; pass {where}/{splits[named[0]]}, or "
                f"{where}/**/{pattern} for all"
            )


def _numbered(name: str) -> Iterator[tuple[str, str]]:
    found = NUMBERED.match(name.rpartition("/")[2])
    if found:
        yield found.group(1), f"*{found.group(1)}*"


def _words(name: str) -> Iterator[tuple[str, str]]:
    found = SPLITS.search(name.lower())
    if found:
        rest, slash, _ = name[found.start() :].partition("/")
        yield found.group(), name[: found.start()] + rest if slash else f"*{found.group()}*"
