"""One form for the rows of a batch, wherever they come from: per field, flat values and offsets.

Problem: a batch reaches a collator as an Arrow table, as a list of dicts (of lists, arrays, tensors or Arrow scalars)
or as a dict of columns. Method: each field becomes a `Ragged`, the layout that Arrow has already: from one Arrow chunk
it is a view; every other form is joined by one concatenation. All checks on rows live here, so that both collators
report bad input in the same words. Cost: at most one pass at the speed of memcpy from Arrow; from Python lists the
conversion dominates (about 40 ns a token).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lengthwise._core import LengthwiseError

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Ragged:
    """One field of a batch: row i is `values[offsets[i] : offsets[i + 1]]`.

    Attributes:
        values: [t], the rows laid end to end, in the type they were stored in.
        offsets: int64[b + 1], ascending from 0 to t; None where the field is one number per row (then t = b).
    """

    values: Array
    offsets: npt.NDArray[np.int64] | None

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """int64[b]: the length of each row in tokens."""
        if self.offsets is None:
            return np.ones(self.values.size, np.int64)
        return np.diff(self.offsets)

    def cut(self, starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]) -> Ragged:
        """Return the rows cut to [start, stop), int64[b] each; a field of one number per row stays as it is."""
        if self.offsets is None:
            return self
        first = self.offsets[:-1]
        pieces = zip((first + starts).tolist(), (first + stops).tolist(), strict=True)
        parts = [self.values[start:stop] for start, stop in pieces]
        return Ragged(np.concatenate(parts), offsets_of(stops - starts))


def offsets_of(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """int64[b + 1]: the running total of int64[b] lengths, from 0."""
    offsets = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def read_rows(rows: Any, fields: Sequence[str] | None = None) -> dict[str, Ragged]:
    """Return the named fields of `rows` as `Ragged`s.

    Args:
        rows: the samples of one batch: a `pyarrow.Table` or `RecordBatch`; a sequence of mappings from field to values
            (lists, numpy arrays, tensors on the CPU, pyarrow scalars or arrays) or of one-row tables; or a mapping from
            field to its b rows.
        fields: which to take; None takes all.

    Raises:
        LengthwiseError: no rows, a field that a row lacks, nulls, nested or non-numeric values; the message names
            the row.

    Cost: nothing is copied from a one-chunk Arrow column without nulls.

    Example:
        >>> read_rows([{"input_ids": [1, 2, 3]}, {"input_ids": [4]}])["input_ids"]
        Ragged(values=array([1, 2, 3, 4]), offsets=array([0, 3, 4]))
    """
    if hasattr(rows, "column_names") and hasattr(rows, "schema"):
        return _from_table(rows, fields)
    if isinstance(rows, Mapping):
        names = list(rows) if fields is None else list(fields)
        _check_present(names, rows, "the batch")
        sizes = {name: len(rows[name]) for name in names}
        if len(set(sizes.values())) > 1:
            raise LengthwiseError(f"rows has columns of different numbers of rows: {sizes}")
        return {name: _from_values(list(rows[name]), name) for name in names}
    rows = list(rows)
    if not rows:
        raise LengthwiseError("rows is empty: a batch needs at least one row")
    if hasattr(rows[0], "column_names") and hasattr(rows[0], "schema"):
        import pyarrow as pa

        return _from_table(pa.concat_tables(rows), fields)
    if not isinstance(rows[0], Mapping):
        raise LengthwiseError(f"rows[0] is {type(rows[0]).__name__}, but a row must be a mapping from field to values")
    names = list(rows[0]) if fields is None else list(fields)
    for index, row in enumerate(rows):
        _check_present(names, row, f"rows[{index}]")
    return {name: _from_values([row[name] for row in rows], name) for name in names}


def check_same_lengths(columns: Mapping[str, Ragged]) -> npt.NDArray[np.int64]:
    """Return the offsets that all list fields share, int64[b + 1].

    Raises:
        LengthwiseError: no list field, or two whose lengths differ in a row: the message names the row and both
            lengths.
    """
    ragged = {name: column for name, column in columns.items() if column.offsets is not None}
    if not ragged:
        raise LengthwiseError(f"rows has no field of one list per row among {sorted(columns)}; name one of tokens")
    first, *others = ragged
    offsets = ragged[first].offsets
    assert offsets is not None  # noqa: S101 - narrowed above
    for name in others:
        other = ragged[name]
        if not np.array_equal(other.offsets, offsets):  # type: ignore[arg-type]
            ours, theirs = np.diff(offsets), other.lengths
            row = int(np.argmax(ours != theirs))
            raise LengthwiseError(
                f"rows[{row}] has {ours[row]} values in {first!r}, but {theirs[row]} in {name!r}; "
                "the fields of a row must be equally long (PairCollator pads two lengths)"
            )
    return offsets


def field_names(rows: Any) -> list[str]:
    """The fields of `rows` in any of its forms, by the first row."""
    if hasattr(rows, "column_names"):
        return list(rows.column_names)
    first = rows if isinstance(rows, Mapping) or not len(rows) else rows[0]
    return list(first.column_names) if hasattr(first, "column_names") else list(first)


def _check_present(names: Sequence[str], row: Mapping[str, Any], where: str) -> None:
    for name in names:
        if name not in row:
            raise LengthwiseError(f"{where} has no field {name!r}; it has {list(row)}")


def _from_table(table: Any, fields: Sequence[str] | None) -> dict[str, Ragged]:
    names = list(table.column_names) if fields is None else list(fields)
    for name in names:
        if name not in table.column_names:
            raise LengthwiseError(f"the table has no field {name!r}; it has {list(table.column_names)}")
    if table.num_rows == 0:
        raise LengthwiseError("rows is empty: a batch needs at least one row")
    return {name: _from_arrow(table.column(name), name) for name in names}


def _from_arrow(column: Any, name: str) -> Ragged:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if column.null_count:
        raise LengthwiseError(f"rows[{_first_null(column)}][{name!r}] is null")
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        values = column.flatten()
        if pa.types.is_fixed_size_list(kind):
            offsets = np.arange(len(column) + 1, dtype=np.int64) * kind.list_size
        else:
            stored = column.offsets.to_numpy(zero_copy_only=True)
            offsets = stored.astype(np.int64)
            offsets -= offsets[0]
        if values.null_count:
            index = _first_null(values)
            row = int(np.searchsorted(offsets, index, side="right")) - 1
            raise LengthwiseError(f"rows[{row}][{name!r}][{index - int(offsets[row])}] is null")
        return Ragged(_numbers(values, name), offsets)
    return Ragged(_numbers(column, name), None)


def _first_null(array: Any) -> int:
    return int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))


def _numbers(array: Any, name: str) -> Array:
    import pyarrow as pa

    kind = array.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise LengthwiseError(
            f"field {name!r} holds {kind}, but a collator takes numbers or lists of numbers; "
            "name the fields to take with pad={'input_ids': 0, ...}"
        )
    values: Array = array.to_numpy(zero_copy_only=False)
    return values


def _from_values(values: list[Any], name: str) -> Ragged:
    arrays = [_as_array(value, name, index) for index, value in enumerate(values)]
    if not arrays:
        raise LengthwiseError("rows is empty: a batch needs at least one row")
    depths = {array.ndim for array in arrays}
    if depths == {0}:
        return Ragged(_joined(np.stack(arrays), arrays, name), None)
    if depths != {1}:
        row = next(index for index, array in enumerate(arrays) if array.ndim != 1)
        raise LengthwiseError(
            f"rows[{row}][{name!r}] has shape {arrays[row].shape}, but a field must be one flat list in every row "
            "(or one number in every row)"
        )
    # An empty row has no say in the type of the others.
    filled = [array for array in arrays if array.size] or arrays[:1]
    lengths = np.fromiter((array.size for array in arrays), np.int64, len(arrays))
    return Ragged(_joined(np.concatenate(filled), filled, name), offsets_of(lengths))


def _as_array(value: Any, name: str, row: int) -> Array:
    if hasattr(value, "as_py"):  # a pyarrow scalar; a list scalar holds an array
        value = value.values if hasattr(value, "values") else value.as_py()
    if hasattr(value, "to_numpy"):
        value = value.to_numpy(zero_copy_only=False) if hasattr(value, "null_count") else value.to_numpy()
    try:
        array: Array = np.asarray(value)
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise LengthwiseError(f"rows[{row}][{name!r}] cannot become an array: {error}") from error
    if array.size == 0 and isinstance(value, (list, tuple)):
        return array.astype(np.int64)  # numpy gives an empty list the type float64
    if array.dtype.kind not in "iufb":
        raise LengthwiseError(
            f"rows[{row}][{name!r}] holds {array.dtype} values, but a collator takes numbers without nulls; "
            "name the fields to take with pad={'input_ids': 0, ...}"
        )
    return array


def _joined(values: Array, arrays: list[Array], name: str) -> Array:
    # int64 beside uint64 becomes float64 in numpy, which would round token ids silently.
    if values.dtype.kind == "f" and all(array.dtype.kind != "f" for array in arrays):
        row = next(index for index, array in enumerate(arrays) if array.dtype == np.uint64)
        raise LengthwiseError(f"rows[{row}][{name!r}] is uint64 beside signed integers; store one integer type")
    return values
