"""Lengths in a file of their own: `.npy`, mapped. It is also the sidecar for formats that store none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise.sources.base import Field, reading
from lengthwise.sources.files import FilesSource, Location, Paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

MAGIC: Final = b"\x93NUMPY"


class NumpySource(FilesSource):
    """Integers in one or several .npy files."""

    format = "numpy file"

    def __init__(self, where: str, items: Sequence[Location]) -> None:
        self.where = where
        self.items = items
        self.fields = [Field("", "integer", str(_load(items[0]).dtype))]

    def read(self, field: Field, skip: int = 0) -> Iterator[npt.NDArray[Any]]:  # noqa: ARG002 - there is only one
        """Yield the array of each file, mapped."""
        for item in self.items[skip:]:
            yield _load(item)


def open(source: Any) -> NumpySource | None:  # noqa: A001 - the name of the format's entry point
    """Open .npy files."""
    if isinstance(source, Paths) and source.starting(MAGIC):
        return NumpySource(source.where, source.items)
    return None


def _load(item: Location) -> npt.NDArray[Any]:
    from io import BytesIO

    with reading(str(item), "it may be truncated: write it again with numpy.save"):
        if item.local:
            array = np.load(item.local, mmap_mode="r", allow_pickle=False)
            return array.view(np.ndarray) if array.size else np.array(array)
        return np.load(BytesIO(item.bytes()), allow_pickle=False)  # type: ignore[no-any-return]
