"""Refuse the uses of a batch sampler that would silently lose data.

Problem: nothing in PyTorch's protocols tells a sampler who iterates it. Given as `sampler=`, its batches are batched
again; wrapped by a library that shards, its share is shared out again and most of an epoch is never seen; beside a
dataset of another size, rows are missed. None of this raises anything.

Method: look at the object whose method called `__iter__`, once per epoch, and check exactly the known classes. Where
the caller is anything else, nothing is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.utils.data import BatchSampler as TorchBatchSampler
from torch.utils.data.dataloader import _BaseDataLoaderIter

from lengthwise import LengthwiseError
from lengthwise.torch.segmented import Segmented

if TYPE_CHECKING:
    from types import FrameType

    from lengthwise.torch.sampler import BatchSampler


def refuse_misuse(caller: FrameType, sampler: BatchSampler) -> None:
    """Check the object that iterates `sampler`.

    Raises:
        LengthwiseError: it batches again, shards again, or has a dataset of another size; the message says what to
            write instead.
    """
    user = caller.f_locals.get("self")
    if isinstance(user, _BaseDataLoaderIter):
        dataset = getattr(user, "_dataset", None)
        check_size(dataset, sampler.samples)
        if sampler.yields_segments and not isinstance(dataset, Segmented):
            raise LengthwiseError(
                f'the planner cuts samples (overlong="{sampler.planner.overlong}"), so that batches hold '
                "(index, start, stop); write DataLoader(lengthwise.torch.Segmented(dataset), batch_sampler=sampler)"
            )
    elif isinstance(user, TorchBatchSampler):
        if getattr(user, "sampler", None) is sampler and not hasattr(user, "batch_sampler"):
            raise LengthwiseError(
                "this batch sampler was given to a DataLoader as sampler=, which would batch its batches again; "
                "write DataLoader(dataset, batch_sampler=sampler) without batch_size, shuffle and drop_last"
            )
        shards = getattr(user, "num_processes", 1)
        if shards != 1 and sampler.world_size != 1:
            raise LengthwiseError(
                f"this batch sampler already takes the share of one of world_size={sampler.world_size} ranks, and "
                f"accelerate would share that out again among {shards} processes; prepare the loader with "
                "lengthwise.integrations.accelerate.prepare(accelerator, loader), or make the sampler with "
                "rank=0, world_size=1 and let accelerate deal the batches"
            )


def check_size(dataset: Any, samples: int) -> None:
    """Check that `dataset` has as many rows as there are lengths.

    Raises:
        LengthwiseError: it has more or fewer; the message has both numbers.
    """
    try:
        rows = len(dataset)
    except TypeError:
        return
    if rows != samples:
        raise LengthwiseError(
            f"the dataset has {rows} rows, but the planner was given {samples} lengths; read the lengths from the "
            "dataset that is trained on, after it was filtered, shuffled or split"
        )
