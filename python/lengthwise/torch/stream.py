"""Batches of a stream: rows that come one after another, with no way back and no known end.

Method: `Padded` batches are planned a window of rows at a time, each as an epoch of its own. Packs (`Packed`) are
filled as rows come, with a number of them open. Memory is what is planned or open, for each worker. Each rank and
worker reads its own part of the stream.

What holds as for a `BatchSampler`: hard limits, an order that depends on the stream, the seed and the epoch alone,
every row once, a small state that goes on at the very next batch. What cannot hold, because lengths are not known
beforehand:

- Ranks have as many *rows*, not as many batches. Give `batches=` for loops that must run in step; a rank whose rows end
  before then begins them again.
- Mixing is within a window, and packs hold neighbours: a stream should be shuffled.
- The batches at the end of a window are not full: less than one batch for each bucket. Packs have only one such end.
- Resume needs the same number of ranks and workers. It reads again the window, or the rows since the oldest one in an
  open pack; and all rows before them, unless the source has a state of its own.
"""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

import torch
from torch.utils.data import IterableDataset, get_worker_info

from lengthwise import LengthwiseError
from lengthwise.packed import Packed
from lengthwise.torch.checks import row_length
from lengthwise.torch.guard import refuse_sharing
from lengthwise.torch.ranks import find_ranks
from lengthwise.torch.state import plain
from lengthwise.torch.stream_parts import OpenPacks, Part, Place, Row, Windows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from torch.distributed.device_mesh import DeviceMesh

    from lengthwise.layouts import Layout
    from lengthwise.planner import Overlong

VERSION: Final = 1

#: What a worker holds where nothing is said: rows that are planned together, packs that are open.
WINDOW: Final = 10_000
OPEN_PACKS: Final = 256

#: What a position counts: blocks of rows done, batches of the next one, rows before it, batches and passes in all.
COUNTS: Final = ("blocks", "batch", "rows", "yielded", "passes")


