"""One rank's share of a planned epoch, from any position on, for any number of ranks.

Problem: the batches of a plan that are still to be trained are dealt to W ranks, the same number to each. The plan was
made for some number of ranks; a resumed run may have another, and the position may be anywhere.

Method: batch i goes to rank (i - position) mod W. Where the batches left are no multiple of W (or fewer than a fixed
count asks for), batches near the end are cut into smaller ones until they are: nothing is lost and nothing repeated,
and a smaller batch keeps every limit that the whole one kept. Only where fewer samples than ranks are left, samples are
repeated, and counted.

An epoch that was dealt to as many ranks from its beginning is dealt on as if it had never been interrupted, batch by
batch, also among the cut ones. Any other position deals what is left anew.

Cost: O(W) and no copy where nothing is cut; else O(batches cut). Iteration turns blocks of the table into lists.

Positions are absolute: the next batch of the plan, how many of its samples were dealt already (not 0 only between the
pieces of a cut batch), and how many batches were handed out. They hold for every number of ranks.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from lengthwise.plan import Plan

    Table = npt.NDArray[np.int64]

#: Rows of the batch table that are turned into lists at once: enough to forget the cost, too few to notice the memory.
BLOCK: Final = 4096


class Position(NamedTuple):
    """Where an epoch stands, counted over all ranks."""

    batch: int = 0  # the next batch of the plan
    sample: int = 0  # samples of that batch which were dealt already
    dealt: int = 0  # batches handed out since the epoch began


class Deal:
    """The batches that one rank takes from `plan`, from `at` on.

    Args:
        plan: the epoch.
        rank: this rank, from 0 to `world_size` - 1.
        world_size: how many ranks share what is left.
        at: where the epoch stands.
        target: how many batches (over all ranks, since the epoch began) to reach at least; 0 asks for no more than the
            plan has.
    """

    @classmethod
    def resumed(cls, plan: Plan, *, rank: int, world_size: int, at: Position, target: int = 0) -> Deal:
        """Return the rest of the deal that has led to `at`, where one of the whole epoch has; else a new one."""
        whole = cls(plan, rank=rank, world_size=world_size, at=Position(), target=target)
        steps, within = divmod(at.dealt, world_size)
        if within or whole.position_after(steps) != at:
            return cls(plan, rank=rank, world_size=world_size, at=at, target=target)
        whole._done = steps
        return whole

    def __init__(self, plan: Plan, *, rank: int, world_size: int, at: Position, target: int = 0) -> None:
        self.plan = plan
        self._done = 0  # steps that were taken of this deal before
        self.at = at
        self._world_size = world_size
        left = len(plan) - at.batch
        slots = max(_round_up(left, world_size), _round_up(target - at.dealt, world_size))
        cut = _cut_count(plan, at, left, slots, world_size)
        whole = slice(at.batch + rank, len(plan) - cut, world_size)
        self._starts, self._sizes = plan.starts[whole], plan.sizes[whole]
        self._whole_steps = (left - cut) // world_size
        self._tail = _Tail(plan, at, cut, slots - (left - cut))
        self._tail_starts = self._tail.starts[rank::world_size]
        self._tail_stops = self._tail.stops[rank::world_size]

    def __len__(self) -> int:
        """Return the number of batches that this rank (and every other) still takes."""
        return self._whole_steps + len(self._tail_starts) - self._done

    @property
    def repeated(self) -> int:
        """Samples that are dealt twice because fewer samples than ranks were left; 0 in every other case."""
        return self._tail.repeated

    def blocks(self) -> Iterator[tuple[list[int], list[int]]]:
        """Yield the rank's batches as blocks of (starts, stops) into `plan.indices`."""
        for first in range(self._done, self._whole_steps, BLOCK):
            starts = self._starts[first : first + BLOCK]
            yield starts.tolist(), (starts + self._sizes[first : first + BLOCK]).tolist()
        tail = slice(max(0, self._done - self._whole_steps), None)
        if len(self._tail_starts[tail]):
            yield self._tail_starts[tail].tolist(), self._tail_stops[tail].tolist()

    def position_after(self, steps: int) -> Position:
        """Return where the epoch stands once every rank has taken the next `steps` batches."""
        steps += self._done
        dealt = steps * self._world_size
        if steps == 0:
            return self.at
        if steps < self._whole_steps or (steps == self._whole_steps and not len(self._tail_starts)):
            return Position(self.at.batch + dealt, 0, self.at.dealt + dealt)
        batch, sample = self._tail.next_after((steps - self._whole_steps) * self._world_size)
        return Position(batch, sample, self.at.dealt + dealt)


class _Tail:
    """The last `cut` batches of a plan, in `slots` pieces."""

    def __init__(self, plan: Plan, at: Position, cut: int, slots: int) -> None:
        self._end = len(plan)
        self._batches = np.arange(self._end - cut, self._end, dtype=np.int64)
        firsts = plan.starts[self._end - cut :].astype(np.int64)
        sizes = plan.sizes[self._end - cut :].astype(np.int64)
        offset = at.sample if cut and self._end - cut == at.batch else 0
        if offset:
            firsts[0] += offset
            sizes[0] -= offset
        self._offset = offset
        self.repeated = max(0, slots - int(sizes.sum())) if cut else 0
        counts = _pieces(sizes, slots - self.repeated)
        multiple = getattr(plan.planner.layout, "samples_multiple_of", 1)
        owner = np.repeat(np.arange(cut), counts)
        nth = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        unit = np.where(counts * multiple <= sizes, multiple, 1)
        begin = sizes[owner] // unit[owner] * nth // counts[owner] * unit[owner]
        stop = sizes[owner] // unit[owner] * (nth + 1) // counts[owner] * unit[owner]
        again = np.arange(self.repeated) % max(1, len(owner))
        self._owner, self._begin = owner, begin
        self.starts: Table = np.concatenate([firsts[owner] + begin, (firsts[owner] + begin)[again]])
        self.stops: Table = np.concatenate([firsts[owner] + stop, (firsts[owner] + stop)[again]])

    def next_after(self, pieces: int) -> tuple[int, int]:
        """Return (batch of the plan, samples of it already dealt) once the first `pieces` pieces were dealt."""
        if pieces >= len(self._owner):
            return self._end, 0
        owner = int(self._owner[pieces])
        return int(self._batches[owner]), int(self._begin[pieces]) + (self._offset if owner == 0 else 0)


def _round_up(count: int, multiple: int) -> int:
    return -(-max(0, count) // multiple) * multiple


def _cut_count(plan: Plan, at: Position, left: int, slots: int, world_size: int) -> int:
    """Return how many of the last batches are cut: few, but not into single samples where two halves would do."""
    if at.sample:
        return left
    extra = slots - left
    if extra == 0:
        return 0
    cut = left % world_size
    sizes = plan.sizes
    while cut <= left:
        if cut >= extra and int(sizes[len(sizes) - cut :].sum()) >= cut + extra:
            return cut
        cut += world_size
    return left


def _pieces(sizes: Table, slots: int) -> Table:
    """Return how many pieces each batch is cut into, `slots` in all: always the batch with the largest pieces next."""
    counts = np.ones(len(sizes), dtype=np.int64)
    heap: list[tuple[float, int]] = [(-float(size), index) for index, size in enumerate(sizes)]
    heapq.heapify(heap)
    for _ in range(slots - len(sizes)):
        _, index = heap[0]
        counts[index] += 1
        heapq.heapreplace(heap, (-int(sizes[index]) / int(counts[index]), index))
    return counts
