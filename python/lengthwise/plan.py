"""An epoch, planned: arrays, and the views of them that training needs."""

from __future__ import annotations

from functools import cached_property
from html import escape
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from lengthwise._core import LengthwiseError
from lengthwise._integers import as_integer
from lengthwise.summary import Summary, real_tokens, summarise

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    import numpy.typing as npt
    from matplotlib.axes import Axes

    from lengthwise.layouts import PlanArrays
    from lengthwise.planner import Planner

    Indices = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]


class Batches:
    """Batches in running order: indexing and iteration give arrays of sample indices, slices give `Batches`.

    Attributes:
        indices: uint32[n] (uint64 past 2**32 samples): batch i is `indices[starts[i] : starts[i] + sizes[i]]`. Where
            samples are dropped, some of it belongs to no batch.
        starts: int64[b], where each batch starts in `indices`.
        sizes: uint32[b], samples in each batch.
        padded_lengths: uint32[b], in tokens, what each sample of a batch (or the row of a pack) occupies; uint32[b, 2]
            of pairs.
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

    @overload
    def __getitem__(self, batch: SupportsIndex) -> Indices: ...
    @overload
    def __getitem__(self, batch: slice) -> Batches: ...
    def __getitem__(self, batch: SupportsIndex | slice) -> Indices | Batches:
        """Return the samples of one batch, or some of the batches: views, without a copy."""
        if isinstance(batch, slice):
            table = (self.starts[batch], self.sizes[batch], self.padded_lengths[batch])
            return Batches(self.indices, *table, self.segments)
        batch = index(batch)
        start = self.starts[batch]
        return self.indices[start : start + self.sizes[batch]]

    def __iter__(self) -> Iterator[Indices]:
        for start, size in zip(self.starts.tolist(), self.sizes.tolist(), strict=True):
            yield self.indices[start : start + size]

    def __repr__(self) -> str:
        return f"<{len(self):,} batches of {int(self.sizes.sum(dtype=np.int64)):,} samples>"


class Plan(Batches):
    """A whole epoch of all ranks: batch i belongs to rank i % world_size, step i // (world_size * accumulate).

    Attributes:
        epoch: which epoch it is.
        accounts: what happened to samples, by name: see `Summary`.
    """

    def __init__(
        self,
        arrays: PlanArrays,
        *,
        epoch: int,
        planner: Planner | None,
        config: dict[str, Any] | None = None,
        fingerprint: str | None = None,
    ) -> None:
        super().__init__(arrays.indices, arrays.starts, arrays.sizes, arrays.padded_lengths, arrays.segments)
        self.epoch = epoch
        self.accounts = arrays.accounts
        self._real_tokens = arrays.real_tokens
        self._planner = planner
        self._config = config
        self._fingerprint = fingerprint

    @property
    def planner(self) -> Planner:
        """The planner that made the plan.

        Raises:
            LengthwiseError: the plan was read from a file without its lengths.
        """
        if self._planner is None:
            raise LengthwiseError("this plan was read without its lengths; use read_plan(path, lengths)")
        return self._planner

    @cached_property
    def config(self) -> dict[str, Any]:
        """Everything that decides the plan beside the lengths and the epoch, as plain values."""
        return self.planner.config if self._config is None else self._config

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the lengths that were planned."""
        return self.planner.fingerprint if self._fingerprint is None else self._fingerprint

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self.config["seed"]) if self._planner is None else self._planner.seed

    @property
    def world_size(self) -> int:
        """How many ranks share the plan."""
        return int(self.config["world_size"]) if self._planner is None else self._planner.world_size

    @property
    def accumulate(self) -> int:
        """How many batches each rank runs in a step."""
        return int(self.config.get("accumulate", 1)) if self._planner is None else self._planner.accumulate

    @property
    def steps(self) -> int:
        """How many steps the epoch has; in each, every rank runs `accumulate` batches."""
        return len(self) // (self.world_size * self.accumulate)

    def rank(self, rank: int) -> Batches:
        """Return the batches of one rank in running order, without copying.

        Raises:
            LengthwiseError: `rank` is not from 0 to world_size - 1.

        Example:
            >>> import lengthwise as lw
            >>> plan = lw.Planner([5, 6, 7, 8], lw.Padded(8), world_size=2).plan()
            >>> [len(plan.rank(rank)) for rank in range(2)]
            [2, 2]
        """
        rank = as_integer(rank, "rank", 0, self.world_size - 1)
        return self[rank :: self.world_size]

    @cached_property
    def real_tokens(self) -> npt.NDArray[np.uint64]:
        """uint64[b]: the tokens of each batch without padding.

        Cost: none where the planner composed steps by them, else some nanoseconds a sample, once.
        """
        return real_tokens(self, self.planner.sample_tokens) if self._real_tokens is None else self._real_tokens

    @property
    def step_tokens(self) -> npt.NDArray[np.uint64]:
        """uint64[steps]: the tokens without padding of each step, over all its batches and ranks."""
        tokens: npt.NDArray[np.uint64] = self.per_rank(self.real_tokens).sum(axis=1)
        return tokens

    @cached_property
    def costs(self) -> npt.NDArray[np.float64]:
        """float64[b]: what each batch costs a rank, by the planner's `cost`."""
        return self.planner.step_maker.costs(self, self.planner.layout, self.planner.sample_tokens)

    def per_rank(self, values: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return [steps, world_size]: the sum of a value [b] of every batch over those of each step and rank.

        Raises:
            LengthwiseError: not one value a batch.

        Example:
            >>> import lengthwise as lw
            >>> plan = lw.Planner([5, 6, 7, 8], lw.Padded(8), world_size=2, accumulate=2).plan()
            >>> plan.per_rank(plan.real_tokens).sum()
            np.uint64(26)
        """
        array = np.asarray(values)
        if array.shape != (len(self),):
            raise LengthwiseError(f"values has shape {array.shape}, but must be one for each of {len(self):,} batches")
        sums: npt.NDArray[Any] = array.reshape(self.steps, self.accumulate, self.world_size).sum(axis=1)
        return sums

    @cached_property
    def padded_tokens(self) -> npt.NDArray[np.uint64]:
        """uint64[b]: the tokens of each batch with padding."""
        return self.planner.layout.batch_tokens(self.sizes, self.padded_lengths)

    @cached_property
    def summary(self) -> Summary:
        """What the plan costs, what happened to samples, and how well it mixes; computed when first asked for.

        Cost: it plans the next epoch too, and takes some 50 ns a sample.
        """
        return summarise(self)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as an Arrow file that `read_plan`, or any other tool, maps into memory.

        One row a batch, in running order: `step`, `rank`, `padded_length` (of pairs, a list of two), `indices` (a list
        of samples), and `segments` where only parts of samples are used. The schema's metadata hold the configuration
        and the lengths' fingerprint.
        The file appears whole or not at all.

        Raises:
            LengthwiseError: the file cannot be written.
        """
        from lengthwise.plan_file import write_plan

        write_plan(self, path)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw real and padded tokens of batches over the epoch; needs matplotlib.

        Args:
            ax: matplotlib axes to draw on; a new figure by default.

        Raises:
            LengthwiseError: matplotlib is not installed, or the plan was read without its lengths.
        """
        from lengthwise.plots import plot_plan

        return plot_plan(self, ax)

    def _repr_html_(self) -> str:
        if self._planner is None:
            return f"<p>{escape(repr(self))}</p>"
        summary = self.summary
        facts = {
            "batches": f"{summary.batches:,}",
            "steps of each rank": f"{summary.steps:,}",
            "padded/real": f"{summary.ratio:.4f}",
            "largest batch": f"{summary.largest_tokens:,} padded tokens",
            "shapes": f"{summary.shapes:,}",
            "waiting": f"{summary.imbalance:.2%}",
            "batchmates again": f"{summary.mixing.batchmates_again:.2%}",
        }
        facts |= {name.replace("_", " "): f"{count:,}" for name, count in self.accounts.items() if count}
        rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in facts.items())
        return f"<table><caption>Plan of epoch {self.epoch}</caption>{rows}</table>"

    def __repr__(self) -> str:
        return f"<Plan of epoch {self.epoch}: {len(self):,} batches, {self.steps:,} steps of {self.world_size} ranks>"
