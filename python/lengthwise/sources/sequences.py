"""numpy arrays, torch tensors and Python sequences: integers that are lengths, or samples whose lengths are taken."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise._core import LengthwiseError
from lengthwise.sources.base import Field, Holds, Kind, Source, reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

#: Samples whose lengths are taken between two reports of progress.
BLOCK: Final = 1 << 16
#: Samples that are looked at in a place.
SOME: Final = 64


class SequenceSource(Source):
    """Named columns; one without a name is called "".

    Args:
        where: what they are, for messages.
        columns: arrays or sequences by name; they are asked for when they are used.
    """

    format = "Python"

    def __init__(self, where: str, columns: Mapping[str, Any]) -> None:
        self.where = where
        self.columns = columns
        self.fields = [_field(where, name, columns[name]) for name in columns]
        # Columns of a batch that hold no value a sample (a scalar, say) are fields of no use.
        sized = {len(columns[field.path]) for field in self.fields if field.kind != "other"}
        if len(sized) > 1:
            raise LengthwiseError(f"{where} has columns of different lengths, {sorted(sized)}; pass one of them")
        self.rows = sized.pop() if sized else 0

    def read(self, field: Field, skip: int = 0) -> Iterator[Any]:
        """Yield the lengths, block by block where they are counted in Python."""
        column = self.columns[field.path]
        if isinstance(column, np.ndarray) and column.dtype != object:
            if skip == 0:
                yield column
            return
        for start in range(skip * BLOCK, len(column), BLOCK):
            part = column[start : start + BLOCK]
            yield integers(part, self.where, start) if field.kind == "integer" else sizes(part, self.where, start)

    def sample(self, field: Field) -> Iterator[tuple[int, Any]]:
        """Yield samples from the start, the middle and the end."""
        column = self.columns[field.path]
        for start in sorted({0, max(0, len(column) // 2 - SOME // 2), max(0, len(column) - SOME)}):
            yield start, sizes(column[start : start + SOME], self.where, start)


def open(source: Any) -> Source | None:  # noqa: A001 - the name of the format's entry point
    """Open arrays, tensors, sequences, and mappings of names to them."""
    where = type(source).__name__
    if isinstance(source, np.ndarray):
        return SequenceSource(f"numpy.{where}", {"": _column(source)})
    if is_tensor(source):
        return SequenceSource(f"torch.{where}", {"": _from_tensor(source)})
    if isinstance(source, Mapping):
        return SequenceSource(where, {str(key): _column(value) for key, value in source.items()})
    if not isinstance(source, Sequence) or isinstance(source, (str, bytes)):
        return None
    of_mappings = len(source) > 0 and isinstance(source[0], Mapping)
    return SequenceSource(where, Rows(source) if of_mappings else {"": _column(source)})


def _column(value: Any) -> Any:
    """Return a column that can be sliced, in which what is masked is None; anything else as it is."""
    if is_tensor(value):
        return _from_tensor(value)
    if isinstance(value, np.ndarray):
        return value.tolist() if value.ndim and hasattr(value, "mask") else value
    if isinstance(value, Sequence):
        try:
            value[:0]
        except TypeError:
            return list(value)
    return value


class Rows(Mapping[str, Any]):
    """Rows (a sequence of mappings) seen as columns, made when they are asked for."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows
        self.made: dict[str, list[Any]] = {}

    def __getitem__(self, name: str) -> list[Any]:
        if name not in self.made:
            self.made[name] = self._column(name)
        return self.made[name]

    def _column(self, name: str) -> list[Any]:
        try:
            return [row[name] for row in self.rows]
        except (KeyError, TypeError):
            wrong = (index for index, row in enumerate(self.rows) if not isinstance(row, Mapping) or name not in row)
            raise LengthwiseError(
                f"row {next(wrong)} has no {name!r}, which row 0 has; give every row the same keys"
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows[0])

    def __len__(self) -> int:
        return len(self.rows[0])


def is_tensor(value: Any) -> bool:
    """Whether a value is a torch tensor, decided without importing torch."""
    return any(base.__module__.startswith("torch") and base.__name__ == "Tensor" for base in type(value).__mro__)


