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
        hint = "; PaddedPairs plans samples of two lengths" if array.ndim == 2 and array.shape[1] == 2 else ""
        raise LengthwiseError(f"{name} must be one-dimensional, got shape {array.shape}{hint}")
    return _checked(array, name)


def as_pairs(lengths: Any, name: str = "lengths") -> Lengths:
    """Return `lengths` as a contiguous uint16[n, 2] or uint32[n, 2], as `as_lengths` does.

    Raises:
        LengthwiseError: not of shape [n, 2], or as `as_lengths`.
    """
    array = lengths if isinstance(lengths, np.ndarray) else _from_object(lengths, name)
    if array.ndim != 2 or array.shape[1] != 2:
        raise LengthwiseError(
            f"{name} must be integers[n, 2], two for each, got shape {array.shape}; "
            'read_lengths(source, [first, second], combine="stack") returns such'
        )
    return _checked(array, name)


def _checked(array: npt.NDArray[Any], name: str) -> Lengths:
    """Integers of any shape in the type that the core takes."""
    if array.size == 0:
        return array.astype(np.uint32)
    if isinstance(array, np.ma.MaskedArray) and array.mask.any():
        at = list(map(int, np.argwhere(array.mask)[0]))
        raise LengthwiseError(f"{name}{at} is masked; fill masked values, or leave them out with .compressed()")
    if array.dtype.kind not in "iu":
        raise LengthwiseError(not_integers(array, name))
    _check_range(array, name)
    if array.dtype == np.int32:
        array = array.view(np.uint32) if array.dtype.isnative else array
    # Lengths that were read keep what they remember: where they came from.
    contiguous = np.asanyarray if hasattr(array, "info") else np.asarray
    dtype = array.dtype if array.dtype in (np.uint16, np.uint32) else np.uint32
    return contiguous(array, dtype=dtype, order="C")


def _from_object(lengths: Any, name: str) -> npt.NDArray[Any]:
    if isinstance(lengths, (list, tuple, range)):
        try:
            return np.asarray(lengths)
        except (ValueError, OverflowError) as error:
            raise LengthwiseError(f"{name} must be a flat sequence of integers: {error}") from error
    from lengthwise.lengths import read_lengths

    return read_lengths(lengths)


def not_integers(array: npt.NDArray[Any], name: str) -> str:
    message = f"{name} must be integers (tokens in each sample), got dtype {array.dtype}"
    if array.dtype.kind == "f":
        odd = ~np.isfinite(array) | (array != np.floor(array))
        if odd.any():
            return f"{message}; {_first(array, odd, name)}"
        return f"{message}; convert with .astype('uint32') if the values are whole"
    if array.dtype.kind == "O":
        odd = np.array([not isinstance(value, (int, np.integer)) for value in array.flat]).reshape(array.shape)
        if odd.any():
            return f"{message}; {_first(array, odd, name)}"
        return f"{message}; convert with .astype('uint32') if no value is above {MAX_LENGTH}"
    return message


def _check_range(array: npt.NDArray[Any], name: str) -> None:
    if array.dtype.kind == "i" and int(array.min()) < 0:
        raise LengthwiseError(f"{_first(array, array < 0, name)}; a length cannot be negative")
    if array.dtype.itemsize >= 4 and int(array.max()) > MAX_LENGTH:
        raise LengthwiseError(
            f"{_first(array, array > MAX_LENGTH, name)} tokens, more than the largest length {MAX_LENGTH}"
        )


def _first(array: npt.NDArray[Any], mask: npt.NDArray[np.bool_], name: str) -> str:
    """The first value of `array` where `mask` is true, and where it is."""
    index = tuple(map(int, np.unravel_index(int(np.argmax(mask)), array.shape)))
    value = array[index]
    return f"{name}{list(index)} is {value if isinstance(value, np.generic) else repr(value)[:60]}"
