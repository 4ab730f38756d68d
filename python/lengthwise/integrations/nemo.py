"""NeMo Automodel: planned batches by its `BatchSamplerConfig` protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lengthwise.torch.guard import check_size
from lengthwise.torch.sampler import BatchSampler

if TYPE_CHECKING:
    from lengthwise.planner import Planner


@dataclass(frozen=True)
class PlannedBatchSamplerConfig:
    """Builds the batch sampler of a rank when the number of ranks is known.

    Args:
        planner: plans the epochs; it is made anew for the number of ranks.
    """

    planner: Planner

    def build(self, *, dataset_len: int, rank: int, world_size: int) -> BatchSampler:
        """Return the batch sampler of `rank`.

        Raises:
            LengthwiseError: `dataset_len` is not the number of lengths.
        """
        check_size(range(dataset_len), len(self.planner.lengths))
        return BatchSampler(self.planner.replace(world_size=world_size), rank)
