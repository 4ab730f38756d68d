"""A loader whose state is what the training loop has taken.

Problem: a loader with workers draws batches from its sampler ahead of training, and libraries read one batch ahead
again. The sampler's own position is therefore not the position of the training.

Method: count the batches as they are handed to the loop. The order of batches is known, so that count is all: the state
is the sampler's small dict, whatever the number of workers, and that number may change between save and load.

When it is wrong: with `in_order=False`, which hands batches out of order; it is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lengthwise import LengthwiseError
from lengthwise.torch.sampler import BatchSampler
from lengthwise.torch.stream import StreamBatches

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Source(NamedTuple):
    """Where a loader's batches come from."""

    sampler: BatchSampler
    shards: int  # how many processes a library around the sampler deals its batches to


def find_sampler(loader: Any) -> Source:
    """Return the `BatchSampler` that a loader draws from, through the wrappers of accelerate.

    Raises:
        LengthwiseError: it draws from none.
    """
    shards = 1
    sampler = getattr(loader, "batch_sampler", None)
    while sampler is not None and not isinstance(sampler, BatchSampler):
        shards *= getattr(sampler, "num_processes", 1)
        sampler = getattr(sampler, "batch_sampler", None)
    if isinstance(getattr(loader, "dataset", None), StreamBatches):
        raise LengthwiseError(
            "the loader reads a stream, which takes the share of its rank by itself; iterate it as it is, and save its "
            "state with StatefulDataLoader"
        )
    if sampler is None:
        raise LengthwiseError(
            f"the loader draws from {type(getattr(loader, 'batch_sampler', None)).__name__}, but must draw from a "
            "lengthwise.torch.BatchSampler; write DataLoader(dataset, batch_sampler=BatchSampler(planner), ...)"
        )
    return Source(sampler, shards)


class Resumable:
    """A loader that can be saved and resumed at any batch, with any number of workers.

    It is `Stateful` as torch, torchdata, torchtitan and Lightning understand it; everything else of the loader is there
    as it was.

    Args:
        loader: a `DataLoader` (or what a library made of one) that draws from a `BatchSampler`.

    Raises:
        LengthwiseError: it draws from no `BatchSampler`, or was made with `in_order=False`.

    Cost: a count for each batch.

    Example:
        >>> import lengthwise as lw
        >>> from torch.utils.data import DataLoader
        >>> planner = lw.Planner([1, 1, 1, 1], lw.Padded(max_tokens=1))
        >>> loader = Resumable(DataLoader(range(4), batch_sampler=BatchSampler(planner), collate_fn=list))
        >>> first = next(iter(loader))
        >>> state = loader.state_dict()
        >>> again = Resumable(DataLoader(range(4), batch_sampler=BatchSampler(planner), collate_fn=list))
        >>> again.load_state_dict(state)
        >>> sorted(first + [row for batch in again for row in batch])
        [0, 1, 2, 3]
    """

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self._source = find_sampler(loader)
        self._taken = 0
        if not getattr(loader, "in_order", True):
            raise LengthwiseError(
                "the loader was made with in_order=False, but then a position in the order means nothing; "
                "leave in_order out"
            )

    def __getattr__(self, name: str) -> Any:
        if name == "loader":  # asked for while being unpickled
            raise AttributeError(name)
        return getattr(self.loader, name)

    def __len__(self) -> int:
        """Return the number of batches in the whole of this epoch."""
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        return self._one_epoch()

    def _one_epoch(self) -> Iterator[Any]:
        self._taken = 0
        for batch in self.loader:
            self._taken += 1
            yield batch

    def forever(self) -> Iterator[Any]:
        """Yield batches epoch after epoch, for loops that count steps."""
        while True:
            yield from self._one_epoch()
            self.set_epoch(self._source.sampler.epoch + 1)

    @property
    def epoch(self) -> int:
        """The epoch of the next batch."""
        return self._source.sampler.epoch

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch of the next iteration; the one that is set already keeps a loaded position."""
        self._source.sampler.set_epoch(epoch)
        if hasattr(self.loader, "set_epoch"):
            self.loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return where to go on after the batches that the loop has taken: the same on every rank."""
        return self._source.sampler.state_after(self._taken * self._source.shards)

    def load_state_dict(self, state: Mapping[str, Any], *, strict: bool = True) -> None:
        """Go on where `state` was taken; see `BatchSampler.load_state_dict`."""
        self._source.sampler.load_state_dict(state, strict=strict)
        self.set_epoch(self._source.sampler.epoch)
