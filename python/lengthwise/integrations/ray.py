"""Ray Train: prepare a loader without losing its batch sampler.

`ray.train.torch.prepare_data_loader` builds a new `DataLoader` around a distributed sampler, so that single samples
come out; with `add_dist_sampler=False` it keeps the loader, and the sampler takes its share by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lengthwise import LengthwiseError
from lengthwise.torch.ranks import Ranks
from lengthwise.torch.resumable import Resumable, find_sampler

if TYPE_CHECKING:
    from torch.utils.data import DataLoader


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
