"""Packs as a layout: rows of samples laid end to end, fresh every epoch."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from lengthwise import _core
from lengthwise._arrays import MAX_LENGTH
from lengthwise._integers import as_integer
from lengthwise.layouts import EpochPlanner, PlanArrays, Settings
from lengthwise.packing import NO_CAP, PackMethod, as_work, one_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from lengthwise._arrays import Lengths


@dataclass(frozen=True)
class Packed:
    """Rows of samples laid end to end, of `capacity` tokens each: a batch of the plan is one pack.

    Which sizes share a pack is decided once. Every epoch draws anew which sample takes which place of its size, so that
    the packs hold other samples at unchanged efficiency, and shuffles the packs. See `pack` for methods and limits.

    Args:
        capacity: the most tokens in a pack. A hard limit.
        method: how the packs are decided.
        time_limit: about how many seconds "optimal" and "auto" may take, once; a limit of work, the same everywhere.
        max_samples: the most samples in a pack.
        multiple_of: every sample occupies a multiple of this many tokens.
        pad_to: what `padded_lengths` of the plan say: "capacity", one shape for all rows, or "fill", what the samples
            of the pack occupy.

    Over-long samples are settled by the planner: "error", "drop", "truncate" or "split"; never "alone", for no pack
    exceeds its capacity. Where packs do not divide by the ranks, `remainder="split"` cuts those with the most samples
    in two.

    Example:
        >>> import lengthwise as lw
        >>> planner = lw.Planner([5, 4, 3, 7, 6], lw.Packed(8), world_size=2)
        >>> plan = planner.plan(epoch=0)
        >>> sorted(sorted(pack.tolist()) for pack in plan), plan.padded_lengths.tolist()
        ([[0, 2], [1], [3], [4]], [8, 8, 8, 8])
    """

    capacity: int
    _: KW_ONLY
    method: PackMethod = "best_fit"
    max_samples: int | None = None
    multiple_of: int = 1
    pad_to: Literal["capacity", "fill"] = "capacity"
    time_limit: float = 10.0

    @property
    def config(self) -> dict[str, Any]:
        """The layout as plain values: numbers, strings and None."""
        return {"layout": "packed", **{field.name: getattr(self, field.name) for field in fields(self)}}

    def prepare(self, lengths: Lengths, settings: Settings) -> EpochPlanner:
        """Decide the packs, and check everything that can be wrong."""
        return _PackedPlanner(self, lengths, settings)

    def batch_tokens(
        self, sizes: npt.NDArray[np.uint32], padded_lengths: npt.NDArray[np.uint32]
    ) -> npt.NDArray[np.uint64]:
        """Padded tokens of each pack: it is one row."""
        del sizes
        return padded_lengths.astype(np.uint64)

    def batch_squares(self, batches: Any, lengths: Lengths) -> npt.NDArray[np.float64]:
        """float64[b]: the sum of squared lengths of each pack: its samples do not see each other."""
        segments = batches.segments
        used = lengths[batches.indices] if segments is None else segments[:, 1] - segments[:, 0]
        before = np.concatenate([[0.0], np.cumsum(used.astype(np.float64) ** 2)])
        squares: npt.NDArray[np.float64] = before[batches.starts + batches.sizes] - before[batches.starts]
        return squares


class _PackedPlanner:
    """`Packed` made ready for one set of lengths."""

    boundaries = None

    def __init__(self, layout: Packed, lengths: Lengths, settings: Settings) -> None:
        capacity = as_integer(layout.capacity, "capacity", 1, MAX_LENGTH, "pass the tokens of one row")
        cap = layout.max_samples
        self._core = _core.PackedPlanner(
            lengths,
            capacity=capacity,
            method=one_of(layout.method, "method", get_args(PackMethod)),
            max_samples=NO_CAP if cap is None else as_integer(cap, "max_samples", 1, NO_CAP - 1, "or None"),
            multiple_of=as_integer(layout.multiple_of, "multiple_of", 1, capacity, "pass 1 for no alignment"),
            work=as_work(layout.time_limit),
            pad_to=one_of(layout.pad_to, "pad_to", ("capacity", "fill")),
            seed=settings.seed,
            world_size=settings.world_size,
            overlong=settings.overlong,
            remainder=settings.remainder,
        )

    def plan(self, lengths: Lengths, epoch: int) -> PlanArrays:
        return PlanArrays(*self._core.plan(lengths, epoch))
