"""Lengths as the core takes them: one contiguous uint16 or uint32 array, checked where it enters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise._core import LengthwiseError

if TYPE_CHECKING:
    import numpy.typing as npt

    Lengths = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]

#: The longest sample, in tokens: lengths fit a signed 32-bit integer everywhere, so that no kernel's offsets overflow.
MAX_LENGTH: Final = 2**31 - 1


def as_lengths(lengths: Any, name: str = "lengths") -> Lengths:
    """Return `lengths` as a contiguous uint16[n] or uint32[n], without a copy where the memory already is one.

    uint16, uint32 and int32 arrays are used as they are (the sign is checked); other integer types take one pass into
    uint32. Anything that is not a numpy array or a sequence of integers goes through `read_lengths`.

    Args:
        lengths: array-like of n integers, in tokens, each from 0 to 2**31 - 1.
        name: the argument's name, for messages.

    Raises:
        LengthwiseError: not one-dimensional, not integers, negative, or above 2**31 - 1; the message names the index.
    """
    array = lengths if isinstance(lengths, np.ndarray) else _from_object(lengths, name)
    if array.ndim != 1:
        raise LengthwiseError(f"{name} must be one-dimensional, got shape {array.shape}")
    if array.dtype.kind not in "iu":
        raise LengthwiseError(_not_integers(array, name))
    _check_range(array, name)
    if array.dtype == np.int32:
        array = array.view(np.uint32) if array.dtype.isnative else array
    if array.dtype in (np.uint16, np.uint32):
        return np.ascontiguousarray(array)
    return np.ascontiguousarray(array, dtype=np.uint32)


def _from_object(lengths: Any, name: str) -> npt.NDArray[Any]:
    if isinstance(lengths, (list, tuple, range)):
        try:
            array = np.asarray(lengths)
        except (ValueError, OverflowError) as error:
            raise LengthwiseError(f"{name} must be a flat sequence of integers: {error}") from error
        return array.astype(np.uint32) if array.size == 0 else array
    from lengthwise.lengths import read_lengths

    return read_lengths(lengths, check="none")


def _not_integers(array: npt.NDArray[Any], name: str) -> str:
    message = f"{name} must be integers (tokens in each sample), got dtype {array.dtype}"
    if array.dtype.kind == "f":
        odd = np.flatnonzero(~np.isfinite(array) | (array != np.floor(array)))
        if odd.size:
            return f"{message}; {name}[{odd[0]}] is {array[odd[0]]}"
        return f"{message}; convert with .astype('uint32') if the values are whole"
    if array.dtype.kind == "O":
        for index, value in enumerate(array):
            if not isinstance(value, (int, np.integer)):
                return f"{message}; {name}[{index}] is {value!r:.60}"
    return message


def _check_range(array: npt.NDArray[Any], name: str) -> None:
    if array.size == 0:
        return
    if array.dtype.kind == "i" and int(array.min()) < 0:
        index = int(np.argmax(array < 0))
        raise LengthwiseError(f"{name}[{index}] is {array[index]}; a length cannot be negative")
    if array.dtype.itemsize >= 4 and int(array.max()) > MAX_LENGTH:
        index = int(np.argmax(array > MAX_LENGTH))
        raise LengthwiseError(f"{name}[{index}] is {array[index]} tokens, more than the largest length {MAX_LENGTH}")
