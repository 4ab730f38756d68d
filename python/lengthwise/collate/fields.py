"""What each field of a batch becomes: its dtype, its pad value, and labels where the rows bring none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise._core import LengthwiseError
from lengthwise.collate.rows import Ragged

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    Array = npt.NDArray[Any]

#: The label that every loss of the field ignores.
IGNORE: Final = -100


def default_dtype(stored: np.dtype[Any]) -> np.dtype[Any]:
    """int64 for every integer, as embeddings and losses take it; other types stay."""
    return np.dtype(np.int64) if stored.kind in "iu" else stored


def pad_value(pad: float | Mapping[str, float], name: str) -> float:
    """The number that fills the space behind short rows in one field: see `PaddedCollator`."""
    other = IGNORE if name == "labels" else 0
    if isinstance(pad, dict):
        return float(pad.get(name, other))
    return float(pad) if name == "input_ids" else other  # type: ignore[arg-type]


def labels_of(columns: Mapping[str, Ragged]) -> Ragged:
    """The labels of rows that bring none: `input_ids`, with -100 where their `loss_mask` is 0."""
    tokens, mask = columns["input_ids"], columns.get("loss_mask")
    values = tokens.values.astype(np.int64)
    if mask is not None:
        values[mask.values == 0] = IGNORE
    return Ragged(values, tokens.offsets)


def cast_into(target: Array, values: Array, name: str, offsets: npt.NDArray[np.int64] | None) -> None:
    """Copy `values` into `target`, of the same shape and any dtype that holds them.

    Raises:
        LengthwiseError: a value that the target's type cannot hold; the message names the row, the value and the type.
    """
    check_fits(values, target.dtype, name, offsets)
    np.copyto(target, values, casting="unsafe")


def check_fits(values: Array, dtype: np.dtype[Any], name: str, offsets: npt.NDArray[np.int64] | None) -> None:
    """Check that `dtype` holds every one of `values`; free where the types alone tell.

    Raises:
        LengthwiseError: a value that does not fit; the message names the row, the value and the type.
    """
    if values.size == 0 or np.can_cast(values.dtype, dtype, "safe") or dtype.kind in "fb":
        return
    limits = np.iinfo(dtype)
    if values.dtype.kind == "f":
        bad = ~np.isfinite(values) | (values != np.floor(values)) | (values < limits.min) | (values > limits.max)
    elif int(values.min()) >= limits.min and int(values.max()) <= limits.max:
        return
    else:
        bad = (values < limits.min) | (values > limits.max)
    if bad.any():
        index = int(np.argmax(bad))
        row = index if offsets is None else int(np.searchsorted(offsets, index, side="right")) - 1
        place = "" if offsets is None else f"[{index - int(offsets[row])}]"
        raise LengthwiseError(
            f"rows[{row}][{name!r}]{place} is {values[index]}, but {dtype} holds integers from {limits.min} to "
            f"{limits.max}; choose a wider dtype"
        )


def check_pad(pad: npt.NDArray[Any], dtype: np.dtype[Any], name: str) -> None:
    """Check that the pad value of a field fits its dtype.

    Raises:
        LengthwiseError: it does not.
    """
    if dtype.kind in "iu" and (pad != np.floor(pad) or not np.iinfo(dtype).min <= pad <= np.iinfo(dtype).max):
        raise LengthwiseError(f"pad[{name!r}] is {pad}, but {dtype} cannot hold it; choose another pad value or dtype")
