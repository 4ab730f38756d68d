"""Does the dataset have the lengths that were planned? A cheap check before hours of training."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise import LengthwiseError
from lengthwise.torch.guard import check_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lengthwise.planner import Planner

#: Fields of a row that tell its length, in the order in which they are tried.
TOKENS: Final = ("input_ids", "tokens", "labels")


def check_dataset(dataset: Any, planner: Planner, *, rows: int = 16, column: str | Sequence[str] | None = None) -> None:
    """Compare the size of `dataset` and the lengths of a few rows with what the planner was given.

    A dataset that was filtered, shuffled, sorted or re-tokenised after its lengths were read makes batches that break
    the budget without a word; a few rows far apart in length tell it.

    Args:
        dataset: map-style; its rows are mappings, sequences of tokens, or tuples that begin with one.
        planner: plans it.
        rows: how many rows to read: the longest, the shortest, and rows spread evenly over the dataset.
        column: the field whose length (or value, if a number) is the length of a row; by default the column that the
            lengths were read from, else `input_ids`, `tokens` or `labels`. Of pairs, both fields.

    Raises:
        LengthwiseError: another size, or a row of another length; the message has the row and both numbers.

    Cost: reading `rows` rows.

    Example:
        >>> import lengthwise as lw
        >>> planner = lw.Planner([2, 3], lw.Padded(max_tokens=6))
        >>> check_dataset([{"input_ids": [5, 6]}, {"input_ids": [5, 6, 7]}], planner)
        >>> check_dataset([{"input_ids": [5, 6, 7]}, {"input_ids": [5, 6]}], planner)
        Traceback (most recent call last):
        lengthwise.LengthwiseError: dataset[1] is 2 tokens, but lengths[1] is 3; read the lengths from ...
    """
    check_size(dataset, len(planner.lengths))
    lengths = planner.lengths
    columns = _columns(lengths, column)
    spread = np.linspace(0, len(lengths) - 1, max(0, rows - 2)).astype(np.int64).tolist()
    tokens = planner.sample_tokens
    for index in dict.fromkeys([int(tokens.argmax()), int(tokens.argmin()), *spread][: max(0, rows)]):
        row, planned = dataset[index], lengths[index].tolist()
        found = [row_length(row, name, f"dataset[{index}]") for name in columns]
        length = found if len(columns) == 2 else found[0]
        if length != planned:
            raise LengthwiseError(
                f"dataset[{index}] is {length} tokens, but lengths[{index}] is {planned}; read the lengths from "
                "the dataset that is trained on, after it was filtered, shuffled or tokenised anew"
            )


def _columns(lengths: Any, column: str | Sequence[str] | None) -> list[str | None]:
    """The field that tells each length of a row; None where it is to be guessed."""
    if lengths.ndim == 1:
        if column is None or isinstance(column, str):
            return [getattr(lengths, "column", None) if column is None else column]
    else:
        info = getattr(lengths, "info", None)
        columns = column if column is not None or info is None else info.columns
        if columns is not None and not isinstance(columns, str) and len(columns) == 2:
            return list(columns)
    raise LengthwiseError(
        f"column is {column!r:.60}, but must name {'both fields' if lengths.ndim == 2 else 'one field'} whose lengths "
        "were planned"
    )


def row_length(row: Any, column: str | None, name: str) -> int:
    """Return the length of one row.

    Raises:
        LengthwiseError: nothing in it tells.
    """
    value = row
    if isinstance(row, Mapping):
        found = column if column in row else next((field for field in TOKENS if field in row), None)
        if found is None:
            raise LengthwiseError(
                f"{name} has the fields {sorted(map(str, row))}, but none that tells its length; "
                'name one: column="input_ids"'
            )
        value = row[found]
    elif isinstance(row, tuple) and row:
        value = row[0]
    if isinstance(value, Integral):
        return int(value)
    try:
        return len(value)
    except TypeError:
        raise LengthwiseError(
            f"{name} holds a {type(value).__name__}, which has no length; give rows of tokens, or name a column of them"
        ) from None
