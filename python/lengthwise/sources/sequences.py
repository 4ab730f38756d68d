"""numpy arrays, torch tensors and Python sequences: integers that are lengths, or samples whose lengths are taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise._core import LengthwiseError
from lengthwise.sources.base import Field, Kind, Source, reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

#: Samples whose lengths are taken between two reports of progress.
BLOCK: Final = 1 << 16


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
        self.fields = [_field(name, columns[name]) for name in columns]
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


def open(source: Any) -> Source | None:  # noqa: A001 - the name of the format's entry point
    """Open arrays, tensors, sequences, and mappings of names to them."""
    where = type(source).__name__
    if isinstance(source, np.ndarray):
        return SequenceSource(f"numpy.{where}", {"": source})
    if is_tensor(source):
        return SequenceSource(f"torch.{where}", {"": _from_tensor(source)})
    if isinstance(source, Mapping):
        columns = {str(key): _from_tensor(value) if is_tensor(value) else value for key, value in source.items()}
        return SequenceSource(where, columns)
    if not isinstance(source, Sequence) or isinstance(source, (str, bytes)):
        return None
    of_mappings = len(source) > 0 and isinstance(source[0], Mapping)
    return SequenceSource(where, Rows(source) if of_mappings else {"": source})


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
        except KeyError:
            index = next(index for index, row in enumerate(self.rows) if name not in row)
            raise LengthwiseError(
                f"row {index} has no {name!r}, which row 0 has; give every row the same keys"
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
    with reading("torch.Tensor", "pass a tensor on the CPU"):
        if tensor.is_nested:
            return np.array([len(sample) for sample in tensor.unbind()], np.uint32)
        return tensor.detach().cpu().numpy()  # type: ignore[no-any-return]


def _field(name: str, column: Any) -> Field:
    if isinstance(column, np.ndarray) and column.ndim == 0:
        if not name:
            raise LengthwiseError(
                f"lengths must be one-dimensional, got the single value {column}; pass an array of them"
            )
        return Field(name, "other", f"{column.dtype}[]")
    if isinstance(column, np.ndarray) and column.dtype != object:
        # Lengths have one dimension; two are samples padded to one length, which is not theirs.
        kind: Kind = "integer" if (column.dtype.kind in "iu" and column.ndim == 1) or not name else "other"
        return Field(name, kind, f"{column.dtype}{list(column.shape) if column.ndim != 1 else ''}")
    if not isinstance(column, (Sequence, np.ndarray)) or isinstance(column, (str, bytes)):
        return Field(name, "other", type(column).__name__)
    first = next((value for value in column[:BLOCK] if value is not None), 0) if len(column) else 0
    kind = "integer"
    if isinstance(first, (str, bytes)):
        kind = "bytes"
    elif isinstance(first, Mapping):
        kind = "other"
    elif hasattr(first, "__len__"):
        kind = "list"
    return Field(name, kind, f"{type(column).__name__} of {type(first).__name__}")


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
        if sample is not None and not hasattr(sample, "__len__"):
            raise LengthwiseError(
                f"{where}[{index}] is {sample!r:.60}, which has no length, as others have; pass lengths or samples"
            )
        encoded = sample.encode() if isinstance(sample, str) else sample
        lengths.append(None if encoded is None else len(encoded))
    return _nullable(lengths)


def integers(values: Sequence[Any], where: str, start: int = 0) -> Any:
    """Return the values, which must be integers, as an array; null where one is None."""
    kinds = set(map(type, values))
    for index, value in enumerate(values, start):
        if kinds <= {int, type(None)}:
            break
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer, type(None))):
            raise LengthwiseError(f"{where}[{index}] is {value!r:.60}; a length is an integer")
    with reading(where, "lengths fit 64 bits"):
        if type(None) in kinds:
            return _nullable(list(values))
        return np.asarray(values, np.int64)


def _nullable(values: list[int | None]) -> Any:
    import pyarrow as pa

    return pa.array(values, pa.int64())
