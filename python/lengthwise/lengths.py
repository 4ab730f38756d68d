"""Lengths from any dataset, at the cost of its metadata.

The reader looks at the schema first, picks the column that costs least (stored lengths, else the offsets of a list of
tokens), and touches nothing else: memory grows by the result alone. Formats are modules of `lengthwise.sources`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache as remembered
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from lengthwise._core import LengthwiseError
from lengthwise.progress import Progress, nobody, reporter
from lengthwise.sources import open_source
from lengthwise.sources.cache import Cache
from lengthwise.sources.collect import collect, gather
from lengthwise.sources.columns import NAMED, Unit, choose, listed, named
from lengthwise.sources.measure import Column, checked
from lengthwise.sources.suspicion import Check, seen, warn_if_suspicious

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from lengthwise.sources.base import Field, Source

Nulls = Literal["error", "drop", "zero"]
Combine = Literal["sum", "stack"]
NULLS: Final = get_args(Nulls)
COMBINE: Final = get_args(Combine)
UNIT: Final = get_args(Unit)
CHECK: Final = get_args(Check)


@dataclass(frozen=True)
class LengthsInfo:
    """Where lengths came from.

    Attributes:
        source: the path or the type of object.
        format: the format's name.
        fields: the columns that were used, by path, kind and type.
        reason: why those.
        unit: what is counted.
        nulls: int64[k], the rows that were null (and were dropped, or counted as zero).
        cached: whether the lengths were kept from an earlier read.
    """

    source: str
    format: str
    fields: tuple[Field, ...]
    reason: str
    unit: Unit
    nulls: npt.NDArray[np.int64]
    cached: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that were used; ("",) for an unnamed array."""
        return tuple(field.path for field in self.fields)

    @property
    def types(self) -> tuple[str, ...]:
        """Their types, as the format writes them."""
        return tuple(field.type for field in self.fields)


class Lengths(np.ndarray[Any, np.dtype[Any]]):
    """A read-only integer array that remembers the column it came from; otherwise a numpy array.

    Attributes:
        info: the `LengthsInfo` of the read, None for an array made in another way.
    """

    #: Where they came from, or what tells: to say it takes longer than a short read.
    _origin: LengthsInfo | Callable[[], LengthsInfo] | None = None

    def __array_finalize__(self, parent: Any) -> None:
        if isinstance(parent, Lengths):
            self._origin = parent._origin  # noqa: SLF001 - of the same class

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:  # noqa: FBT001, FBT002
        # What is computed from lengths is no longer the column: a plain array.
        plain = np.asarray(array)
        return plain[()] if return_scalar else plain

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (np.asarray(self), self.info)

    @property
    def info(self) -> LengthsInfo | None:
        """Where they came from."""
        if callable(self._origin):
            self._origin = self._origin()
        return self._origin

    def describe(self, origin: LengthsInfo | Callable[[], LengthsInfo] | None) -> None:
        """Say where they came from, or what tells, and let nobody write to them; for `lengthwise` itself."""
        self._origin = origin
        self.setflags(write=False)

    @property
    def column(self) -> str | None:
        """The column that was used, or the sum of several, as text; None for an unnamed array."""
        return " + ".join(self.info.columns) or None if self.info else None


def _restore(values: npt.NDArray[Any], origin: LengthsInfo | Callable[[], LengthsInfo] | None) -> Lengths:
    result = values.view(Lengths)
    result.describe(origin)
    return result


