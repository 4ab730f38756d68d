"""Plans for every epoch of a training run, from the lengths alone."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from lengthwise import _core
from lengthwise._choices import as_choice
from lengthwise._core import LengthwiseError
from lengthwise._integers import as_integer
from lengthwise._mapped import MappedLengths
from lengthwise.layouts import Layout, Settings
from lengthwise.plan import Plan
from lengthwise.steps import Steps, StepsChoice

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from lengthwise._arrays import Lengths

Overlong = Literal["error", "drop", "truncate", "split", "alone"]
Remainder = Literal["split", "repeat", "drop"]

#: The arguments of a planner beside the layout that decide its plans, as `Planner.config` names them.
SETTINGS: Final = ("seed", "world_size", "overlong", "remainder", "accumulate", "steps", "cost", "rank_speed")
#: The most batches in a step, of all ranks: an epoch has at least as many, however few samples it repeats.
MAX_STEP: Final = 2**24


class Planner:
    """Plans epochs: each plan is a pure function of (lengths, layout, settings, epoch).

    Args:
        lengths: integers[n] ([n, 2] for `PaddedPairs`), in tokens; read, never changed, and not copied where they are
            uint16, uint32 or int32. They must not change while the planner is used.
        layout: `Padded`, `PaddedPairs` or `Packed`.
        seed: names the random bits, from 0 to 2**64 - 1.
        world_size: how many ranks share each plan.
        overlong: what to do with samples that fit no batch: "error", "drop", "truncate" to the limit, "split" into
            pieces, or "alone" in a batch of their own beyond the budget.
        remainder: what to do with batches that do not divide by `world_size`: "split" cuts some batches in two, so that
            no sample is lost or repeated, "repeat" runs the first batches again, "drop" leaves the last ones out.
        accumulate: how many batches each rank runs in a step, for gradient accumulation: the number of batches divides
            by `world_size * accumulate`, and ranks have equal work over the whole step.
        steps: how the batches of a step are chosen.

            - "stratified": every step gets the mean length of the epoch, as nearly as its batches allow: batches of all
              lengths in every step. The default.
            - "windowed": the ranks of a step get batches of similar cost: windows of 16 steps (or of n:
              `("windowed", n)`) are sorted by cost. Of the time, ranks wait at most
              (largest - smallest cost) / (n * mean). The default of packs where `cost` counts attention and
              `accumulate` is 1.
            - "same_shape": the ranks of a step get batches of one padded length, for compiled models; `remainder` is
              settled length by length. Needs `pad_to="boundary"`.
            - "routed": stratified, and rank 0 always gets the shortest samples of a step, the last rank the longest.
            - "shuffled": as the dice fall. The default of one batch a step, and of `order="shuffled"`.

            Steps run in a random order in which the mean length of one does not tell that of the next.
        cost: what a batch costs a rank: `cost[0]` for every padded token and `cost[1]` for every squared length
            (attention). In a transformer of width h, (1, 1 / (6 * h)) counts floating-point operations;
            `SpeedModel.fit` finds `per_token` and `per_square` from timings.
        rank_speed: how fast each rank is, relative to the others: the costliest batches of a step go to the fastest.
        threads: how many threads plan; the plan does not depend on it.

    Raises:
        LengthwiseError: anything that cannot be planned; the message names the argument, the value and the limit.

    Cost: one or two passes over the lengths, about 2 ns a sample; and 2 ms to choose boundaries for batches padded to
    their longest sample, 0.2 ms for fixed shapes. A planner keeps the memory of a plan that was dropped for the next
    one, 4 bytes a sample, and 4 more with several threads: fresh memory would cost a tenth of the time.

    Example:
        >>> import lengthwise as lw
        >>> planner = lw.Planner([3, 9, 4, 8, 2], lw.Padded(18, boundaries=[4, 9]), seed=0)
        >>> plan = planner.plan(epoch=0)
        >>> sorted(sorted(batch.tolist()) for batch in plan)
        [[0, 2, 4], [1, 3]]
    """

    def __init__(
        self,
        lengths: Any,
        layout: Layout,
        *,
        seed: int = 0,
        world_size: int = 1,
        overlong: Overlong = "error",
        remainder: Remainder = "split",
        accumulate: int = 1,
        steps: StepsChoice = "auto",
        cost: tuple[float, float] = (1.0, 0.0),
        rank_speed: Sequence[float] | None = None,
        threads: int = 1,
    ) -> None:
        if isinstance(layout, type) or not hasattr(layout, "prepare"):
            raise LengthwiseError(f"layout is {layout!r:.60}, but must be Padded, PaddedPairs or Packed, with a budget")
        as_choice(overlong, "overlong", get_args(Overlong))
        as_choice(remainder, "remainder", get_args(Remainder))
        self.seed = as_integer(seed, "seed", 0, 2**64 - 1)
        self.world_size = as_integer(world_size, "world_size", 1, MAX_STEP)
        self.threads = as_integer(threads, "threads", 1, 4096)
        self.overlong = overlong
        self.remainder = remainder
        self.layout = layout
        self.lengths: Lengths = layout.as_lengths(lengths)
        self.accumulate = as_integer(accumulate, "accumulate", 1, MAX_STEP // self.world_size)
        self.steps = steps
        self.cost = cost
        self.rank_speed = rank_speed
        self.step_maker = Steps.of(
            steps,
            layout=layout,
            world_size=self.world_size,
            accumulate=self.accumulate,
            cost=cost,
            rank_speed=rank_speed,
        )
        count_tokens = self.step_maker.by_tokens
        settings = Settings(self.seed, *self.step_maker.whole, overlong, remainder, self.threads, count_tokens)
        self._ready = layout.prepare(self.lengths, settings)

    def __setattr__(self, name: str, value: Any) -> None:
        if "_ready" in self.__dict__ and name in ("lengths", "layout", "threads", *SETTINGS):
            raise LengthwiseError(f"{name} of a planner cannot be changed; planner.replace({name}=...) makes another")
        super().__setattr__(name, value)

    @property
    def boundaries(self) -> npt.NDArray[np.uint32] | None:
        """uint32[k]: the bucket boundaries in use, given or chosen; None where the layout has no buckets.

        For pairs, uint32[k, 2]: the bounds of the cells, the cheapest first: a sample is of the first that holds it.
        """
        return self._ready.boundaries

    @cached_property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that tell these lengths from others, whatever integers store them."""
        return _core.fingerprint(self.lengths.ravel())

    @cached_property
    def sample_tokens(self) -> Lengths:
        """[n]: the tokens of each sample: its length, or both of its lengths together."""
        return self.layout.sample_tokens(self.lengths)

    @property
    def config(self) -> dict[str, Any]:
        """Everything that decides a plan beside the lengths and the epoch, as plain values.

        Boundaries that the planner chose are written out: the same plan can be made again without choosing them again.
        """
        layout = self.layout.config
        if self.boundaries is not None:
            layout["boundaries" if self.boundaries.ndim == 1 else "cells"] = self.boundaries.tolist()
        return {
            **layout,
            "seed": self.seed,
            "world_size": self.world_size,
            "overlong": self.overlong,
            "remainder": self.remainder,
            "accumulate": self.accumulate,
            "steps": self.steps if isinstance(self.steps, str) else [self.steps[0], int(self.steps[1])],
            "cost": [float(coefficient) for coefficient in self.cost],
            "rank_speed": None if self.rank_speed is None else [float(speed) for speed in self.rank_speed],
        }

    def replace(self, **changes: Any) -> Planner:
        """Return a planner made with some arguments changed; the lengths are shared.

        Example:
            >>> import lengthwise as lw
            >>> planner = lw.Planner([3, 9, 4, 8], lw.Padded(max_tokens=18), seed=5)
            >>> other = planner.replace(world_size=2)
            >>> other.seed, other.world_size
            (5, 2)
        """
        return type(self)(**(self._arguments() | changes))

    def _arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("lengths", "layout", "threads", *SETTINGS)}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the arguments: what is made ready from them is made again, and a mapped file is mapped again."""
        arguments = self._arguments()
        arguments["lengths"] = MappedLengths.of(self.lengths, self.fingerprint)
        return partial(type(self), **arguments), ()

    def __deepcopy__(self, memo: dict[int, Any]) -> Planner:
        return self  # nothing of it changes

    def plan(self, epoch: int = 0) -> Plan:
        """Plan one epoch of all ranks.

        Args:
            epoch: from 0 to 2**63 - 1. Seed 1, epoch 0 has nothing in common with seed 0, epoch 1.

        Raises:
            LengthwiseError: the epoch is out of range, or has fewer samples than ranks.

        Cost: 3 to 9 ns a sample. While it runs, 6 bytes a sample (10 with several threads); the plan has 4 of them.

        Example:
            >>> import lengthwise as lw
            >>> plan = lw.Planner(range(1, 101), lw.Padded(200), world_size=4).plan(epoch=3)
            >>> len(plan) == 4 * plan.steps
            True
        """
        epoch = as_integer(epoch, "epoch", 0, 2**63 - 1)
        arrays = self.step_maker.arrange(
            self._ready.plan(self.lengths, epoch),
            layout=self.layout,
            lengths=self.sample_tokens,
            seed=self.seed,
            epoch=epoch,
            remainder=self.remainder,
        )
        return Plan(arrays, epoch=epoch, planner=self)

    def __repr__(self) -> str:
        return f"<Planner of {len(self.lengths):,} samples for {self.world_size} ranks: {self.layout}>"
