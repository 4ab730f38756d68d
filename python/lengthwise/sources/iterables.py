"""Samples that can only be visited: map-style datasets of torch, generators, any iterable.

A length pass: every sample is made once, which is the slow way that reading a column avoids. It is taken only
when there is nothing better, with progress, and its result is worth keeping (numpy.save).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import IOBase
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from lengthwise._core import LengthwiseError
from lengthwise.sources.base import Field, Source, reading
from lengthwise.sources.sequences import SequenceSource

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Samples between two reports of progress, and kept at a time.
BLOCK: Final = 1_000


class IterableSource(Source):
    """Whatever can be iterated over, or indexed from 0 to its length."""

    format = "iterable"
    reads_values = True

    def __init__(self, where: str, source: Any) -> None:
        self.where = where
        self.source = source
        self.rows = len(source) if hasattr(source, "__len__") else None
        self.once = isinstance(source, Iterable) and iter(source) is source
        with reading(where, "check that it yields samples"):
            samples = _samples(source)
            first = list(islice(samples, 1))
            # What was taken to learn the columns must not be lost to a source that can be visited only once.
            self.rest = chain(first, samples) if self.once else None
            self.fields = _columns(where, first).fields if first else [Field("", "integer", "nothing")]

    def read(self, field: Field, skip: int = 0) -> Iterator[Any]:
        """Yield the lengths of some samples at a time."""
        with reading(self.where, "check that every sample has the column"):
            samples = self.rest if self.rest is not None else _samples(self.source, skip * BLOCK)
            while block := list(islice(samples, BLOCK)):
                yield from _columns(self.where, block).read(field)


def open(source: Any) -> IterableSource | None:  # noqa: A001 - the name of the format's entry point
    """Open iterables and datasets with `__getitem__` and `__len__`."""
    indexed = hasattr(source, "__getitem__") and hasattr(source, "__len__")
    if isinstance(source, (str, bytes, type)) or not (indexed or isinstance(source, Iterable)):
        return None
    kind = type(source)
    where = f"{kind.__module__.split('.')[0]}.{kind.__name__}"
    if isinstance(source, (set, frozenset)):
        raise LengthwiseError(f"{where} keeps no order and nothing twice; pass a list")
    if isinstance(source, IOBase):
        raise LengthwiseError(f"{where} is an open file; pass its path")
    if any(base.__name__ == "DataLoader" and base.__module__.startswith("torch.") for base in kind.__mro__):
        raise LengthwiseError(f"{where} yields batches, not samples; pass its dataset")
    return IterableSource(where, source)


def _samples(source: Any, skip: int = 0) -> Iterator[Any]:
    if hasattr(source, "__getitem__") and hasattr(source, "__len__"):
        return (source[index] for index in range(skip, len(source)))
    return islice(iter(source), skip, None)


def _columns(where: str, samples: list[Any]) -> SequenceSource:
    """Return samples as columns: those of mappings by key, of tuples by position, others as one unnamed column."""
    first = samples[0]
    if isinstance(first, Mapping):
        columns = {str(key): [sample[key] for sample in samples] for key in first}
    elif isinstance(first, tuple):
        columns = {str(index): [sample[index] for sample in samples] for index in range(len(first))}
    else:
        columns = {"": samples}
    return SequenceSource(where, columns)
