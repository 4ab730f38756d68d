"""What a format offers to the reader: its fields, and the raw column of one of them, part by part.

A format is one module with one class. It knows how to recognise its own sources and how to hand over a column; choosing
the column, measuring it, checking it and building the result happen once, in `lengthwise.lengths`.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from lengthwise._core import LengthwiseError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

Kind = Literal["integer", "list", "bytes", "other"]


@dataclass(frozen=True)
class Field:
    """One column, or one field of a nested column, that could give lengths.

    Attributes:
        path: its name; the names on the way to a nested field, joined by dots.
        kind: "integer" (stored lengths), "list" (lengths are its offsets), "bytes" (strings) or "other".
        type: the type as the format writes it.
    """

    path: str
    kind: Kind
    type: str


class Source(Protocol):
    """An opened dataset.

    Attributes:
        format: the format's name, for people.
        where: the path, URL or type of object, for messages.
        rows: how many rows there are, or None where only reading can tell.
        fields: what could give lengths, in the order in which the dataset has them.
        order: int[n], the rows of the stored table that make up the dataset, or None where that is all of them.
        reads_values: whether reading a list column decodes its values, for want of offsets that are stored alone.
    """

    format: str
    where: str
    rows: int | None
    fields: Sequence[Field]
    order: npt.NDArray[Any] | None
    reads_values: bool

    def read(self, field: Field) -> Iterator[Any]:
        """Yield the column in parts: pyarrow arrays of the field's type, or numpy arrays of lengths."""
        ...


class Format(Protocol):
    """A kind of source that `read_lengths` understands; what an entry point in "lengthwise.sources" must name."""

    def open(self, source: Any) -> Source | None:
        """Return the opened source, or None where it is of another format (decided without reading data)."""
        ...


@contextmanager
def reading(where: str, advice: str) -> Iterator[None]:
    """Turn what a library raises while it reads `where` into a LengthwiseError that names it and says what to do."""
    try:
        yield
    except LengthwiseError:
        raise
    except FileNotFoundError as error:
        raise LengthwiseError(f"{where} does not exist; check the path") from error
    except PermissionError as error:
        raise LengthwiseError(f"{where} cannot be read: permission denied; check its owner and mode") from error
    except (OSError, ValueError, TypeError, KeyError, IndexError, MemoryError, NotImplementedError) as error:
        reason = str(error).strip().split("\n", 1)[0] or type(error).__name__
        raise LengthwiseError(f"{where} cannot be read: {reason}; {advice}") from error
