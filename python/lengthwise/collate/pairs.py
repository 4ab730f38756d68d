"""Samples of two lengths as two rectangles: the collator for `PaddedPairs` layouts."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lengthwise._arrays import as_pairs
from lengthwise._core import LengthwiseError

if TYPE_CHECKING:
    import numpy.typing as npt

    from lengthwise.collate.padded import PaddedCollator


@dataclass(eq=False)
class PairCollator:
    """Turn rows with fields of two lengths into [b, X] and [b, Y] arrays: each side has a collator of its own.

    Args:
        first: pads the fields of the first length; its `pad` is a mapping that names them.
        second: pads those of the second.
        cells: integers[k, 2]: the bounds of the cells, the cheapest first, as `planner.boundaries` has them. X and Y
            are then those of the first cell that holds the batch (a layout with `pad_to="boundary"`). None pads both
            to their longest rows.

    The collators are those of `lengthwise.collate` (arrays) or of `lengthwise.torch` (tensors).

    Raises:
        LengthwiseError: collators that take all fields, or make fields of one name; as `PaddedCollator`; rows that fit
            no cell.

    Example:
        >>> from lengthwise.collate import PaddedCollator
        >>> source = PaddedCollator({"input_ids": 0}, labels=False)
        >>> target = PaddedCollator({"labels": -100}, attention_mask=False)
        >>> collate = PairCollator(source, target, cells=[[2, 3], [4, 4]])
        >>> batch = collate([{"input_ids": [5, 6], "labels": [7]}, {"input_ids": [8], "labels": [9, 9, 9]}])
        >>> {name: array.tolist() for name, array in batch.items()}
        {'input_ids': [[5, 6], [8, 0]], 'attention_mask': [[1, 1], [1, 0]], 'labels': [[7, -100, -100], [9, 9, 9]]}
    """

    first: PaddedCollator
    second: PaddedCollator
    _: KW_ONLY
    cells: npt.ArrayLike | None = None

    def __post_init__(self) -> None:
        for name, side in (("first", self.first), ("second", self.second)):
            if not isinstance(side.pad, dict):
                raise LengthwiseError(
                    f'{name}.pad is {side.pad!r}, but must name the fields of that length, as in {{"input_ids": 0}}'
                )
        self._cells = None if self.cells is None else as_pairs(self.cells, "cells")

    def __call__(self, rows: Any) -> dict[str, Any]:
        """Collate one batch.

        Args:
            rows: as `PaddedCollator` takes them.

        Returns:
            What both collators return.
        """
        sides = (self.first, self.second)
        read = [side.read(rows) for side in sides]
        widths = self._widths([columns.longest for columns in read])
        first, second = (side.fill(columns, width) for side, columns, width in zip(sides, read, widths, strict=True))
        twice = sorted(first.keys() & second.keys())
        if twice:
            raise LengthwiseError(
                f"first and second both make {twice[0]!r}; name each field in one of them, and turn attention_mask and "
                "labels off in the other"
            )
        return first | second

    def _widths(self, longest: list[int]) -> list[int | None]:
        if self._cells is None:
            return [None, None]
        fits = (self._cells >= np.array(longest)).all(axis=1)
        if not fits.any():
            raise LengthwiseError(
                f"rows are up to {longest[0]} by {longest[1]} tokens, which fits no cell; plan with these lengths, or "
                "cut the rows"
            )
        multiples = self.first.multiple_of, self.second.multiple_of
        cell = self._cells[int(np.argmax(fits))].tolist()
        return [-(-bound // multiple) * multiple for bound, multiple in zip(cell, multiples, strict=True)]
