"""Samples as rows of one rectangle: the collator for `Padded` layouts.

Problem: rows of different lengths become [b, L] arrays. Method: one array per field, one copy and one fill per row; L
is what the plan counted: the longest row rounded up to `multiple_of`, or its bucket's boundary. Cost: writing the
rectangle (about 0.3 ns a padded token and field) and half a microsecond a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from lengthwise._arrays import MAX_LENGTH
from lengthwise._core import LengthwiseError
from lengthwise._integers import as_integer
from lengthwise.collate.arrays import Arrays
from lengthwise.collate.fields import cast_into, check_fits, check_pad, default_dtype, labels_of, pad_value
from lengthwise.collate.rows import Ragged, check_same_lengths, field_names, read_rows

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]


class Columns(NamedTuple):
    """The fields of one batch, and the offsets that they share."""

    fields: dict[str, Ragged]
    offsets: npt.NDArray[np.int64]

    @property
    def longest(self) -> int:
        """The longest row, in tokens."""
        return int(np.diff(self.offsets).max())


@dataclass(eq=False)
class PaddedCollator:
    """Turn rows of different lengths into [b, L] arrays, with attention mask and labels.

    Args:
        pad: what fills the space behind short rows. A number is the pad token: all fields are taken, `labels` are
            padded with -100 and every other field but `input_ids` with 0. A mapping takes exactly its fields, each
            with its own pad value: `{"input_ids": 2, "loss_mask": 0}`.
        side: where the rows stand: "right" pads behind them (training), "left" in front (generation).
        multiple_of: L is rounded up to a multiple of this; give the layout's.
        boundaries: ascending lengths; L is the first that holds the longest row (a layout with `pad_to="boundary"`), so
            that a compiled model sees as many shapes as there are boundaries. None pads to the longest row.
        attention_mask: add `attention_mask`, int64[b, L], 1 on the row and 0 on padding, unless the rows bring one.
        labels: add `labels` unless the rows bring them: a copy of `input_ids` with -100 on padding and wherever the
            rows' `loss_mask` is 0. (Models shift the labels themselves.)
        dtypes: field to dtype of the result. Integers become int64 where nothing is said, other types stay.
        reuse: write every batch into the same memory; the last batch is overwritten by the next.

    A field of one number per row (such as `seq_len`) becomes [b].

    Raises:
        LengthwiseError: arguments of the wrong kind.

    Example:
        >>> collate = PaddedCollator(pad=9, multiple_of=2)
        >>> batch = collate([{"input_ids": [1, 2, 3], "loss_mask": [0, 1, 1]}, {"input_ids": [4], "loss_mask": [1]}])
        >>> batch["input_ids"]
        array([[1, 2, 3, 9],
               [4, 9, 9, 9]])
        >>> batch["labels"]
        array([[-100,    2,    3, -100],
               [   4, -100, -100, -100]])
        >>> batch["attention_mask"].sum(axis=1)
        array([3, 1])
    """

    pad: float | Mapping[str, float] = 0
    _: KW_ONLY
    side: Literal["right", "left"] = "right"
    multiple_of: int = 1
    boundaries: npt.ArrayLike | None = None
    attention_mask: bool = True
    labels: bool = True
    dtypes: Mapping[str, npt.DTypeLike] | None = None
    reuse: bool = False

    def __post_init__(self) -> None:
        if self.side not in ("right", "left"):
            raise LengthwiseError(f"side is {self.side!r}, but must be 'right' or 'left'")
        self.multiple_of = as_integer(self.multiple_of, "multiple_of", 1, MAX_LENGTH)
        self.pad = dict(self.pad) if isinstance(self.pad, Mapping) else self.pad
        self._bounds = None if self.boundaries is None else _ascending(self.boundaries)
        self._dtypes = {name: np.dtype(dtype) for name, dtype in (self.dtypes or {}).items()}
        self._arrays = Arrays(reuse=self.reuse)

    def __call__(self, rows: Any, *, length: int | None = None) -> dict[str, Any]:
        """Collate one batch.

        Args:
            rows: the b samples: a pyarrow table, a list of mappings (lists, arrays, tensors, Arrow scalars) or a
                mapping of columns; see `lengthwise.collate.read_rows`.
            length: L, in tokens, for instance `plan.padded_lengths[i]`; None computes it as the plan does.

        Returns:
            Field to array: [b, L] for lists, [b] for numbers; `attention_mask` and `labels` as the collator was asked.

        Raises:
            LengthwiseError: no rows, a missing field, fields of different lengths in a row, a row longer than `length`
                or the last boundary, a value that the dtype cannot hold: the message names the row and the numbers.
        """
        return self.fill(self.read(rows), length)

    def read(self, rows: Any) -> Columns:
        """Return the fields of one batch that this collator takes: the first half of a call."""
        columns = read_rows(rows, self._needed(rows))
        return Columns(columns, check_same_lengths(columns))

    def fill(self, read: Columns, length: int | None = None) -> dict[str, Any]:
        """Pad what was read: the second half of a call."""
        columns, offsets = read
        width = self._width(np.diff(offsets), length)
        batch = {name: self._rectangle(name, column, width) for name, column in columns.items() if self._taken(name)}
        if self.attention_mask and "attention_mask" not in batch:
            batch["attention_mask"] = self._mask(offsets, width)
        if self.labels and "labels" not in batch and "input_ids" in columns:
            batch["labels"] = self._rectangle("labels", labels_of(columns), width)
        return batch

    def _taken(self, name: str) -> bool:
        return not isinstance(self.pad, dict) or name in self.pad

    def _needed(self, rows: Any) -> list[str] | None:
        """The fields to read: those of `pad`, and what the labels are made of where the rows have it."""
        if not isinstance(self.pad, dict):
            return None
        extra = [name for name in ("input_ids", "loss_mask") if self.labels and "labels" not in self.pad]
        return list(self.pad) + [name for name in extra if name not in self.pad and name in field_names(rows)]

    def _width(self, lengths: npt.NDArray[np.int64], length: int | None) -> int:
        row = int(np.argmax(lengths))
        longest = max(int(lengths[row]), 1)  # a sample without tokens still has a row
        limit, limit_name = length, "length"
        if length is None:
            if self._bounds is None:
                return -(-longest // self.multiple_of) * self.multiple_of
            limit, limit_name = int(self._bounds[-1]), "the last boundary"
        if longest > limit:  # type: ignore[operator]
            raise LengthwiseError(
                f"rows[{row}] is {longest} tokens, but {limit_name} is {limit}; plan with these lengths, or cut the row"
            )
        if length is not None:
            return int(length)
        bound = int(self._bounds[np.searchsorted(self._bounds, longest)])  # type: ignore[index, arg-type]
        return -(-bound // self.multiple_of) * self.multiple_of

    def _rectangle(self, name: str, column: Ragged, width: int) -> Array:
        dtype = self._dtypes.get(name, default_dtype(column.values.dtype))
        if column.offsets is None:
            target = self._arrays.empty(name, (column.values.size,), dtype)
            cast_into(target, column.values, name, None)
            return target
        pad = np.asarray(pad_value(self.pad, name))
        target = self._arrays.empty(name, (column.offsets.size - 1, width), dtype)
        check_pad(pad, dtype, name)
        cast_into_rows(target, column, name, pad, left=self.side == "left")
        return target

    def _mask(self, offsets: npt.NDArray[np.int64], width: int) -> Array:
        dtype = self._dtypes.get("attention_mask", np.dtype(np.int64))
        target = self._arrays.empty("attention_mask", (offsets.size - 1, width), dtype)
        lengths, positions = np.diff(offsets)[:, None], np.arange(width)
        if self.side == "left":
            np.copyto(target, positions >= width - lengths, casting="unsafe")
        else:
            np.copyto(target, positions < lengths, casting="unsafe")
        return target


def cast_into_rows(target: Array, column: Ragged, name: str, pad: Array, *, left: bool) -> None:
    """Fill [b, L] `target` with the rows of `column` and `pad` around them."""
    check_fits(column.values, target.dtype, name, column.offsets)
    offsets = [] if column.offsets is None else column.offsets.tolist()
    width, values = target.shape[1], column.values
    for row, start, stop in zip(target, offsets, offsets[1:], strict=False):
        size = stop - start
        begin = width - size if left else 0
        row[begin : begin + size] = values[start:stop]
        if left:
            row[:begin] = pad
        else:
            row[size:] = pad


def _ascending(boundaries: npt.ArrayLike) -> npt.NDArray[np.int64]:
    array = np.asarray(boundaries)
    if (
        array.ndim != 1
        or array.size == 0
        or array.dtype.kind not in "iu"
        or (np.diff(array.astype(np.int64)) <= 0).any()
    ):
        raise LengthwiseError(f"boundaries is {array!r:.80}, but must be ascending integers, at least one")
    return array.astype(np.int64)
