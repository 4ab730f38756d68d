"""The batch sampler: a planned epoch as a `DataLoader` and the frameworks around it want it.

Method: plan the epoch when its first batch is asked for (milliseconds, the same plan on every rank, no communication),
then walk the table of batches with a stride. Two plans are kept at most. Iterators are lazy: one binds its epoch and
start when its first batch is drawn, since loaders make iterators that they throw away unread and frameworks set the
epoch after making one. State is on the sampler alone, never on its iterators.

What it does not do: it is drawn from ahead of training where a loader prefetches, so `state_dict()` of the sampler is
the position of the loader. `lengthwise.torch.Resumable` counts what the loop has taken.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch.utils.data import Sampler

from lengthwise import LengthwiseError
from lengthwise.torch.deal import Deal, Position
from lengthwise.torch.guard import refuse_misuse
from lengthwise.torch.ranks import find_ranks
from lengthwise.torch.state import Identity, Resume, make_state, read_state

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch.distributed.device_mesh import DeviceMesh

    from lengthwise.plan import Plan
    from lengthwise.planner import Planner


class BatchSampler(Sampler[list[Any]]):
    """Yields the batches of one rank: the `batch_sampler` of a `DataLoader`.

    Every rank gets the same number of batches, known without communication. The order depends on the planner and the
    epoch alone: no global random state is read or written.

    Args:
        planner: plans the epochs. Its `world_size` is the number of ranks that an epoch is planned for.
        rank: this rank; by default that of `mesh`, of `torch.distributed` where initialised, of the environment
            (`RANK`), else 0.
        world_size: how many ranks run; by default found likewise, and then it must be the planner's. Given, it may
            differ: the same plan is then dealt to that many ranks, its last batches cut so that all get the same count.
        mesh: one-dimensional device mesh of the data-parallel ranks; ranks outside it (tensor or context parallel)
            share a batch.
        epochs: how many epochs will be trained. Each then has as many batches as the longest of them, the others have
            batches cut for it, so that `len()` is the same every epoch: for schedulers that read it once. By default an
            epoch has the batches that it has.
        sort_within_batch: whether the samples of a batch come in ascending order, which datasets in files read faster.

    Raises:
        LengthwiseError: a rank outside the world, a world size that is not the planner's, `epochs` below 1.

    Cost: microseconds to make; planning at the first batch of an epoch; about half a microsecond a batch plus 15 ns a
    sample from then on. It holds at most two plans and pickles without them.

    Example:
        >>> import lengthwise as lw
        >>> planner = lw.Planner([3, 5, 4, 9, 7, 2], lw.Padded(max_tokens=16), world_size=2)
        >>> samplers = [BatchSampler(planner, rank=rank) for rank in range(2)]
        >>> len(samplers[0]) == len(samplers[1]) == len(list(samplers[0]))
        True
        >>> sorted(index for sampler in samplers for batch in sampler for index in batch)
        [0, 1, 2, 3, 4, 5]
    """

    def __init__(
        self,
        planner: Planner,
        rank: int | None = None,
        world_size: int | None = None,
        *,
        mesh: DeviceMesh | None = None,
        epochs: int | None = None,
        sort_within_batch: bool = False,
    ) -> None:
        if epochs is not None and epochs < 1:
            raise LengthwiseError(f"epochs is {epochs}, but at least 1 epoch is trained; leave it out if unknown")
        self.rank, self.world_size = find_ranks(rank, world_size, mesh, planned=planner.world_size)
        self.planner = planner
        self.mesh = mesh
        self.sort_within_batch = sort_within_batch
        self.epoch = 0
        self._epochs = epochs
        self._target: int | None = None if epochs else 0
        self._planned_for = planner.world_size
        self._start = Position()
        self._running: _Running | None = None
        self._plans: dict[tuple[int, int], Plan] = {}
        self._identity: Identity | None = None

    @property
    def sampler(self) -> BatchSampler:
        """The sampler itself: accelerate and Lightning look for `set_epoch` here."""
        return self

    @property
    def yields_segments(self) -> bool:
        """Whether batches hold (index, start, stop), not just the index, because over-long samples are cut.

        True with `overlong="truncate"` and `"split"`; the dataset is then given as `Segmented(dataset)`.
        """
        return self.planner.overlong in ("truncate", "split")

    @property
    def samples(self) -> int:
        """How many samples the planner has: the length that the dataset must have."""
        return len(self.planner.lengths)

    def __len__(self) -> int:
        """Return the number of batches that each rank takes in the whole of this epoch."""
        batches = max(len(self._plan(self.epoch, self._planned_for)), self._at_least())
        return (batches + self.world_size - 1) // self.world_size

    @property
    def remaining(self) -> int:
        """How many batches the next iteration yields: `len()`, or less where a loaded state goes on within an epoch."""
        return len(self._deal())

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that the next iteration yields.

        The epoch that is set already changes nothing: a position that was loaded is kept. Another one starts at its
        first batch, planned for the planner's `world_size`.
        """
        if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch < 0:
            raise LengthwiseError(f"epoch is {epoch!r}, but must be a whole number of at least 0")
        if epoch != self.epoch:
            self._go_to(Resume(epoch, Position(), self.planner.world_size))

    def scale_budget(self, factor: float) -> None:
        """Plan with `factor` times the budget from now on, and start the epoch over: after memory ran out.

        There is no batch size to halve; every rank must do the same.

        Raises:
            LengthwiseError: no positive number, or a budget that the longest sample does not fit; nothing has changed
                then.

        Example:
            >>> import lengthwise as lw
            >>> sampler = BatchSampler(lw.Planner([4, 4, 4, 4], lw.Padded(max_tokens=16)))
            >>> sampler.scale_budget(0.5)
            >>> len(sampler)
            2
        """
        self.planner = scale_budget(self.planner, factor)
        self._plans, self._identity = {}, None
        self._target = None if self._epochs else 0
        self._go_to(Resume(self.epoch, Position(), self.planner.world_size))

    def __iter__(self) -> Iterator[list[Any]]:
        self._running = running = _Running()
        return self._batches(running)

    def _batches(self, running: _Running) -> Iterator[list[Any]]:
        refuse_misuse(sys._getframe(), self)  # noqa: SLF001 (the public spelling, inspect.currentframe, costs more)
        running.deal = deal = self._deal()
        running.resume = Resume(self.epoch, self._start, self._planned_for)
        self._start = Position()
        indices, cut, ascending = deal.plan.indices, self.yields_segments, self.sort_within_batch
        drawn = 0
        for starts, stops in deal.blocks():
            for start, stop in zip(starts, stops, strict=True):
                drawn += 1
                running.drawn = drawn
                self._running = running
                batch = _triples(deal.plan, start, stop) if cut else indices[start:stop].tolist()
                if ascending:
                    batch.sort()
                yield batch

    def state_dict(self) -> dict[str, Any]:
        """Return where the next batch to be drawn is, as a small dict of plain values (see `lengthwise.torch.state`).

        The same on every rank and at any position; a fresh dict each time. After the last batch it is the start of the
        next epoch.
        """
        return self.state_after(0 if self._running is None else self._running.drawn)

    def state_after(self, batches: int) -> dict[str, Any]:
        """Return the state once this rank has trained the first `batches` batches of the iteration now running.

        For loops that count for themselves because their loader prefetches.
        """
        if self._identity is None:
            self._identity = Identity.of(self.planner)
        return make_state(self._identity, self._resume_after(batches))

    def _resume_after(self, batches: int) -> Resume:
        running = self._running
        if running is None or running.deal is None:
            return Resume(self.epoch, self._start, self._planned_for)
        if batches >= len(running.deal):
            return Resume(running.resume.epoch + 1, Position(), self.planner.world_size)
        epoch, _, planned_for = running.resume
        return Resume(epoch, running.deal.position_after(batches), planned_for)

    def load_state_dict(self, state: Mapping[str, Any], *, strict: bool = True) -> None:
        """Go on where `state` was taken; the next iteration yields the rest of its epoch.

        With another number of ranks than the epoch was planned for, the rest of that same plan is dealt to the ranks
        there are now; the next epoch is planned for them. No position needs rounding: the batches left are dealt from
        the next one on, and the last ones cut so that every rank gets the same count.

        Args:
            state: from `state_dict()`, of any rank.
            strict: refuse a state of other lengths, another configuration or a newer version.

        Raises:
            LengthwiseError: the state does not fit, or is damaged; the message names the field. Nothing has changed
                then.

        Cost: planning one epoch; no batch is replayed.
        """
        if self._identity is None:
            self._identity = Identity.of(self.planner)
        resume = read_state(state, self._identity, strict=strict)
        plan = self._plan(resume.epoch, resume.planned_for)
        batch, sample, _ = resume.position
        if batch >= max(1, len(plan)) or (sample and sample >= int(plan.sizes[batch])):
            raise LengthwiseError(
                f'state["batch"] is {batch} (from sample {sample} of it), but epoch {resume.epoch} has {len(plan)} '
                "batches; the state is damaged, or was saved by a planner that made other batches"
            )
        self._go_to(resume)

    def _go_to(self, resume: Resume) -> None:
        self.epoch, self._start, self._planned_for = resume
        self._running = None

    def _deal(self) -> Deal:
        plan = self._plan(self.epoch, self._planned_for)
        target = self._at_least()
        if self._epochs and len(plan) > target and self._planned_for == self.planner.world_size:
            raise LengthwiseError(
                f"epoch {self.epoch} has {len(plan)} batches, more than the {target} that were fixed for "
                f"epochs={self._epochs}; make the sampler with epochs={self.epoch + 1} or more"
            )
        return Deal.resumed(plan, rank=self.rank, world_size=self.world_size, at=self._start, target=target)

    def _at_least(self) -> int:
        """Return how many batches (over all ranks) every epoch has at least."""
        if self._target is None:
            self._target = max(len(self._plan(epoch, self.planner.world_size)) for epoch in range(self._epochs or 0))
        return self._target

    def _plan(self, epoch: int, world_size: int) -> Plan:
        plan = self._plans.get((epoch, world_size))
        if plan is None:
            planner = self.planner
            if world_size != planner.world_size:
                planner = planner.replace(world_size=world_size)
            while len(self._plans) > 1:  # before, so that the new plan gets the memory of the oldest
                del self._plans[next(iter(self._plans))]
            self._plans[epoch, world_size] = plan = planner.plan(epoch)
        return plan

    def __getstate__(self) -> dict[str, Any]:
        """Leave the plans and the running iteration out: a copy plans for itself."""
        resume = self._resume_after(0 if self._running is None else self._running.drawn)
        position = {"epoch": resume.epoch, "_start": resume.position, "_planned_for": resume.planned_for}
        return self.__dict__ | position | {"_plans": {}, "_running": None}

    def __repr__(self) -> str:
        return f"BatchSampler({self.planner!r}, rank={self.rank}, world_size={self.world_size}, epoch={self.epoch})"


