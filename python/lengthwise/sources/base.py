"""What a format offers to the reader: its fields, and the raw column of one of them, part by part.

A format is one module with one function, `open`, which recognises the format's own sources. Choosing the column,
measuring it, checking it and building the result happen once, outside of the formats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from lengthwise._core import LengthwiseError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

Kind = Literal["integer", "list", "bytes", "other"]
Holds = Literal["tokens", "text", "records"]


class Field(NamedTuple):
    """One column, or one field of a nested column, that could give lengths.

    Attributes:
        path: its name; the names on the way to a nested field, joined by dots.
        kind: "integer" (stored lengths), "list" (lengths are its offsets), "bytes" (strings) or "other".
        stored: the type as the format has it; `type` is that in words, made when it is asked for.
        inner: whether it is inside of a list, so that a row has several, which are added up.
        holds: what its lists are of: text may be tokens by name, records (messages, say) are none.
    """

    path: str
    kind: Kind
    stored: object
    inner: bool = False
    holds: Holds = "tokens"

    @property
    def type(self) -> str:
        """The type as the format writes it."""
        return str(self.stored)


class Source(ABC):
    """An opened dataset.

    Attributes:
        format: the format's name, for people.
        where: the path, URL or type of object, for messages.
        fields: what could give lengths, in the order in which the dataset has them.
        rows: how many rows the stored table has, or None where only reading can tell.
        order: int[n], the rows of the stored table that make up the dataset, or None where that is all of them.
        reads_values: whether reading a list column decodes its values, for want of offsets that are stored alone.
        once: whether the data can be read only once, as a stream can.
        whole: whether all of it is in memory, in one part: a read is over before anyone would ask how far it is.
    """

    format: str
    where: str
    fields: Sequence[Field]
    rows: int | None = None
    order: npt.NDArray[Any] | None = None
    reads_values: bool = False
    once: bool = False
    whole: bool = False

    @abstractmethod
    def read(self, field: Field, skip: int = 0) -> Iterable[Any]:
        """Yield a column in parts, without the first `skip`: pyarrow arrays of its type, or numpy arrays of lengths.

        The parts of a source that is unchanged are always the same, which is what lets an interrupted read go on.
        """

    def values(self, field: Field) -> Iterable[Any]:
        """Yield a column in parts with all that is in it, of which `read` may leave out what lengths do not need."""
        return self.read(field)

    def sample(self, field: Field) -> Iterator[tuple[int, Any]]:  # noqa: ARG002 - the default has nothing to sample
        """Yield a few small parts with the row at which each starts, at a cost that is small beside any read."""
        return iter(())

    def doubt(self) -> str | None:
        """Return what about the data itself looks as if some were missing, at no cost to speak of."""
        return None

    def stamp(self) -> str | None:
        """Return what changes whenever the data may have changed, or None where nothing tells."""
        return None

    def folder(self) -> str | None:
        """Return the local folder that the data is in, or None."""
        return None

    def tokens(self, field: Field) -> tuple[int, int] | None:  # noqa: ARG002 - most formats store no totals
        """Return the least and most tokens that the column can hold by metadata alone, or None."""
        return None


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
    except Exception as error:
        raise described(error, where, advice) from error


def described(error: Exception, where: str, advice: str) -> LengthwiseError:
    """Return what `reading` raises; for what is over so soon that entering a context would show."""
    if isinstance(error, FileNotFoundError):
        return LengthwiseError(f"{where} does not exist; check the path")
    if isinstance(error, PermissionError):
        return LengthwiseError(f"{where} cannot be read: permission denied; check its owner and mode")
    if isinstance(error, ImportError):
        # fsspec says in words what to install, and raises that from the import that failed.
        name = error.name or getattr(error.__cause__, "name", None) or "it"
        return LengthwiseError(f"{where} cannot be read: {error}; pip install {name}")
    # What a damaged file makes a library raise is anybody's guess.
    said = f"there is no {error}" if isinstance(error, KeyError) else getattr(error, "strerror", None) or str(error)
    reason = said.strip().split("\n", 1)[0] or type(error).__name__
    return LengthwiseError(f"{where} cannot be read: {reason}; {advice}")
