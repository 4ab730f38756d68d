"""numpy arrays and Python sequences: integers that are lengths, or samples whose lengths are taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lengthwise._core import LengthwiseError
from lengthwise.sources.base import Field, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt


class SequenceSource:
    """Named sequences of equal length; one without a name is called ""."""

    format = "Python"
    order = None
    reads_values = False

    def __init__(self, where: str, columns: Mapping[str, Any]) -> None:
        self.where = where
        self.columns = columns
        self.rows: int | None = max((len(column) for column in columns.values()), default=0)
        self.fields: Sequence[Field] = [_field(name, column) for name, column in columns.items()]

    def read(self, field: Field) -> Iterator[npt.NDArray[Any]]:
        """Yield the lengths."""
        column = self.columns[field.path]
        if isinstance(column, np.ndarray) and column.dtype != object:
            yield column
        elif field.kind == "list":
            yield sizes(column, self.where)
        else:
            yield integers(column, self.where)


def open(source: Any) -> SequenceSource | None:  # noqa: A001 - the name of the format's entry point
    """Open arrays, sequences, and mappings of names to them."""
    where = type(source).__name__
    if isinstance(source, np.ndarray):
        return SequenceSource(f"numpy.{where}", {"": source})
    if isinstance(source, (str, bytes)):
        return None
    if isinstance(source, Mapping):
        return SequenceSource(where, source)
    if isinstance(source, Sequence):
        if len(source) and isinstance(source[0], Mapping):
            return SequenceSource(where, {name: [row[name] for row in source] for name in source[0]})
        return SequenceSource(where, {"": source})
    return None


def _field(name: str, column: Any) -> Field:
    kind: Kind = "integer"
    if not isinstance(column, np.ndarray) or column.dtype == object:
        first = column[0] if len(column) else 0
        if isinstance(first, (str, bytes)):
            kind = "bytes"
        elif hasattr(first, "__len__"):
            kind = "list"
    return Field(name, kind, str(getattr(column, "dtype", type(column).__name__)))


def sizes(samples: Sequence[Any], where: str) -> npt.NDArray[np.uint32]:
    """Return the length of each sample."""
    try:
        return np.fromiter(map(len, samples), np.uint32, len(samples))
    except TypeError:
        for index, sample in enumerate(samples):
            if not hasattr(sample, "__len__"):
                raise LengthwiseError(
                    f"{where}[{index}] is {sample!r:.60}, which has no length, as [0] has; pass lengths or samples"
                ) from None
        raise


def integers(values: Sequence[Any], where: str) -> npt.NDArray[Any]:
    """Return the values as an integer array, or name the first that is none."""
    for index, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise LengthwiseError(f"{where}[{index}] is {value!r:.60}; a length is an integer")
    return np.asarray(values, dtype=None if len(values) else np.uint32)
