"""Megatron-LM: a sampler for `--dataloader-type external`, resumed from the number of samples consumed.

Megatron's samplers are made from the samples consumed so far and the place among the data-parallel ranks, yield lists,
and have the number of samples as their length. It iterates a loader once: give it `Resumable(loader).forever()`.

Megatron counts consumed samples by its fixed micro-batch size. With batches planned by tokens, save
`sampler.consumed_samples` (or `Resumable.state_dict()`) instead of its count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lengthwise import LengthwiseError
from lengthwise.torch.deal import Position
from lengthwise.torch.sampler import BatchSampler
from lengthwise.torch.state import Resume

if TYPE_CHECKING:
    from lengthwise.planner import Planner


class MegatronSampler(BatchSampler):
    """Planned batches of one data-parallel rank, from `consumed_samples` on.

    Args:
        planner: its `world_size` is the number of data-parallel ranks; it must use every sample once an epoch
            (`overlong="error"` or `"truncate"`, `remainder="split"`), or samples could not be counted.
        consumed_samples: of all ranks since training began; within an epoch and even within a batch.
        data_parallel_rank: this rank.
        data_parallel_size: how many ranks there are.

    Raises:
        LengthwiseError: a negative count, or a planner under which samples consumed do not tell the position.
    """

    def __init__(
        self, planner: Planner, *, consumed_samples: int = 0, data_parallel_rank: int, data_parallel_size: int
    ) -> None:
        super().__init__(planner, data_parallel_rank, data_parallel_size)
        if consumed_samples < 0:
            raise LengthwiseError(f"consumed_samples is {consumed_samples}, but must be at least 0")
        if planner.overlong not in ("error", "truncate", "alone") or planner.remainder != "split":
            raise LengthwiseError(
                f'the planner has overlong="{planner.overlong}", remainder="{planner.remainder}", but consumed samples '
                'tell a position only where each is used once an epoch; write overlong="truncate", remainder="split"'
            )
        self.total_samples = self.samples
        self.micro_batch_times_data_parallel_size = data_parallel_size
        epoch, within = divmod(consumed_samples, self.samples)
        ends = np.cumsum(self._plan(epoch, planner.world_size).sizes, dtype=np.int64)
        batch = int(np.searchsorted(ends, within, side="right"))
        before = int(ends[batch - 1]) if batch else 0
        self._go_to(Resume(epoch, Position(batch, within - before, batch), planner.world_size))

    @property
    def consumed_samples(self) -> int:
        """Samples of all ranks drawn since training began."""
        epoch, position, planned_for = self._resume_after(0 if self._running is None else self._running.drawn)
        plan = self._plan(epoch, planned_for)
        return epoch * self.samples + int(plan.sizes[: position.batch].sum(dtype=np.int64)) + position.sample

    def __len__(self) -> int:
        """Return the number of samples, as Megatron's samplers do; batches are counted by `remaining`."""
        return self.samples
