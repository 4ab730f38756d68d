"""How a part of a stream becomes batches: rows that are planned together, or packs that stay open.

Both take the rows of one worker block by block and give the batches that each block completes. Padded batches need
rows of like length, so a block is a window that is planned as an epoch of its own. Packs are filled as rows come
(`lengthwise.StreamPacker`): only the open ones are held, and they stay open from block to block.

A state is taken at the start of a block and names its place in the stream. Open packs are named by the numbers of
their samples; their rows are read again, from the block on that the oldest of them came in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from lengthwise import LengthwiseError
from lengthwise._arrays import MAX_LENGTH
from lengthwise._integers import as_integer
from lengthwise.planner import Planner
from lengthwise.stream_packer import StreamPacker
from lengthwise.torch.segmented import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lengthwise.layouts import Layout
    from lengthwise.packed import Packed
    from lengthwise.planner import Overlong

#: Rows that are packed at once: enough to forget the cost of a call.
BLOCK: Final = 256

#: Places that are remembered for rows in open packs. Where there are more, every other one is forgotten.
PLACES: Final = 64


class Row(NamedTuple):
    """One row of a stream."""

    place: int  # of all rows of the source
    value: Any


class Place(NamedTuple):
    """Where a block starts."""

    rows: int  # rows of the source before it
    source: Any  # the state of the source there, or None


class Part(Protocol):
    """Makes batches of blocks of rows."""

    #: Rows to hand over at once.
    size: int

    def state(self, place: Place) -> dict[str, Any]:
        """Return "rows" and "source" to begin to read at, and "open": what is open at `place`, where a block starts."""

    def resume(self, opened: Any, place: Place, rows: Iterator[Row]) -> None:
        """Open again what a state says; takes the rows before its block from `rows`, which begin at `place`."""

    def batches(self, block: list[Row], key: int) -> Iterator[list[Any]]:
        """Yield the batches that the next rows complete; the last ones where there are no more rows."""


class Windows:
    """Plans each block as an epoch of its own."""

    def __init__(
        self, layout: Layout, *, window: int, seed: int, overlong: Overlong, length: Callable[[Row], Any]
    ) -> None:
        self.size = window
        self._layout = layout
        self._options: dict[str, Any] = {"seed": seed, "overlong": overlong}
        self._length = length

    def state(self, place: Place) -> dict[str, Any]:
        """Return the place: nothing stays open between windows."""
        return {**place._asdict(), "open": None}

    def resume(self, opened: Any, place: Place, rows: Iterator[Row]) -> None:
        """Do nothing, for the same reason."""

    def batches(self, block: list[Row], key: int) -> Iterator[list[Any]]:
        """Yield the batches of a window."""
        if not block:
            return
        plan = Planner([self._length(row) for row in block], self._layout, **self._options).plan(key)
        for start, size in zip(plan.starts.tolist(), plan.sizes.tolist(), strict=True):
            rows = [block[index].value for index in plan.indices[start : start + size].tolist()]
            if plan.segments is not None:
                pieces = plan.segments[start : start + size].tolist()
                rows = [cut(row, *piece) for row, piece in zip(rows, pieces, strict=True)]
            yield rows


class OpenPacks:
    """Fills packs as rows come."""

    size = BLOCK

    def __init__(self, layout: Packed, *, window: int, overlong: Overlong, length: Callable[[Row], Any]) -> None:
        if layout.method not in ("best_fit", "auto", "sum_of_squares"):
            raise LengthwiseError(
                f'method="{layout.method}" needs every length beforehand, but a stream is packed by '
                '"sum_of_squares"; leave method out'
            )
        if layout.limits or layout.groups is not None:
            raise LengthwiseError(
                "limits and groups are given for each sample beforehand, but a stream has none to count"
            )
        if overlong == "alone":
            raise LengthwiseError('overlong="alone" would exceed the capacity of a pack; use "split" or "truncate"')
        as_integer(window, "window", 1, 16_384, "it is the number of packs that are open at a time")
        options: dict[str, Any] = {"max_samples": layout.max_samples, "multiple_of": layout.multiple_of}
        self._packer = StreamPacker(layout.capacity, window, **options)
        self._limit = layout.capacity - layout.capacity % layout.multiple_of
        self._overlong = overlong
        self._length = length
        self._held: dict[int, Any] = {}  # samples in open packs, by number
        self._next = 0  # the number of the next sample
        self._rows = 0  # rows of this worker so far
        self._places: list[tuple[int, int, Place]] = []  # starts of blocks: (next sample, rows of this worker, place)

    def state(self, place: Place) -> dict[str, Any]:
        """Return the place of the oldest sample in an open pack, and what is open now."""
        self._places.append((self._next, self._rows, place))
        oldest = min(self._held, default=self._next)
        while len(self._places) > 1 and self._places[1][0] <= oldest:
            del self._places[0]
        if len(self._places) > PLACES:
            del self._places[1:-1:2]
        sample, rows, start = self._places[0]
        opened = {"sample": sample, "again": self._rows - rows, "packer": self._packer.state_dict()}
        return {**start._asdict(), "open": opened}

    def resume(self, opened: Any, place: Place, rows: Iterator[Row]) -> None:
        """Read the rows of the open packs again."""
        self._packer.load_state_dict(opened["packer"])
        self._next = opened["sample"]
        self._places = [(self._next, 0, place)]
        for _ in range(opened["again"]):
            self._hold(next(rows))
        waiting = {number for pack in opened["packer"]["open"] for number in pack}
        self._held = {number: value for number, value in self._held.items() if number in waiting}

    def batches(self, block: list[Row], key: int) -> Iterator[list[Any]]:
        """Yield the packs that a block closes; all that are open where there are no more rows."""
        del key
        closed = self._packer.extend([length for row in block for length in self._hold(row)])
        for pack in closed if block else self._packer.finish():
            yield [self._held.pop(number) for number in pack.tolist()]

    def _hold(self, row: Row) -> list[int]:
        """Keep a row, or its pieces, until their packs are closed; return their lengths."""
        length = as_integer(self._length(row), f"the length of row {row.place}", 0, MAX_LENGTH)
        self._rows += 1
        pieces = self._pieces(row.place, length)
        for start, stop in pieces:
            self._held[self._next] = row.value if stop - start == length else cut(row.value, start, stop)
            self._next += 1
        return [stop - start for start, stop in pieces]

    def _pieces(self, place: int, length: int) -> list[tuple[int, int]]:
        """Return what is used of a row, as (first token, end token)."""
        limit = self._limit
        if length <= limit:
            return [(0, length)]
        if self._overlong == "error":
            raise LengthwiseError(
                f"row {place} of the stream is {length} tokens, but a pack holds {limit}; "
                'choose overlong="truncate", "split" or "drop"'
            )
        if self._overlong == "split":
            return [(start, min(start + limit, length)) for start in range(0, length, limit)]
        return [(0, limit)] if self._overlong == "truncate" else []
