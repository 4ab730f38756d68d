"""The lengths in one column of Arrow or numpy data, checked.

One contiguous chunk of integers is returned as a view of the memory that holds it; anything else takes one pass into
uint32. What is Arrow's own is in `lengthwise.sources.arrays`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from lengthwise._arrays import MAX_LENGTH, not_integers
from lengthwise._core import LengthwiseError

if TYPE_CHECKING:
    import numpy.typing as npt

NO_ROWS: Final = np.empty(0, np.int64)


class Column(NamedTuple):
    """Lengths, zero where a row is null, and the rows that are."""

    values: npt.NDArray[Any]
    nulls: npt.NDArray[np.int64]


def measured(part: Any, where: str, start: int = 0) -> Column:
    """Return the checked lengths of a part, as a view where one chunk holds them; `start` is the row of the first."""
    if isinstance(part, np.ndarray):
        return Column(checked(np.asarray(part, part.dtype.newbyteorder("="), order="C"), where, start), NO_ROWS)
    from lengthwise.sources.arrays import measured_arrow

    return measured_arrow(part, where, start)


def checked(values: npt.NDArray[Any], where: str, start: int) -> npt.NDArray[Any]:
    """Return the values, which must be lengths; `start` is the row of the first."""
    if values.ndim != 1:
        raise LengthwiseError(
            f"{where} must be one-dimensional integers, got shape {values.shape} of {values.dtype}; samples padded to "
            f"one length do not tell theirs, but attention_mask.sum(1) does"
        )
    if values.dtype.kind not in "iu":
        raise LengthwiseError(not_integers(values, where))
    if values.size == 0:
        return values
    # Seen as unsigned, negative numbers are the largest of all: one pass finds both kinds of wrong ones.
    if int(values.view(f"u{values.dtype.itemsize}").max()) <= min(MAX_LENGTH, np.iinfo(values.dtype).max):
        return values
    if values.dtype.kind == "i" and int(values.min()) < 0:
        index = int(np.argmax(values < 0))
        raise LengthwiseError(f"row {start + index} of {where} has length {values[index]}; lengths cannot be negative")
    if values.dtype.itemsize >= 4 and int(values.max()) > MAX_LENGTH:
        index = int(np.argmax(values > MAX_LENGTH))
        raise LengthwiseError(
            f"row {start + index} of {where} has length {values[index]}, more than the largest length {MAX_LENGTH}"
        )
    return values