def _from_tensor(tensor: Any) -> npt.NDArray[Any]:
    """Return the lengths in a tensor: its integers, or those of a nested tensor's samples."""
    with reading("torch.Tensor", "pass a dense tensor of integers"):
        if tensor.is_nested:
            return np.array([len(sample) for sample in tensor.unbind()], np.uint32)
        return tensor.detach().cpu().numpy()  # type: ignore[no-any-return]


def _field(where: str, name: str, column: Any) -> Field:
    if isinstance(column, np.ndarray) and (column.dtype != object or column.ndim == 0):
        return _array_field(name, column)
    if not isinstance(column, (Sequence, np.ndarray)) or isinstance(column, (str, bytes)):
        return Field(name, "other", type(column).__name__)
    first = next((value for value in column[:BLOCK] if value is not None), 0) if len(column) else 0
    shown = f"{where}[0] is {repr(first).partition(chr(10))[0]:.60}"
    if isinstance(first, os.PathLike):
        raise LengthwiseError(f"{shown}, a path; pass them as a list")
    if hasattr(first, "column_names") or hasattr(first, "columns"):
        raise LengthwiseError(f"{shown}, a dataset of its own; read one by one")
    stored = f"{type(column).__name__} of {type(first).__name__}"
    if not hasattr(first, "__len__") or getattr(first, "ndim", None) == 0:
        return Field(name, "integer", stored)
    kind: Kind = "bytes" if isinstance(first, (str, bytes)) else "other" if isinstance(first, Mapping) else "list"
    item = next(iter(first), None) if isinstance(first, (list, tuple)) else None
    holds: Holds = "records" if isinstance(item, Mapping) else "text" if isinstance(item, (str, bytes)) else "tokens"
    return Field(name, kind, stored if holds == "tokens" else f"{stored} of {type(item).__name__}", holds=holds)


def _array_field(name: str, array: npt.NDArray[Any]) -> Field:
    if array.ndim == 0 and not name:
        raise LengthwiseError(f"lengths must be one-dimensional, got the single value {array}; pass an array of them")
    # Lengths have one dimension; two are samples padded to one length, which is not theirs.
    kind: Kind = "integer" if (array.dtype.kind in "iu" and array.ndim == 1) or not name else "other"
    shape = "" if array.ndim == 1 else f"{list(array.shape)}{', padded' if array.ndim else ''}"
    return Field(name, kind, f"{array.dtype}{shape}")


def sizes(samples: Sequence[Any], where: str, start: int = 0) -> Any:
    """Return the length of each sample (of text, its bytes in UTF-8); null where it is None."""
    try:
        if len(samples) and isinstance(samples[0], str):
            return np.fromiter((len(sample.encode()) for sample in samples), np.uint32, len(samples))
        return np.fromiter(map(len, samples), np.uint32, len(samples))
    except (AttributeError, TypeError):
        pass
    lengths = []
    for index, sample in enumerate(samples, start):
        encoded = sample.encode() if isinstance(sample, str) else sample
        try:
            lengths.append(None if encoded is None else len(encoded))
        except TypeError:
            raise LengthwiseError(
                f"{where}[{index}] is {sample!r:.60}, which has no length, as others have; pass lengths or samples"
            ) from None
    return _nullable(lengths)


def integers(values: Sequence[Any], where: str, start: int = 0) -> Any:
    """Return the values, which must be integers, as an array; null where one is None."""
    kinds = set(map(type, values))
    if not kinds <= {int, type(None)}:
        # Scalars of numpy, and tensors that are one.
        values = [value.item() if getattr(value, "ndim", None) == 0 else value for value in values]
    for index, value in enumerate(values, start):
        if kinds <= {int, type(None)}:
            break
        if isinstance(value, bool) or not isinstance(value, (int, type(None))):
            raise LengthwiseError(f"{where}[{index}] is {value!r:.60}; a length is an integer")
    with reading(where, "lengths fit 64 bits"):
        return _nullable(list(values)) if type(None) in kinds else np.asarray(values, np.int64)


def _nullable(values: list[int | None]) -> Any:
    import pyarrow as pa

    return pa.array(values, pa.int64())
