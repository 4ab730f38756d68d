"""Where the arrays of a batch are made: fresh ones, or one buffer per field used again."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


class Arrays:
    """Make arrays by name; with `reuse` the next batch gets the same memory, so the last batch must be done with it.

    A fresh 64 K-token int64 array costs a page fault per 4 KiB; a reused one costs nothing. Useful in a loop that moves
    each batch to a device before it asks for the next, not behind a `DataLoader` that prefetches.
    """

    def __init__(self, *, reuse: bool) -> None:
        self._buffers: dict[str, npt.NDArray[Any]] | None = {} if reuse else None

    def empty(self, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an array of undefined content."""
        if self._buffers is None:
            return self._allocate(math.prod(shape), dtype).reshape(shape)
        size = math.prod(shape)
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < size or buffer.dtype != dtype:
            buffer = self._buffers[name] = self._allocate(size, dtype)
        return buffer[:size].reshape(shape)

    def _allocate(self, size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        return np.empty(size, dtype)
