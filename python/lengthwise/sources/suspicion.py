"""Lengths that are probably not what the user means: a warning that says what was seen.

All lengths equal (samples padded to one length, or the number of a dict's keys), all 0 or 1 (a mask, a flag), stored
lengths that disagree with the lists beside them (stored before truncation, or for another tokenizer), a file that ends
where no writer ends one. Each has trained somebody's model on wrong batches without an error.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from inspect import currentframe
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from lengthwise._core import LengthwiseError
from lengthwise.sources.base import Field
from lengthwise.sources.collect import blocks
from lengthwise.sources.columns import LIST_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from lengthwise.sources.base import Kind, Source
    from lengthwise.sources.measure import Column

Check = Literal["sample", "all", "none"]

#: Below this, equal lengths are no surprise.
ENOUGH: Final = 32


class LengthwiseWarning(UserWarning):
    """Something that is probably a mistake, but can be meant."""


def seen(fields: list[Field], found: list[Column], combine: str) -> list[tuple[Field, npt.NDArray[Any]]]:
    """Return what to look at of the columns that were read: of several, what is compared with tokens is their sum."""
    if len(fields) == 1:
        return [(fields[0], found[0].values)]
    if combine == "sum" and len({len(column.values) for column in found}) == 1:
        kind: Kind = "integer" if any(field.kind == "integer" for field in fields) else "list"
        total = np.zeros(len(found[0].values), np.int64)
        for column in found:
            total += column.values
        return [(Field(" + ".join(field.path for field in fields), kind, "sum"), total)]
    return [(field._replace(kind="list"), column.values) for field, column in zip(fields, found, strict=True)]


def warn_if_suspicious(source: Source, field: Field, values: npt.NDArray[Any], check: Check) -> None:
    """Warn about lengths, in the order of the stored table, that look wrong."""
    if check == "none":
        return
    said = source.doubt() or _constant(source, field, values)
    if said is None and field.kind == "integer":
        said = _disagreement(source, field, values, check)
    if said is not None:
        _warn(source.where, said)


def warn_if_alike(where: str, path: str, rows: int, bits_of_any: int, bits_of_all: int) -> None:
    """Warn about lengths of lists that look wrong, as far as the bits that some or all of them have tell."""
    if rows < ENOUGH:
        return
    if bits_of_any <= 1:
        _warn(where, _flags(path, rows))
    elif bits_of_any == bits_of_all:
        _warn(where, _equal(path, rows, bits_of_any))


def _warn(where: str, said: str) -> None:
    warnings.warn(LengthwiseWarning(f"{where}: {said}"), stacklevel=_level())


def _level() -> int:
    """Return how far up the stack the first caller is that is not of this package."""
    level, frame = 1, currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "lengthwise":
        level, frame = level + 1, frame.f_back
    return max(1, level - 1)


def _flags(path: str, rows: int) -> str:
    return f"all {rows} lengths in {path!r} are 0 or 1; is it a flag or a mask?"


def _equal(path: str, rows: int, length: int) -> str:
    return f"all {rows} lengths in {path!r} are {length}; were the samples padded or cut to one length?"


def _constant(source: Source, field: Field, values: npt.NDArray[Any]) -> str | None:
    if len(values) < ENOUGH:
        return None
    some = set(values[:: len(values) // ENOUGH].tolist())
    if len(some) > 1 and max(some) > 1:
        return None
    low, high = int(values.min()), int(values.max())
    if high <= 1:
        return _flags(field.path, len(values))
    if low != high:
        return None
    columns = sum("." not in other.path for other in source.fields)
    if high in {columns, columns - 1} and field.kind == "integer":
        return (
            f"all {len(values)} lengths in {field.path!r} are {high}, the number of columns; are they lengths of dicts?"
        )
    return _equal(field.path, len(values), high)


def _disagreement(source: Source, field: Field, values: npt.NDArray[Any], check: Check) -> str | None:
    """Return how stored lengths differ from the lists of tokens in the same dataset."""
    lists = {other.path: other for other in source.fields if other.kind == "list"}
    tokens = next((lists[name] for name in LIST_NAMES if name in lists), None)
    if tokens is None or source.once:
        return None
    compared = differing = 0
    example = ""
    for start, actual, known in _parts(source, tokens, check):
        stored = values[start : start + len(actual)]
        if len(stored) != len(actual):
            raise LengthwiseError(f"{source.where} has {len(values)} {field.path}, but more {tokens.path}")
        rows = np.flatnonzero((stored != actual) & known)
        if rows.size and not example:
            row = int(rows[0])
            example = f"row {start + row} says {stored[row]}, but has {actual[row]}"
        compared += len(actual)
        differing += rows.size
    if not differing:
        return None
    return (
        f"{field.path!r} disagrees with the sizes of {tokens.path!r} in {differing} of {compared} rows compared "
        f"({example}); pass column={tokens.path!r} if those are the lengths"
    )


def _parts(
    source: Source, tokens: Field, check: Check
) -> Iterator[tuple[int, npt.NDArray[Any], npt.NDArray[np.bool_]]]:
    whole = ((None, part) for part in source.read(tokens))
    start = 0
    for at, part in whole if check == "all" else _sample(source, tokens):
        start = start if at is None else at
        for block in blocks(part, source.where, start):
            known = np.ones(len(block.values), bool)
            known[block.nulls] = False
            yield start, block.values, known
            start += len(block.values)


def _sample(source: Source, tokens: Field) -> Iterator[tuple[int | None, Any]]:
    # Lists that cannot be read are not what was asked for.
    with suppress(LengthwiseError):
        yield from source.sample(tokens)
