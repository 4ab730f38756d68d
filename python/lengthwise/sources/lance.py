"""Lance datasets, through pylance: only the one column is read, batch by batch."""

from __future__ import annotations

from typing import Any

from lengthwise._core import LengthwiseError
from lengthwise.sources.arrow import DatasetSource
from lengthwise.sources.base import reading
from lengthwise.sources.files import Paths


def open(source: Any) -> DatasetSource | None:  # noqa: A001 - the name of the format's entry point
    """Open a folder that Lance wrote; a `lance.LanceDataset` is a `pyarrow.dataset.Dataset` already."""
    if not isinstance(source, Paths) or source.folder is None or not source.folder.child("_versions").is_dir():
        return None
    try:
        import lance
    except ImportError as error:
        raise LengthwiseError(f"{source.where} is a Lance dataset; pip install pylance") from error
    with reading(source.where, "it may be damaged: write it again"):
        opened = DatasetSource(source.where, lance.dataset(str(source.folder)))
    opened.format = "Lance"
    return opened