def read_lengths(
    source: Any,
    column: str | Sequence[str] | None = None,
    *,
    combine: Combine = "sum",
    nulls: Nulls = "error",
    unit: Unit = "tokens",
    check: Check = "sample",
    progress: Progress = None,
    cache: bool | str | os.PathLike[str] = False,
) -> Lengths:
    """Return the length of every sample of a dataset, without reading a token.

    Args:
        source: a path, a URL that fsspec knows, a glob or a list of them, that name a folder written by
            `datasets.Dataset.save_to_disk`, Arrow IPC, Parquet, JSON lines, Megatron `.idx`, MosaicML MDS, Lance,
            datatrove `.ds.index`, WebDataset `.tar` or `.npy` files; or an object: a `datasets.Dataset` or
            `IterableDataset`, anything with `__arrow_c_stream__` or `__arrow_c_array__` (pyarrow, polars, DuckDB,
            pandas, nanoarrow, arro3), a numpy array, a torch tensor, a sequence of integers or of samples, a mapping of
            names to those, any iterable of samples.
        column: the column to use, or several; a field of a struct by its path, as in "prompt.input_ids", and likewise
            one inside of a list of structs, its lengths added up in each row ("messages.input_ids"). By default the
            first integer column called seq_len, seq_length, sequence_length, length, lengths, num_tokens, ...
            (`lengthwise.sources.columns.INTEGER_NAMES`), else the first list column called input_ids, tokens,
            token_ids, ... (`LIST_NAMES`), else the only list column.
        combine: what several columns become: their "sum", or a "stack" of shape [n, columns].
        nulls: what a null row is: an "error", a row to "drop", or a length of "zero".
        unit: "tokens", or "bytes" to measure a column of text or binary.
        check: compare stored lengths with the lists of tokens beside them on a "sample" of rows, on "all" or on "none",
            and warn (`LengthwiseWarning`) where they differ, or where all lengths are equal or all 0 or 1.
        progress: a function of (rows done, rows in all or None); True for a bar, False for none; by default a bar where
            standard error is a terminal and the read takes more than a second.
        cache: True to keep the lengths in a folder `.lengthwise` beside the dataset, or a folder to keep them in. An
            interrupted read goes on where it ended, and the next one maps the file. Changed data is read again.

    Returns:
        int[n], read-only: a view in the stored integer type where one chunk holds the column, else uint32. Its `column`
        and `info` say what was used.

    Raises:
        LengthwiseError: the source cannot be read, has no such column, or holds nulls, negative lengths or lengths
            above 2**31 - 1; the message names the file and the row.

    Cost: for Arrow, the headers of the record batches and one column of integers or offsets; for Parquet, the pages of
    one column; for JSON lines and iterables, all of the data.

    Examples:
        >>> import lengthwise as lw
        >>> import pyarrow as pa
        >>> lengths = lw.read_lengths(pa.table({"input_ids": [[5, 6, 7], [8], []]}))
        >>> lengths, lengths.column
        (Lengths([3, 1, 0], dtype=uint32), 'input_ids')
        >>> pairs = {"prompt_ids": [[1, 2], [3]], "answer_ids": [[4], [5]]}
        >>> lw.read_lengths(pairs, ["prompt_ids", "answer_ids"])
        Lengths([3, 2], dtype=uint32)
        >>> lw.read_lengths(pairs, ["prompt_ids", "answer_ids"], combine="stack").tolist()
        [[2, 1], [1, 1]]
    """
    if combine not in COMBINE or nulls not in NULLS or unit not in UNIT or check not in CHECK:
        raise _refused(combine=combine, nulls=nulls, unit=unit, check=check)
    if unit == "tokens" and not progress and not cache:
        plain = _plain(type(source))  # type: ignore[arg-type] # mypy doubts that types can be hashed
        lengths = plain(source, column, check) if plain else None
        if lengths is not None:
            return lengths
    opened = open_source(source)
    fields, reason = _fields(opened, column, unit)
    report = nobody if opened.whole and not progress else reporter(progress, opened.rows, opened.where)
    places = [Cache.of(opened, field, cache) for field in fields] if cache else None
    kept = [place.load() for place in places] if places else None
    columns: list[Column] = []
    for index, field in enumerate(fields):
        hit = kept[index] if kept else None
        if hit is None:
            hit = places[index].read(opened, field, report) if places else collect(opened, field, report)
            if opened.rows is None:
                report(len(hit.values), len(hit.values))
        columns.append(hit)
    if unit == "tokens" and (not kept or None in kept):
        for field, values in seen(fields, columns, combine):
            warn_if_suspicious(opened, field, values, check)
    values, null_rows = _resolve(opened, fields, columns, combine, nulls)
    cached = kept is not None and None not in kept
    return _restore(values, LengthsInfo(opened.where, opened.format, tuple(fields), reason, unit, null_rows, cached))


@remembered
def _plain(kind: type) -> Callable[[Any, Any, Check], Lengths | None] | None:
    """Return the short way for a type, where there is one; remembered, as pyarrow is imported only when it is met."""
    if kind.__module__ != "pyarrow.lib":
        return None
    from lengthwise.sources.plain import READERS

    return READERS.get(kind)


def _refused(**values: str) -> LengthwiseError:
    choices = {"combine": COMBINE, "nulls": NULLS, "unit": UNIT, "check": CHECK}
    name = next(name for name, value in values.items() if value not in choices[name])
    return LengthwiseError(f"{name} is {values[name]!r}, but must be one of {', '.join(map(repr, choices[name]))}")


def _fields(source: Source, column: str | Sequence[str] | None, unit: Unit) -> tuple[list[Field], str]:
    if column is None:
        field, reason = choose(source, unit)
        return [field], reason
    names = list(column) if isinstance(column, Iterable) and not isinstance(column, str) else [column]
    if not all(isinstance(name, str) for name in names):
        raise LengthwiseError(
            f"column is {column!r:.60}, but must be a name or several; {source.where} has {listed(source.fields)}"
        )
    if len(set(names)) < len(names):
        raise LengthwiseError(f"column names one twice: {', '.join(names)}")
    if not names:
        raise LengthwiseError("column names no column; pass at least one, or None to let the reader choose")
    if source.once and len(names) > 1:
        raise LengthwiseError(f"{source.where} can be read only once, so only for one column; read it into a table")
    return [named(source, name, unit) for name in names], NAMED


def _resolve(
    source: Source, fields: list[Field], found: list[Column], combine: Combine, policy: Nulls
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return one array of lengths from those of each column, and the null rows."""
    if source.order is not None:
        found = [gather(column, source.order) for column in found]
    values, null_rows = found[0]
    if len(found) > 1:
        if len({len(column.values) for column in found}) > 1:
            sizes = ", ".join(f"{field.path}: {len(each.values)}" for field, each in zip(fields, found, strict=True))
            raise LengthwiseError(f"{source.where} has columns of different lengths: {sizes}")
        null_rows = np.unique(np.concatenate([column.nulls for column in found]))
        stacked = np.stack([column.values for column in found], axis=1)
        values = stacked.astype(np.uint32) if combine == "stack" else _summed(stacked, source)
    if not null_rows.size:
        return values, null_rows
    if policy == "drop":
        return np.delete(values, null_rows, axis=0), null_rows
    if policy == "error":
        names = " + ".join(repr(field.path) for field in fields if field.path)
        shown = ", ".join(map(str, null_rows[:5])) + (", ..." if null_rows.size > 5 else "")
        raise LengthwiseError(
            f"{f'column {names} of ' if names else ''}{source.where} is null in {null_rows.size} rows ({shown}); "
            f'pass nulls="drop" or nulls="zero", or fill them'
        )
    return values, null_rows


def _summed(stacked: npt.NDArray[Any], source: Source) -> npt.NDArray[np.uint32]:
    return checked(stacked.sum(axis=1, dtype=np.int64), source.where, 0).astype(np.uint32)
