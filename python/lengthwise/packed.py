"""Packs as a layout: rows of samples laid end to end, fresh every epoch."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lengthwise import _core
from lengthwise._arrays import MAX_LENGTH
from lengthwise._core import LengthwiseError
from lengthwise._integers import as_integer
from lengthwise._pack_items import ItemPacks, PerSample, as_pairs, pack_items
from lengthwise.layouts import EpochPlanner, OneLength, PlanArrays, Settings
from lengthwise.packing import PackMethod, as_options, one_of
from lengthwise.summary import squared_lengths

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from lengthwise._arrays import Lengths


@dataclass(frozen=True)
class Packed(OneLength):
    """Rows of samples laid end to end, of `capacity` tokens each: a batch of the plan is one pack.

    Which sizes share a pack is decided once. Every epoch draws anew which sample takes which place of its size, so that
    the packs hold other samples at unchanged efficiency, and shuffles the packs. See `pack` for methods and limits.

    Args:
        capacity: the most tokens in a pack. A hard limit.
        method: how the packs are decided.
        time_limit: about how many seconds "optimal" and "auto" may take, once; a limit of work, the same everywhere.
        max_samples: the most samples in a pack.
        multiple_of: every sample occupies a multiple of this many tokens.
        limits: more hard limits, by name: (one count for each sample, the most in a pack); see `pack`.
        groups: integers or strings[n]: samples of one label stay together in one pack; see `pack`. Only packs of two
            groups and more are cut in two by `remainder="split"`; `steps="same_shape"`, or resuming on another number
            of ranks, may cut a group.
        pad_to: what `padded_lengths` of the plan say: "capacity", one shape for all rows, or "fill", what the samples
            of the pack occupy.

    Over-long samples are settled by the planner: "error", "drop", "truncate" or "split"; never "alone", for no pack
    exceeds its capacity. Where packs do not divide by the ranks, `remainder="split"` cuts those with the most samples
    in two.

    With `limits` or `groups`, samples or groups that take the same of every limit take each other's places. Layouts
    compare, and plans resume, by a fingerprint of the counts and labels, which must not change while they are used.

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
    limits: Mapping[str, tuple[Any, int]] | None = field(default=None, hash=False)
    groups: Any = None

    def __post_init__(self) -> None:
        if self.limits is not None:
            limits = {name: (counts, most) for name, counts, most in as_pairs(self.limits)}
            object.__setattr__(self, "limits", limits)
        if self.groups is not None:
            object.__setattr__(self, "groups", PerSample.of(self.groups, "groups"))

    @property
    def config(self) -> dict[str, Any]:
        """The layout as plain values: numbers, strings and None; fingerprints of what is given for each sample."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values = {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}
        if self.limits is not None:
            values["limits"] = {name: [counts.fingerprint, int(most)] for name, (counts, most) in self.limits.items()}
        if self.groups is not None:
            values["groups"] = self.groups.fingerprint
        return {"layout": "packed", **values}

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
        return squared_lengths(batches, lengths)


class _PackedPlanner:
    """`Packed` made ready for one set of lengths."""

    boundaries = None

    def __init__(self, layout: Packed, lengths: Lengths, settings: Settings) -> None:
        capacity = as_integer(layout.capacity, "capacity", 1, MAX_LENGTH, "pass the tokens of one row")
        options = as_options(
            capacity,
            method=layout.method,
            max_samples=layout.max_samples,
            multiple_of=layout.multiple_of,
            overlong=settings.overlong,
            time_limit=layout.time_limit,
        )
        pad_to = one_of(layout.pad_to, "pad_to", ("capacity", "fill"))
        self._items: ItemPacks | None = None
        if layout.limits or layout.groups is not None:
            self._items = packs = pack_items(
                lengths, capacity, options, limits=layout.limits, groups=layout.groups, seed=settings.seed
            )
            if lengths.size and not packs.kinds.size:
                raise LengthwiseError(f'lengths are too long for capacity={capacity}: overlong="drop" leaves nothing')
            packer = _core.Packer.given(packs.kinds, packs.indices, packs.offsets, capacity=capacity)
        else:
            packer = _core.Packer(lengths, capacity=capacity, **options)
        self._core = _core.PackedPlanner(
            packer,
            pad_to=pad_to,
            seed=settings.seed,
            world_size=settings.world_size,
            accumulate=settings.accumulate,
            remainder=settings.remainder,
            count_tokens=settings.count_tokens and self._items is None,
        )

    def plan(self, lengths: Lengths, epoch: int) -> PlanArrays:
        if self._items is None:
            return PlanArrays(*self._core.plan(lengths, epoch))
        return _expanded(self._items, PlanArrays(*self._core.plan(self._items.items.tokens.astype(np.uint32), epoch)))


def _expanded(packs: ItemPacks, plan: PlanArrays) -> PlanArrays:
    """The plan of samples that a plan of items stands for."""
    indices, before = packs.items.expand(plan.indices)
    starts = before[plan.starts]
    sizes = (before[plan.starts + plan.sizes] - starts).astype(np.uint32)
    missing = indices.size - int(sizes.sum(dtype=np.int64))
    accounts = {
        "dropped": packs.dropped.size + max(missing, 0),
        "truncated": packs.truncated,
        "repeated": max(-missing, 0),
    }
    return PlanArrays(indices, starts, sizes, plan.padded_lengths, packs.segments(indices), plan.accounts | accounts)