def scale_budget(planner: Planner, factor: float) -> Planner:
    """Return a planner of `factor` times the budget (`max_tokens`, or the `capacity` of packs)."""
    if not 0 < factor < float("inf"):
        raise LengthwiseError(f"factor is {factor!r}, but must be a positive number, as 0.5 for half the tokens")
    layout: Any = planner.layout
    name = "max_tokens" if hasattr(layout, "max_tokens") else "capacity"
    return planner.replace(layout=replace(layout, **{name: max(1, int(getattr(layout, name) * factor))}))


def _triples(plan: Plan, start: int, stop: int) -> list[tuple[int, int, int]]:
    """Return a batch as (sample, first token, end token)."""
    indices = plan.indices[start:stop]
    if plan.segments is None:
        ends = plan.planner.lengths[indices].tolist()
        return [(index, 0, end) for index, end in zip(indices.tolist(), ends, strict=True)]
    firsts, ends = plan.segments[start:stop].T.tolist()
    return [*zip(indices.tolist(), firsts, ends, strict=True)]


class _Running:
    """The iteration that was started last, or that drew last."""

    __slots__ = ("deal", "drawn", "resume")

    def __init__(self) -> None:
        self.deal: Deal | None = None
        self.drawn = 0
        self.resume = Resume(0, Position(), 1)
