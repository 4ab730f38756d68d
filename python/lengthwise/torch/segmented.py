"""A dataset of pieces of samples: what a plan that truncates or splits over-long samples asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Any, TypeGuard

from torch.utils.data import Dataset

#: What a batch sampler yields where samples are cut: the sample, its first token, the token after its last.
Segment = tuple[int, int, int]


class Segmented(Dataset[Any]):
    """Rows of `dataset`, cut to the tokens that a plan uses of them.

    A row that is a mapping keeps its keys: every list, array or tensor as long as the longest one of the row is cut,
    all else (numbers, strings, shorter lists) is kept as it is. Any other row is cut itself.

    Args:
        dataset: map-style; `__getitems__` is used where it has one, as the `DataLoader` would.
        start_field: the field to add to each row (a mapping) with the position of its first token in the whole sample:
            with `PackedCollator(position_start=...)` of the same name, positions of pieces continue.

    Example:
        >>> rows = Segmented([{"input_ids": [5, 6, 7, 8], "labels": [1, 1, 0, 1], "source": "a"}])
        >>> rows[0, 1, 3]
        {'input_ids': [6, 7], 'labels': [1, 0], 'source': 'a'}
    """

    def __init__(self, dataset: Any, *, start_field: str | None = None) -> None:
        self.dataset = dataset
        self.start_field = start_field

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, segment: Segment) -> Any:
        index, start, stop = segment
        return self._piece(self.dataset[index], start, stop)

    def __getitems__(self, segments: Sequence[Segment]) -> list[Any]:
        """Return the rows of a whole batch."""
        indices = [index for index, _, _ in segments]
        if hasattr(self.dataset, "__getitems__"):
            rows = self.dataset.__getitems__(indices)
        else:
            rows = [self.dataset[index] for index in indices]
        return [self._piece(row, start, stop) for row, (_, start, stop) in zip(rows, segments, strict=True)]

    def _piece(self, row: Any, start: int, stop: int) -> Any:
        piece = cut(row, start, stop)
        return piece if self.start_field is None else {**piece, self.start_field: start}


def cut(row: Any, start: int, stop: int) -> Any:
    """Return the tokens from `start` to `stop` of a row, as `Segmented` says."""
    if not isinstance(row, Mapping):
        return row[start:stop]
    longest = max((len(value) for value in row.values() if _is_tokens(value)), default=0)
    return {
        name: value[start:stop] if _is_tokens(value) and len(value) == longest else value for name, value in row.items()
    }


def _is_tokens(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sized) and hasattr(value, "__getitem__") and not isinstance(value, (str, bytes, Mapping))
