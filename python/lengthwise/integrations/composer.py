"""MosaicML Composer: a batch sampler that it accepts on several ranks, and how to count and cut its batches.

Composer takes a map-style loader on more than one rank only where `loader.batch_sampler` is a `DistributedSampler`, and
sets the epoch on it. It counts samples by the first dimension that it finds, which is wrong where a batch has integers
or where samples are packed into one row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data.distributed import DistributedSampler

from lengthwise.torch.guard import check_size
from lengthwise.torch.sampler import BatchSampler

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lengthwise.planner import Planner

    Batch = Mapping[str, Any]


class DistributedBatchSampler(BatchSampler, DistributedSampler[list[Any]]):
    """`BatchSampler` that passes for a `DistributedSampler`: it has that class's attributes, and none of its order.

    Args:
        planner: as for `BatchSampler`; so are `rank`, `world_size` and `epochs`.
        dataset: what the loader reads; Composer asks the sampler for it.
    """

    def __init__(
        self,
        planner: Planner,
        rank: int | None = None,
        world_size: int | None = None,
        *,
        dataset: Any,
        epochs: int | None = None,
    ) -> None:
        BatchSampler.__init__(self, planner, rank, world_size, epochs=epochs)
        check_size(dataset, self.samples)
        self.dataset = dataset
        self.num_replicas = self.world_size
        self.drop_last = False
        self.shuffle = True
        self.seed = planner.seed
        self.total_size = self.samples
        self.num_samples = self.samples // self.world_size


def data_spec(loader: Any) -> Any:
    """Return a `composer.DataSpec` of `loader` that counts and cuts padded and packed batches rightly."""
    from composer.core import DataSpec

    return DataSpec(
        loader,
        get_num_samples_in_batch=samples_in_batch,
        get_num_tokens_in_batch=tokens_in_batch,
        split_batch=split_batch,
    )


def samples_in_batch(batch: Batch) -> int:
    """Return the samples of a batch: its rows, or the sequences packed into its row."""
    for name in ("cu_seq_lens_q", "cu_seqlens"):
        if name in batch:
            return len(batch[name]) - 1
    return len(batch["input_ids"])


def tokens_in_batch(batch: Batch) -> int:
    """Return the real tokens of a batch."""
    mask = batch.get("attention_mask")
    return int(batch["input_ids"].numel() if mask is None else mask.sum())


def split_batch(batch: Batch, microbatch_size: float) -> list[Batch]:
    """Return a padded batch as batches of at most `microbatch_size` rows; a packed one stays whole."""
    rows = len(batch["input_ids"])
    if samples_in_batch(batch) != rows or rows <= microbatch_size:
        return [batch]
    size = int(microbatch_size)
    return [
        {
            name: value[first : first + size] if isinstance(value, torch.Tensor) and len(value) == rows else value
            for name, value in batch.items()
        }
        for first in range(0, rows, size)
    ]