class StreamBatches(IterableDataset[list[Any]]):
    """Yields batches of rows: `DataLoader(StreamBatches(source, layout), batch_size=None, collate_fn=...)`.

    Args:
        source: an iterable of rows that starts anew with every `iter`: an `IterableDataset`, a list, a file reader.
            Where it has `state_dict` and `load_state_dict`, they save reading it again on resume; where it has
            `set_epoch`, it is told.
        layout: `Padded` or `PaddedPairs` (best with `boundaries` or `cells` given, so that every window has the same),
            or `Packed`, for one pack a batch.
        window: what each worker holds. For padded batches, rows that are planned together, by default 10,000: hundreds
            of batches of them keep padding low. For `Packed`, packs that are open at a time, by default 256.
        seed: names the random order within windows, as in `Planner`. Packs come in the order of the stream.
        overlong: what to do with rows that fit no batch, as in `Planner`.
        length: the length of a row: a function, or the field that tells it; by default as `check_dataset` does. For
            `PaddedPairs`, a function that returns both lengths.
        share: "rows" gives every n-th row of the source to each of the n workers of all ranks; "source" if the source
            shares itself out among them, as those of `datasets` do (with `split_dataset_by_node` for ranks).
        batches: how many batches each rank yields in an epoch: exactly so many.
        rank: as in `BatchSampler`; so are `world_size` and `mesh`.

    Raises:
        LengthwiseError: numbers below 1, a rank outside the world; while iterating, rows that cannot be planned, or a
            source that shares itself out although `share="rows"`.

    Example:
        >>> import lengthwise as lw
        >>> rows = [[0] * length for length in (3, 5, 4, 2)]
        >>> stream = StreamBatches(rows, lw.Padded(max_tokens=8, boundaries=[4, 8]), window=4)
        >>> sorted(len(row) for batch in stream for row in batch)
        [2, 3, 4, 5]
    """

    def __init__(
        self,
        source: Iterable[Any],
        layout: Layout,
        *,
        window: int | None = None,
        seed: int = 0,
        overlong: Overlong = "error",
        length: Callable[[Any], int | tuple[int, int]] | str | None = None,
        share: Literal["rows", "source"] = "rows",
        batches: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        mesh: DeviceMesh | None = None,
    ) -> None:
        for name, value in (("window", window), ("batches", batches)):
            if value is not None and value < 1:
                raise LengthwiseError(f"{name} is {value}, but must be at least 1")
        if share not in ("rows", "source"):
            raise LengthwiseError(f'share is {share!r}, but must be "rows" or "source"')
        self.source = source
        self.layout = layout
        self.window = window or (OPEN_PACKS if isinstance(layout, Packed) else WINDOW)
        self.seed = seed
        self.overlong = overlong
        self.length = length
        self.share = share
        self.batches = batches
        self.rank, self.world_size = find_ranks(rank, world_size, mesh)
        # Shared memory, so that workers that persist learn of a new epoch, too.
        self._shared_epoch = torch.zeros((), dtype=torch.int64)
        self._shared_epoch.share_memory_()  # type: ignore[no-untyped-call]
        self._at: dict[str, Any] = self._start(0)
        self._pending: dict[str, Any] | None = None
        self._part()  # what cannot be packed is refused here, not in a worker

    @property
    def epoch(self) -> int:
        """The epoch of the next iteration."""
        return int(self._shared_epoch)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch of the next iteration; the one that is set already keeps a loaded position."""
        if epoch != self.epoch:
            self._shared_epoch.fill_(epoch)
            self._pending = None
            self._at = self._start(epoch)

    def __len__(self) -> int:
        """Return the batches of a rank in an epoch, where `batches` says it."""
        if self.batches is None:
            raise TypeError("the number of batches of a stream is not known beforehand; give batches= to fix it")
        return self.batches

    def __iter__(self) -> Iterator[list[Any]]:
        refuse_sharing(sys._getframe(1), self.world_size)  # noqa: SLF001 (as in the sampler)
        at, self._pending = self._pending or self._start(self.epoch), None
        self._at, most = at, self._most()
        while not at["finished"]:
            fresh, before = at["rows"] == at["batch"] == 0 and at["open"] is None, at["yielded"]
            yield from self._pass(at, most)
            if most is None or at["yielded"] == most:
                break
            if fresh and at["yielded"] == before:
                raise LengthwiseError("the stream has no row for this worker; use fewer workers or ranks")
            at |= {"rows": 0, "source": None, "open": None, "passes": at["passes"] + 1}
        self._at = {**self._start(at["epoch"]), "finished": True}

    def _pass(self, at: dict[str, Any], most: int | None) -> Iterator[list[Any]]:
        """Yield the batches of the source once, from where `at` says."""
        part, start = self._part(), Place(at["rows"], at["source"])
        rows = _Rows(self.source, at["epoch"], start, self._share())
        if at["open"] is not None:
            part.resume(at["open"], start, rows)
        block: list[Row] | None = None
        while block != [] and (most is None or at["yielded"] < most):
            at |= part.state(rows.place)
            block = list(islice(rows, part.size))
            for batch in islice(part.batches(block, (at["epoch"] << 32) + at["blocks"]), at["batch"], None):
                at["batch"] += 1
                at["yielded"] += 1
                yield batch
                if at["yielded"] == most:
                    return
            at |= {"batch": 0, "blocks": at["blocks"] + 1}

    def _part(self) -> Part:
        common: dict[str, Any] = {"window": self.window, "overlong": self.overlong, "length": self._length}
        if isinstance(self.layout, Packed):
            return OpenPacks(self.layout, **common)
        return Windows(self.layout, seed=self.seed, **common)

    def _length(self, row: Row) -> int | tuple[int, int]:
        if callable(self.length):
            return self.length(row.value)
        return row_length(row.value, self.length, f"row {row.place} of the stream")

    def _worker(self) -> tuple[int, int]:
        info = get_worker_info()
        return (0, 1) if info is None else (info.id, info.num_workers)

    def _share(self) -> tuple[int, int]:
        """Return which rows of the source are this worker's: those at `first`, `first + step`, ..."""
        part, parts = self._place()
        if self.share == "source":
            return 0, 1
        if parts > 1 and type(self.source).__module__.startswith("datasets."):
            raise LengthwiseError(
                f"a {type(self.source).__name__} of datasets shares itself out among workers, and a share of its share "
                'would lose rows; give share="source" (and datasets.distributed.split_dataset_by_node for ranks)'
            )
        return part, parts

    def _place(self) -> tuple[int, int]:
        """Return which of all workers of all ranks this is."""
        worker, workers = self._worker()
        return self.rank * workers + worker, self.world_size * workers

    def _most(self) -> int | None:
        """Return how many of the rank's batches are this worker's."""
        worker, workers = self._worker()
        return None if self.batches is None else (self.batches + workers - 1 - worker) // workers

    def _start(self, epoch: int) -> dict[str, Any]:
        return {"epoch": epoch, **dict.fromkeys(COUNTS, 0), "source": None, "open": None, "finished": False}

    def _identity(self) -> dict[str, Any]:
        part, parts = self._place()
        config = {
            "layout": plain(self.layout.config),
            "seed": self.seed,
            "overlong": self.overlong,
            "window": self.window,
        }
        return {"version": VERSION, **config, "batches": self.batches, "part": part, "parts": parts}

    def state_dict(self) -> dict[str, Any]:
        """Return where this worker stands: `StatefulDataLoader` asks each of its workers.

        In a plain loader without workers it is the position of the loop.
        """
        return self._identity() | (self._pending or self._at)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken: in the middle of a window, if it was.

        Raises:
            LengthwiseError: the state is damaged, or of another configuration or number of ranks or workers; the
                message names the field.
        """
        for name, mine in self._identity().items():
            if name not in state:
                raise LengthwiseError(f'state["{name}"] is missing; it must be the dict that state_dict() gave')
            if state[name] != mine:
                raise LengthwiseError(
                    f'state["{name}"] is {state[name]!r:.80}, but this stream has {mine!r:.80}; make it as the saved '
                    "run did, or begin an epoch with set_epoch()"
                )
        missing = [name for name in self._start(0) if name not in state]
        if missing:
            raise LengthwiseError(f'state["{missing[0]}"] is missing; it must be the dict that state_dict() gave')
        for name in ("epoch", *COUNTS):
            if isinstance(state[name], bool) or not isinstance(state[name], int) or state[name] < 0:
                raise LengthwiseError(f'state["{name}"] is {state[name]!r:.80}, but must be a count; it is damaged')
        if not isinstance(state["open"], dict | None):
            raise LengthwiseError(f'state["open"] is {state["open"]!r:.80}, but must be a dict or None; it is damaged')
        self._pending = {name: state[name] for name in self._start(0)}
        if (
            get_worker_info() is None
        ):  # else the others may be in the epoch still, and the next is the main process's to tell
            if state["finished"]:
                self._pending = self._start(state["epoch"] + 1)
            self._shared_epoch.fill_(self._pending["epoch"])


class _Rows:
    """The rows of one worker, from a place on, and the place that reading has come to."""

    def __init__(self, source: Any, epoch: int, start: Place, share: tuple[int, int]) -> None:
        if hasattr(source, "set_epoch"):
            source.set_epoch(epoch)
        if start.source is not None:
            source.load_state_dict(start.source)
        self._source = source
        self._start = start
        self._read = start.rows
        self._share = share
        self._rows = islice(iter(source), 0 if start.source is not None else start.rows, None)

    @property
    def place(self) -> Place:
        """Where the next row is read."""
        if self._read == self._start.rows:  # a source that has not begun may still tell of its last epoch
            return self._start
        return Place(self._read, self._source.state_dict() if hasattr(self._source, "state_dict") else None)

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        part, parts = self._share
        for value in self._rows:
            place = self._read
            self._read += 1
            if place % parts == part:
                return Row(place, value)
        raise StopIteration
