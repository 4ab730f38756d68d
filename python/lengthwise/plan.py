"""An epoch, planned: arrays, and the views of them that training needs."""

from __future__ import annotations

import operator
from functools import cached_property
from typing import TYPE_CHECKING

from lengthwise._core import LengthwiseError
from lengthwise.summary import Summary, summarise

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt

    from lengthwise.layouts import PlanArrays
    from lengthwise.planner import Planner

    Indices = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]


class Batches:
    """Batches in running order: `len()`, indexing and iteration give arrays of sample indices.

    Attributes:
        indices: uint32[n] (uint64 past 2**32 samples): batch i is `indices[starts[i] : starts[i] + sizes[i]]`. Where
            samples are dropped, some of it belongs to no batch.
        starts: int64[b], where each batch starts in `indices`.
        sizes: uint32[b], samples in each batch.
        padded_lengths: uint32[b], in tokens, what each sample of a batch (or the row of a pack) occupies.
        segments: uint32[n, 2], the tokens (start, stop) used of each entry of `indices`; None where all are.
    """

    def __init__(
        self,
        indices: Indices,
        starts: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.uint32],
        padded_lengths: npt.NDArray[np.uint32],
        segments: npt.NDArray[np.uint32] | None,
    ) -> None:
        self.indices = indices
        self.starts = starts
        self.sizes = sizes
        self.padded_lengths = padded_lengths
        self.segments = segments

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, batch: int) -> Indices:
        """Return the samples of one batch: a view of `indices`."""
        start = self.starts[batch]
        return self.indices[start : start + self.sizes[batch]]

    def __iter__(self) -> Iterator[Indices]:
        for start, size in zip(self.starts.tolist(), self.sizes.tolist(), strict=True):
            yield self.indices[start : start + size]


class Plan(Batches):
    """A whole epoch of all ranks: batch i belongs to step i // world_size, rank i % world_size."""

    def __init__(self, arrays: PlanArrays, *, epoch: int, planner: Planner) -> None:
        super().__init__(arrays.indices, arrays.starts, arrays.sizes, arrays.padded_lengths, arrays.segments)
        self.accounts = arrays.accounts
        self.epoch = epoch
        self.planner = planner
        self.seed = planner.seed
        self.world_size = planner.world_size

    @property
    def steps(self) -> int:
        """How many batches every rank runs."""
        return len(self) // self.world_size

    def rank(self, rank: int) -> Batches:
        """Return the batches of one rank in running order, without copying.

        Raises:
            LengthwiseError: `rank` is not from 0 to world_size - 1.
        """
        if not 0 <= operator.index(rank) < self.world_size:
            raise LengthwiseError(f"rank is {rank}, but must be from 0 to world_size - 1 = {self.world_size - 1}")
        share = slice(rank, None, self.world_size)
        return Batches(self.indices, self.starts[share], self.sizes[share], self.padded_lengths[share], self.segments)

    @cached_property
    def summary(self) -> Summary:
        """What the plan costs and what happened to samples; computed when first asked for."""
        return summarise(self)

    def __repr__(self) -> str:
        return f"<Plan of epoch {self.epoch}: {len(self):,} batches, {self.steps:,} steps of {self.world_size} ranks>"
