"""Lance datasets, through pylance: only the one column is read, batch by batch."""

from __future__ import annotations

from typing import Any

from lengthwise._core import LengthwiseError
from lengthwise.sources.arrow import DatasetSource
from lengthwise.sources.base import reading
from lengthwise.sources.files import Location, Paths

#: The folder that holds a file for each version of the dataset.
VERSIONS = "_versions"


class LanceSource(DatasetSource):
    """A dataset in a folder; each change of it adds a version."""

    format = "Lance"

    def __init__(self, location: Location, dataset: Any) -> None:
        super().__init__(str(location), dataset)
        self.location = location
        self.rows = dataset.count_rows()

    def stamp(self) -> str | None:
        """Return the version, and when it was written."""
        return None if self.location.system else f"{self.location.child(VERSIONS).stamp()}:{self.dataset.version}"

    def folder(self) -> str | None:
        """Return the folder that the dataset's is in."""
        local = self.location.local
        return str(local.parent) if local else None


def open(source: Any) -> LanceSource | None:  # noqa: A001 - the name of the format's entry point
    """Open a folder that Lance wrote; a `lance.LanceDataset` is a `pyarrow.dataset.Dataset` already."""
    if not isinstance(source, Paths) or source.folder is None or not source.folder.child(VERSIONS).is_dir():
        return None
    try:
        import lance
    except ImportError as error:
        raise LengthwiseError(f"{source.where} is a Lance dataset; pip install pylance") from error
    with reading(source.where, "it may be damaged: write it again"):
        return LanceSource(source.folder, lance.dataset(str(source.folder)))
