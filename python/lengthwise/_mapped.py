"""Arrays that map a file are pickled as their place in the file, not as their values.

Problem: numpy pickles a memory map as a copy. A planner is pickled with its sampler into every process that a launcher
spawns; lengths of a billion samples would become gigabytes in each, where one map of the file serves them all.

Method: find the map behind an array, and pickle path, offset, type, shape and fingerprint. Opening it again checks the
fingerprint, so that a file that has changed, or another one of that name on another machine, is not taken for it.
"""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np

from lengthwise import _core
from lengthwise._core import LengthwiseError


class MappedLengths:
    """Pickles as a reference to the file, and is unpickled as the array."""

    def __init__(self, *place: Any) -> None:
        self._place = place

    @classmethod
    def of(cls, array: Any, fingerprint: str) -> Any:
        """Return what to pickle for `array`: itself, unless it maps a file that is only read."""
        owner: Any = array
        while isinstance(owner, np.ndarray) and not isinstance(owner.base, mmap.mmap):
            owner = owner.base
        if not isinstance(owner, np.memmap) or owner.mode != "r" or owner.filename is None:
            return array
        offset = owner.offset + array.ctypes.data - owner.ctypes.data
        return cls(os.fspath(owner.filename), offset, array.dtype.str, array.shape, fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        return _open, self._place


def _open(path: str, offset: int, dtype: str, shape: tuple[int, ...], fingerprint: str) -> Any:
    try:
        array = np.memmap(path, dtype, "r", offset, shape).view(np.ndarray)
    except (OSError, ValueError) as error:
        raise LengthwiseError(
            f"the lengths of a pickled planner are mapped from {path}, which cannot be mapped here ({error}); "
            "put the file there, or make the planner of np.array(lengths) to pickle the values"
        ) from error
    if _core.fingerprint(array.ravel()) != fingerprint:
        raise LengthwiseError(f"{path} holds other lengths than when the planner was pickled; make the planner anew")
    return array
