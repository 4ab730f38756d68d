"""Ray: a loader of Ray Train that keeps its batch sampler, and batches by tokens from Ray Data.

`ray.train.torch.prepare_data_loader` builds a new `DataLoader` around a distributed sampler, so that single samples
come out; with `add_dist_sampler=False` it keeps the loader, and the sampler takes its share by itself.

Ray Data batches by rows. Its blocks, as Arrow tables, are a stream of rows that `token_batches` regroups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lengthwise import LengthwiseError
from lengthwise.torch.ranks import Ranks
from lengthwise.torch.resumable import Resumable, find_sampler
from lengthwise.torch.stream import StreamBatches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from torch.utils.data import DataLoader

    from lengthwise.layouts import Layout


def ranks() -> Ranks:
    """Return rank and world size of this Ray Train worker, for `BatchSampler(planner, *ranks())`."""
    import ray.train

    context = ray.train.get_context()
    return Ranks(context.get_world_rank(), context.get_world_size())


def prepare(loader: DataLoader[Any]) -> Resumable:
    """Prepare `loader` (it moves batches to the worker's device), in place of `prepare_data_loader(loader)`.

    Save `state_dict()` of the result in the checkpoint that is reported.

    Raises:
        LengthwiseError: its sampler is for another number of workers.
    """
    import ray.train.torch

    sampler, found = find_sampler(loader).sampler, ranks()
    if (sampler.rank, sampler.world_size) != found:
        raise LengthwiseError(
            f"the batch sampler is for rank {sampler.rank} of {sampler.world_size}, but this is worker {found.rank} of "
            f"{found.world_size}; write Planner(..., world_size={found.world_size}) and BatchSampler(planner, *ranks())"
        )
    return Resumable(ray.train.torch.prepare_data_loader(loader, add_dist_sampler=False))


def token_batches(
    tables: Iterable[pa.Table], layout: Layout, *, column: str = "input_ids", **options: Any
) -> StreamBatches:
    """Return a stream of batches of this worker's rows, each a list of one-row tables, as the collators take them.

    A shard of Ray Data has as many rows as the others, not as many batches: give `batches=`, or end the epoch with a
    collective.

    Args:
        tables: `shard.iter_batches(batch_size=None, batch_format="pyarrow")`, or any Arrow tables.
        layout: as for `StreamBatches`.
        column: the lists whose length is that of a row, or the integers that tell it.
        options: as for `StreamBatches`, but `length` and `share`.

    Example:
        >>> import lengthwise as lw
        >>> import pyarrow as pa
        >>> tables = [pa.table({"input_ids": [[1, 2, 3], [4]]}), pa.table({"input_ids": [[5, 6]]})]
        >>> sorted(len(batch) for batch in token_batches(tables, lw.Padded(4, boundaries=[2, 4])))
        [1, 2]
    """

    def length(row: pa.Table) -> int:
        value = row.column(column)[0]
        return len(value) if hasattr(value, "values") else int(value.as_py())

    return StreamBatches(_Rows(tables), layout, length=length, share="source", **options)


class _Rows:
    """The rows of tables, one after another."""

    def __init__(self, tables: Iterable[pa.Table]) -> None:
        self._tables = tables

    def __iter__(self) -> Iterator[pa.Table]:
        for table in self._tables:
            for row in range(table.num_rows):
                yield table.slice(row, 1)
