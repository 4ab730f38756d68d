"""Refuse the uses of a batch sampler that would silently lose data.

Problem: nothing in PyTorch's protocols tells a sampler who iterates it. Given as `sampler=`, its batches are batched
again; wrapped by a library that shards, its share is shared out again and most of an epoch is never seen; beside a
dataset of another size, rows are missed. None of this raises anything.

Method: look at the objects whose methods draw the first batch of an epoch: the batch samplers that libraries wrap
around it, and the loader's iterator behind them. Only the known classes are checked. Where it is anything else that
draws, nothing is said.
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


def refuse_misuse(caller: FrameType | None, sampler: BatchSampler) -> None:
    """Check the objects that draw from `sampler`; `caller` is one of its own frames.

    Raises:
        LengthwiseError: one batches again, shards again, or has a dataset of another size; the message says what to
            write instead.
    """
    while caller is not None:
        user = caller.f_locals.get("self")
        if isinstance(user, TorchBatchSampler):
            _check_wrapper(user, sampler)
        elif isinstance(user, _BaseDataLoaderIter):
            _check_dataset(getattr(user, "_dataset", None), sampler)
            refuse_sharing(caller, sampler.world_size)
            return
        elif user is not sampler:
            return
        caller = caller.f_back


def _check_wrapper(wrapper: Any, sampler: BatchSampler) -> None:
    if getattr(wrapper, "sampler", None) is sampler and not hasattr(wrapper, "batch_sampler"):
        raise LengthwiseError(
            "this batch sampler was given to a DataLoader as sampler=, which would batch its batches again; "
            "write DataLoader(dataset, batch_sampler=sampler) without batch_size, shuffle and drop_last"
        )
    shards = getattr(wrapper, "num_processes", 1)
    if shards != 1 and sampler.world_size != 1:
        raise LengthwiseError(
            f"this batch sampler already takes the share of one of world_size={sampler.world_size} ranks, and "
            f"accelerate would share that out again among {shards} processes; prepare the loader with "
            "lengthwise.integrations.accelerate.prepare(accelerator, loader), or make the sampler with "
            "rank=0, world_size=1 and let accelerate deal the batches"
        )


def _check_dataset(dataset: Any, sampler: BatchSampler) -> None:
    check_size(dataset, sampler.samples)
    if sampler.yields_segments and not isinstance(dataset, Segmented):
        raise LengthwiseError(
            f'the planner cuts samples (overlong="{sampler.planner.overlong}"), so that batches hold '
            "(index, start, stop); write DataLoader(lengthwise.torch.Segmented(dataset), batch_sampler=sampler)"
        )


def refuse_sharing(caller: FrameType | None, world_size: int) -> None:
    """Check that no library reads the share of one of `world_size` ranks and gives all of them parts of it.

    A forked worker still has the frames of the process that it was forked from.

    Raises:
        LengthwiseError: accelerate does, as it does with every iterable dataset unless told otherwise.
    """
    while caller is not None and world_size != 1:
        if type(caller.f_locals.get("self")).__name__ == "DataLoaderDispatcher":
            raise LengthwiseError(
                f"accelerate would dispatch the batches of one of world_size={world_size} ranks to all, and those of "
                "the others would be lost; leave dispatch_batches out, and iterate the loader of a stream as it is, "
                "without accelerator.prepare"
            )
        caller = caller.f_back


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
