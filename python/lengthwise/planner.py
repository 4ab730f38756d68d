"""Plans for every epoch of a training run, from the lengths alone."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, get_args

from lengthwise import _core
from lengthwise._arrays import as_lengths
from lengthwise._choices import as_choice
from lengthwise._integers import as_integer
from lengthwise.layouts import Layout, Settings
from lengthwise.plan import Plan

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from lengthwise._arrays import Lengths

Overlong = Literal["error", "drop", "truncate", "split", "alone"]
Remainder = Literal["split", "repeat", "drop"]


class Planner:
    """Plans epochs: each plan is a pure function of (lengths, layout, settings, epoch).

    Args:
        lengths: integers[n], in tokens; read, never changed, and not copied where they are uint16, uint32 or int32.
            They must not change while the planner is used.
        layout: `Padded` or `Packed`.
        seed: names the random bits, from 0 to 2**64 - 1.
        world_size: how many ranks share each plan.
        overlong: what to do with samples that fit no batch: "error", "drop", "truncate" to the limit, "split" into
            pieces, or "alone" in a batch of their own beyond the budget.
        remainder: what to do with batches that do not divide by `world_size`: "split" cuts some batches in two, so that
            no sample is lost or repeated, "repeat" runs the first batches again, "drop" leaves the last ones out.
        threads: how many threads plan; the plan does not depend on it.

    Raises:
        LengthwiseError: anything that cannot be planned; the message names the argument, the value and the limit.

    Cost: one or two passes over the lengths, about 2 ns a sample.

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
        threads: int = 1,
    ) -> None:
        as_choice(overlong, "overlong", get_args(Overlong))
        as_choice(remainder, "remainder", get_args(Remainder))
        self.seed = as_integer(seed, "seed", 0, 2**64 - 1)
        self.world_size = as_integer(world_size, "world_size", 1, 2**31 - 1)
        self.threads = as_integer(threads, "threads", 1, 4096)
        self.overlong = overlong
        self.remainder = remainder
        self.layout = layout
        self.lengths: Lengths = as_lengths(lengths)
        settings = Settings(self.seed, self.world_size, overlong, remainder, self.threads)
        self._ready = layout.prepare(self.lengths, settings)

    @property
    def boundaries(self) -> npt.NDArray[np.uint32] | None:
        """uint32[k]: the bucket boundaries in use, given or chosen; None where the layout has no buckets."""
        return self._ready.boundaries

    @cached_property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that tell these lengths from others, whatever integers store them."""
        return _core.fingerprint(self.lengths)

    @property
    def config(self) -> dict[str, Any]:
        """Everything that decides a plan beside the lengths and the epoch, as plain values.

        Boundaries that the planner chose are written out: the same plan can be made again without choosing them again.
        """
        layout = self.layout.config
        if self.boundaries is not None:
            layout["boundaries"] = self.boundaries.tolist()
        return {
            **layout,
            "seed": self.seed,
            "world_size": self.world_size,
            "overlong": self.overlong,
            "remainder": self.remainder,
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
        settings = ("lengths", "layout", "seed", "world_size", "overlong", "remainder", "threads")
        return {name: getattr(self, name) for name in settings}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the arguments: what is made ready from them is made again."""
        return partial(type(self), **self._arguments()), ()

    def plan(self, epoch: int = 0) -> Plan:
        """Plan one epoch of all ranks.

        Args:
            epoch: from 0 to 2**64 - 1. Seed 1, epoch 0 has nothing in common with seed 0, epoch 1.

        Raises:
            LengthwiseError: the epoch is out of range, or has fewer samples than ranks.

        Cost: a few nanoseconds a sample.

        Example:
            >>> import lengthwise as lw
            >>> plan = lw.Planner(range(1, 101), lw.Padded(200), world_size=4).plan(epoch=3)
            >>> len(plan) == 4 * plan.steps
            True
        """
        epoch = as_integer(epoch, "epoch", 0, 2**64 - 1)
        return Plan(self._ready.plan(self.lengths, epoch), epoch=epoch, planner=self)

    def __repr__(self) -> str:
        return f"<Planner of {self.lengths.size:,} samples for {self.world_size} ranks: {self.layout}>"
