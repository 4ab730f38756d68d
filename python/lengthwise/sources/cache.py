"""Lengths kept beside the dataset, on request, so that a long read happens once and goes on where it was interrupted.

Two files: `<key>.u32`, the lengths as little-endian uint32 that every rank maps, and `<key>.json`, which says what they
are. The key is a hash of the format, the column and the stamp of the data (sizes and times of the files, or the
fingerprint that the dataset keeps), so changed data has another key. Both are written under another name and renamed,
the JSON last. While a read is under way, `<key>.part` holds the parts that are done and `<key>.done` a line for each;
who reads has a lock on the latter, so that of all ranks that start at once one reads, and the others wait for what it
keeps. Where there are no such locks (Windows), let one process read first.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise._core import LengthwiseError
from lengthwise.sources.base import reading
from lengthwise.sources.collect import columns, join
from lengthwise.sources.measure import Column

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lengthwise.progress import Callback
    from lengthwise.sources.base import Field, Source

#: The folder beside the dataset.
FOLDER: Final = ".lengthwise"
#: The version of the files; others are ignored.
VERSION: Final = 1
ADVICE: Final = "pass cache= a folder that can be written"
DTYPE: Final = np.dtype("<u4")


@dataclass(frozen=True)
class Cache:
    """Where one column of one state of a dataset is kept."""

    folder: Path
    key: str

    @classmethod
    def of(cls, source: Source, field: Field, where: Any) -> Cache:
        """Return the place for a column; `where` is a folder, or True for the one beside the dataset."""
        stamp = source.stamp()
        if stamp is None:
            raise LengthwiseError(
                f"{source.where} cannot be cached, as nothing tells when it changes; save the lengths with numpy.save"
            )
        if where is not True and not isinstance(where, (str, os.PathLike)):
            raise LengthwiseError(f"cache is {where!r}, but must be True, False or a folder")
        beside = source.folder()
        if where is True and beside is None:
            raise LengthwiseError(f"{source.where} is not in a local folder; pass cache= a folder to keep lengths in")
        folder = Path(beside or "") / FOLDER if where is True else Path(os.fspath(where)).expanduser()
        text = json.dumps([VERSION, source.format, field.path, field.type, stamp])
        return cls(folder, blake2b(text.encode(), digest_size=16).hexdigest())

    def load(self) -> Column | None:
        """Return what is kept, mapped, or None."""
        try:
            about = json.loads(self._path("json").read_text(encoding="utf-8"))
            rows, nulls = int(about["rows"]), np.array(about["nulls"], np.int64)
            if about["version"] != VERSION or self._path("u32").stat().st_size != rows * DTYPE.itemsize:
                return None
            values = np.memmap(self._path("u32"), DTYPE, "r", shape=(rows,)) if rows else np.empty(0, DTYPE)
        except (OSError, ValueError, LookupError, TypeError):
            return None
        return Column(values.view(np.ndarray), nulls)

    def read(self, source: Source, field: Field, report: Callback) -> Column:
        """Read the column, part by part, from where an interrupted read ended; keep and return it."""
        with self._locked():
            # Who had the lock before has kept it.
            return self.load() or self._read(source, field, report)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Wait for other processes that read the column, and make others wait."""
        with ExitStack() as stack:
            with reading(str(self.folder), ADVICE):
                self.folder.mkdir(parents=True, exist_ok=True)
                journal = stack.enter_context(self._path("done").open("ab"))
                with suppress(ImportError):
                    from fcntl import LOCK_EX, flock

                    flock(journal, LOCK_EX)
            yield
            self._path("done").unlink(missing_ok=True)

    def _read(self, source: Source, field: Field, report: Callback) -> Column:
        with reading(str(self.folder), ADVICE):
            done = list(self._resumed())
        start = sum(len(part.values) for part in done)
        with reading(str(self.folder), ADVICE), self._path("part").open("r+b" if done else "wb") as values:
            values.truncate(start * DTYPE.itemsize)
            values.seek(0, os.SEEK_END)
            with self._path("done").open("a" if done else "w", encoding="utf-8") as journal:
                for part in columns(source, source.read(field, len(done)), report, start):
                    values.write(part.values.astype(DTYPE, copy=False).data)
                    values.flush()
                    journal.write(json.dumps({"rows": len(part.values), "nulls": part.nulls.tolist()}) + "\n")
                    journal.flush()
                    done.append(part)
        column = join(done)
        with reading(str(self.folder), ADVICE):
            self._finish(column, source, field)
        return column

    def _resumed(self) -> Iterator[Column]:
        """Yield the parts that are done, as far as both files agree."""
        try:
            lines = self._path("done").read_text(encoding="utf-8").splitlines(keepends=True)
            stored = np.fromfile(self._path("part"), DTYPE)
        except FileNotFoundError:
            return
        start = 0
        for line in lines:
            entry = json.loads(line) if line.endswith("\n") else {"rows": len(stored)}
            rows = int(entry["rows"])
            if start + rows > len(stored) or "nulls" not in entry:
                return
            yield Column(stored[start : start + rows], np.array(entry["nulls"], np.int64))
            start += rows

    def _finish(self, column: Column, source: Source, field: Field) -> None:
        about = {
            "version": VERSION,
            "rows": len(column.values),
            "nulls": column.nulls.tolist(),
            "dtype": DTYPE.str,
            "source": source.where,
            "format": source.format,
            "column": field.path,
        }
        self._path("part").replace(self._path("u32"))
        unfinished = self.folder / f"{self.key}.json.{os.getpid()}"
        unfinished.write_text(json.dumps(about), encoding="utf-8")
        unfinished.replace(self._path("json"))

    def _path(self, suffix: str) -> Path:
        return self.folder / f"{self.key}.{suffix}"
