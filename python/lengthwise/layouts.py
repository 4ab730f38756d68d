"""How samples become rows: value objects that a `Planner` turns into plans."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np

from lengthwise import _core
from lengthwise._core import LengthwiseError

if TYPE_CHECKING:
    import numpy.typing as npt

    from lengthwise._arrays import Lengths

#: Buckets of a bucketed plan with `boundaries=None`: torch's compiler recompiles at most 8 shapes by default.
DEFAULT_BUCKETS = 8


class PlanArrays(NamedTuple):
    """What a layout plans for one epoch: see `Plan` for what each array is."""

    indices: npt.NDArray[np.uint32] | npt.NDArray[np.uint64]
    starts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.uint32]
    padded_lengths: npt.NDArray[np.uint32]
    segments: npt.NDArray[np.uint32] | None
    accounts: dict[str, int]


class Settings(NamedTuple):
    """What a planner decides for every layout."""

    seed: int
    world_size: int
    overlong: str
    remainder: str
    threads: int


class EpochPlanner(Protocol):
    """A layout made ready for one set of lengths."""

    @property
    def boundaries(self) -> npt.NDArray[np.uint32] | None:
        """uint32[k], or None where the layout has no buckets."""

    def plan(self, lengths: Lengths, epoch: int) -> PlanArrays:
        """Plan one epoch of all ranks."""


class Layout(Protocol):
    """What `Planner` asks of a layout."""

    @property
    def config(self) -> dict[str, Any]:
        """The layout as plain values, the same on every machine."""

    def prepare(self, lengths: Lengths, settings: Settings) -> EpochPlanner:
        """Look at the lengths once and check everything that can be wrong."""

    def batch_tokens(
        self, sizes: npt.NDArray[np.uint32], padded_lengths: npt.NDArray[np.uint32]
    ) -> npt.NDArray[np.uint64]:
        """Padded tokens of each batch."""


@dataclass(frozen=True, eq=False)
class Padded:
    """Batches of samples padded to one length, under a budget of padded tokens.

    Args:
        max_tokens: the budget: the most padded tokens in a batch. A hard limit.
        boundaries: inclusive upper bounds of the buckets, an array, or how many optimal buckets to use, or "auto" to
            choose their number too, or None for 8 optimal buckets. Only `order="bucketed"` and `pad_to="boundary"`
            use them.
        max_samples: the most samples in a batch.
        multiple_of: padded lengths are rounded up to a multiple of this.
        samples_multiple_of: batch sizes are multiples of this, or less than it where fewer samples fit or are left.
        pad_to: "longest" pads to the longest sample of the batch, "boundary" to the upper bound of the bucket: at most
            one padded length, and one full batch size, for each bucket.
        order: "bucketed" shuffles inside buckets, fills batches, and shuffles the batches; "shuffled" shuffles all
            samples together; "sorted" makes the same batches of similar lengths every epoch and shuffles only them.

    Example:
        >>> Padded(65_536, boundaries=[1024, 8192]).batch_size(1024)
        64
    """

    max_tokens: int
    _: KW_ONLY
    boundaries: Any = None
    max_samples: int | None = None
    multiple_of: int = 1
    samples_multiple_of: int = 1
    pad_to: Literal["longest", "boundary"] = "longest"
    order: Literal["bucketed", "shuffled", "sorted"] = "bucketed"

    @property
    def config(self) -> dict[str, Any]:
        """The layout as plain values: numbers, strings, lists and None."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if not isinstance(self.boundaries, (int, str, type(None))):
            values["boundaries"] = np.asarray(self.boundaries).tolist()
        return {"layout": "padded", **values}

    def batch_size(self, padded_length: int) -> int:
        """Return how many samples of one padded length a full batch holds."""
        rows = max(self.max_tokens // max(padded_length, 1), 1)
        rows = rows if self.max_samples is None else min(rows, self.max_samples)
        return rows if rows < self.samples_multiple_of else rows - rows % self.samples_multiple_of

    def prepare(self, lengths: Lengths, settings: Settings) -> EpochPlanner:
        """Look at the lengths once and check everything that can be wrong."""
        return _PaddedPlanner(self, lengths, settings)

    def batch_tokens(
        self, sizes: npt.NDArray[np.uint32], padded_lengths: npt.NDArray[np.uint32]
    ) -> npt.NDArray[np.uint64]:
        """Padded tokens of each batch."""
        return np.multiply(sizes, padded_lengths, dtype=np.uint64)


class _PaddedPlanner:
    """`Padded` made ready for one set of lengths."""

    def __init__(self, layout: Padded, lengths: Lengths, settings: Settings) -> None:
        self.boundaries = _boundaries(layout, lengths)
        self._core = _core.PaddedPlanner(
            lengths,
            boundaries=self.boundaries,
            max_tokens=layout.max_tokens,
            max_samples=2**32 - 1 if layout.max_samples is None else layout.max_samples,
            multiple_of=layout.multiple_of,
            samples_multiple_of=layout.samples_multiple_of,
            pad_to=layout.pad_to,
            order=layout.order,
            seed=settings.seed,
            world_size=settings.world_size,
            overlong=settings.overlong,
            remainder=settings.remainder,
        )

    def plan(self, lengths: Lengths, epoch: int) -> PlanArrays:
        return PlanArrays(*self._core.plan(lengths, epoch))


def _boundaries(layout: Padded, lengths: Lengths) -> npt.NDArray[np.uint32]:
    if lengths.size == 0:
        raise LengthwiseError("lengths is empty, but a plan needs at least one sample")
    if layout.boundaries is None and layout.order != "bucketed":
        return np.array([max(int(lengths.max()), 1)], dtype=np.uint32)
    if layout.boundaries is None or isinstance(layout.boundaries, int):
        buckets = DEFAULT_BUCKETS if layout.boundaries is None else layout.boundaries
        quantiles = np.quantile(lengths, np.arange(1, buckets + 1) / buckets, method="higher")
        return np.unique(np.maximum(quantiles, 1)).astype(np.uint32)
    return np.ascontiguousarray(layout.boundaries, dtype=np.uint32)
