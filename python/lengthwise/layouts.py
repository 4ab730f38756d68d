"""How samples become rows: value objects that a `Planner` turns into plans."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, get_args

import numpy as np

from lengthwise import _core
from lengthwise._arrays import MAX_LENGTH, as_lengths
from lengthwise._choices import as_choice, as_flag
from lengthwise._core import LengthwiseError
from lengthwise._integers import as_integer
from lengthwise.boundaries import Auto, BoundarySolution, longest_boundaries, optimal_boundaries
from lengthwise.histogram import Histogram

if TYPE_CHECKING:
    import numpy.typing as npt

    from lengthwise._arrays import Lengths

PadTo = Literal["longest", "boundary"]
Order = Literal["bucketed", "shuffled", "sorted"]
LastBatch = Literal["keep", "merge", "drop"]

#: Buckets of a bucketed plan with `boundaries=None`: torch's compiler recompiles at most 8 shapes by default.
DEFAULT_BUCKETS: Final = 8
UNLIMITED: Final = 2**32 - 1


class PlanArrays(NamedTuple):
    """What a layout plans for one epoch: see `Plan` for what each array is."""

    indices: npt.NDArray[np.uint32] | npt.NDArray[np.uint64]
    starts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.uint32]
    padded_lengths: npt.NDArray[np.uint32]
    segments: npt.NDArray[np.uint32] | None
    accounts: dict[str, int]
    #: uint64[b]: the tokens of each batch without padding, where they are counted.
    real_tokens: npt.NDArray[np.uint64] | None = None


class Settings(NamedTuple):
    """What a planner decides for every layout."""

    seed: int
    world_size: int
    accumulate: int
    overlong: str
    remainder: str
    threads: int
    count_tokens: bool


class EpochPlanner(Protocol):
    """A layout made ready for one set of lengths."""

    @property
    def boundaries(self) -> npt.NDArray[np.uint32] | None:
        """uint32[k], uint32[k, 2] for pairs, or None where the layout has no buckets."""

    def plan(self, lengths: Lengths, epoch: int) -> PlanArrays:
        """Plan one epoch of all ranks."""


class Layout(Protocol):
    """What `Planner` asks of a layout."""

    def as_lengths(self, lengths: Any) -> Lengths:
        """Check lengths as the user gave them: [n], or [n, 2] for a layout of pairs."""

    def sample_tokens(self, lengths: Lengths) -> Lengths:
        """[n]: the tokens of each sample."""

    @property
    def config(self) -> dict[str, Any]:
        """The layout as plain values, the same on every machine: "layout" names it, the rest are its arguments."""

    def prepare(self, lengths: Lengths, settings: Settings) -> EpochPlanner:
        """Look at the lengths once and check everything that can be wrong."""

    def batch_tokens(
        self, sizes: npt.NDArray[np.uint32], padded_lengths: npt.NDArray[np.uint32]
    ) -> npt.NDArray[np.uint64]:
        """Padded tokens of each batch."""

    def batch_squares(self, batches: Any, lengths: Lengths) -> npt.NDArray[np.float64]:
        """float64[b]: the sum of squared lengths of each batch, as attention sees them."""


class OneLength:
    """A layout of samples with one length each."""

    def as_lengths(self, lengths: Any) -> Lengths:
        """Return lengths as this layout takes them: integers[n]."""
        return as_lengths(lengths)

    def sample_tokens(self, lengths: Lengths) -> Lengths:
        """[n]: the tokens of each sample: its length."""
        return lengths


@dataclass(frozen=True)
class Padded(OneLength):
    """Batches of samples padded to one length, under a budget of padded tokens.

    Args:
        max_tokens: the budget: the most padded tokens in a batch, after rounding. A hard limit.
        boundaries: inclusive upper bounds of the buckets, or how many buckets to use (fewer where there are fewer
            distinct lengths), or "auto" or `Auto` to choose their number too, or None for 8 buckets (one bucket unless
            `order="bucketed"`). Chosen bounds are the cheapest for the way of padding: the optimum of
            `optimal_boundaries` for `pad_to="boundary"`, and for "longest" bounds within 0.1 % of its objective
            "longest", which takes far longer. Samples longer than the last bound are over-long.
        max_samples: the most samples in a batch.
        multiple_of: padded lengths are rounded up to a multiple of this.
        samples_multiple_of: batch sizes are multiples of this, or less than it where fewer samples fit or are left.
        pad_to: "longest" pads to the longest sample of the batch; "boundary" to the upper bound of the bucket, so
            that a bucket has one padded length and one full batch size (`batch_size` tells it), for compilers and CUDA
            graphs.
        order: "bucketed" shuffles inside buckets, fills batches, and shuffles the batches; "shuffled" shuffles all
            samples together; "sorted" makes the same batches of similar lengths every epoch and shuffles only them.
        last_batch: what happens to the last batch of a bucket when more samples would fit: "keep" it, "merge" its
            samples into the next longer bucket, or "drop" them. With "drop" and `remainder="drop"` every batch is full.
        longest_first: whether the step with the longest batch comes first, so that what does not fit the memory fails
            at once, not after hours.

    Raises:
        LengthwiseError: an argument of the wrong type or out of range, by name.

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
    pad_to: PadTo = "longest"
    order: Order = "bucketed"
    last_batch: LastBatch = "keep"
    longest_first: bool = True

    def __post_init__(self) -> None:
        set_integers(self, max_tokens=2**63 - 1, max_samples=UNLIMITED, samples_multiple_of=UNLIMITED)
        set_integers(self, multiple_of=MAX_LENGTH)
        for name, choices in (("pad_to", PadTo), ("order", Order), ("last_batch", LastBatch)):
            as_choice(getattr(self, name), name, get_args(choices))
        as_flag(self.longest_first, "longest_first")
        object.__setattr__(self, "boundaries", _as_boundaries(self.boundaries))

    @property
    def config(self) -> dict[str, Any]:
        """The layout as plain values: numbers, strings, lists and None."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if isinstance(self.boundaries, Auto):
            values["boundaries"] = {"overhead": self.boundaries.overhead}
        return {"layout": "padded", **values}

    def batch_size(self, padded_length: int) -> int:
        """Return how many samples of one padded length a full batch holds."""
        return full_batch(self, padded_length)

    def prepare(self, lengths: Lengths, settings: Settings) -> EpochPlanner:
        """Look at the lengths once and check everything that can be wrong."""
        return _PaddedPlanner(self, lengths, settings)

    def batch_tokens(
        self, sizes: npt.NDArray[np.uint32], padded_lengths: npt.NDArray[np.uint32]
    ) -> npt.NDArray[np.uint64]:
        """Padded tokens of each batch."""
        return np.multiply(sizes, padded_lengths, dtype=np.uint64)

    def batch_squares(self, batches: Any, lengths: Lengths) -> npt.NDArray[np.float64]:
        """float64[b]: the sum of squared lengths of each batch: attention computes the padding too."""
        del lengths
        squares: npt.NDArray[np.float64] = batches.sizes * batches.padded_lengths.astype(np.float64) ** 2
        return squares


def set_integers(layout: Any, **highs: int) -> None:
    """Make fields of a frozen layout plain integers from 1 to the highest that is given; None stays."""
    for name, high in highs.items():
        value = getattr(layout, name)
        if value is not None or name != "max_samples":
            object.__setattr__(layout, name, as_integer(value, name, 1, high))


def full_batch(layout: Any, tokens: int) -> int:
    """Return how many samples of so many padded tokens each a full batch of `layout` holds."""
    rows = max(layout.max_tokens // max(tokens, 1), 1)
    rows = rows if layout.max_samples is None else min(rows, layout.max_samples)
    return int(rows if rows < layout.samples_multiple_of else rows - rows % layout.samples_multiple_of)


def _as_boundaries(boundaries: Any) -> Any:
    """Boundaries as a value that compares, hashes and prints: a tuple, a number, "auto", `Auto` or None."""
    if isinstance(boundaries, BoundarySolution):
        boundaries = boundaries.boundaries
    automatic = isinstance(boundaries, Auto) or (isinstance(boundaries, str) and boundaries == "auto")
    if boundaries is None or automatic:
        return boundaries
    array = boundaries if isinstance(boundaries, (list, tuple, range)) else np.asarray(boundaries)
    if isinstance(array, np.ndarray) and array.ndim == 0:
        return as_integer(boundaries, "boundaries", 1, 2**15, 'or ascending upper bounds, "auto" or Auto')
    return tuple(as_lengths(array, "boundaries").tolist())


class _PaddedPlanner:
    """`Padded` made ready for one set of lengths."""

    def __init__(self, layout: Padded, lengths: Lengths, settings: Settings) -> None:
        self.boundaries = _boundaries(layout, lengths, settings.overlong)
        self._core = _core.PaddedPlanner(
            lengths,
            boundaries=self.boundaries,
            max_tokens=layout.max_tokens,
            max_samples=UNLIMITED if layout.max_samples is None else layout.max_samples,
            multiple_of=layout.multiple_of,
            samples_multiple_of=layout.samples_multiple_of,
            pad_to=layout.pad_to,
            order=layout.order,
            last_batch=layout.last_batch,
            longest_first=layout.longest_first,
            **settings._asdict(),
        )

    def plan(self, lengths: Lengths, epoch: int) -> PlanArrays:
        return PlanArrays(*self._core.plan(lengths, epoch))


def _boundaries(layout: Padded, lengths: Lengths, overlong: str) -> npt.NDArray[np.uint32]:
    """The bounds in use; where the layout leaves the choice, the optimal ones over the lengths that fit a batch."""
    if isinstance(layout.boundaries, tuple):
        return np.array(layout.boundaries, dtype=np.uint32)
    if lengths.size == 0:
        raise LengthwiseError("lengths is empty, but a plan needs at least one sample")
    longest = min(layout.max_tokens, MAX_LENGTH)
    longest = max(longest - longest % layout.multiple_of, 1)
    if layout.boundaries is None and layout.order != "bucketed":
        return np.array([min(max(int(lengths.max()), 1), longest)], dtype=np.uint32)
    counted = Histogram.of(lengths)
    fitting = _fitting(counted, longest, overlong)
    # With an over-long sample that is an error, there is no plan: the core says which sample it is.
    if len(fitting) == 0 or (overlong == "error" and int(counted.lengths[-1]) > longest):
        return np.array([longest], dtype=np.uint32)
    k: int | Literal["auto"] | Auto = DEFAULT_BUCKETS if layout.boundaries is None else layout.boundaries
    if isinstance(k, int):
        padded = (fitting.lengths - np.uint32(1)) // np.uint32(layout.multiple_of)
        k = min(k, 1 + int(np.count_nonzero(np.diff(padded))))
    if layout.pad_to == "boundary" or layout.order != "bucketed":
        return optimal_boundaries(fitting, k, multiple_of=layout.multiple_of)
    return longest_boundaries(
        fitting,
        k,
        max_tokens=layout.max_tokens,
        max_samples=layout.max_samples,
        multiple_of=layout.multiple_of,
        samples_multiple_of=layout.samples_multiple_of,
    )


def _fitting(histogram: Histogram, longest: int, overlong: str) -> Histogram:
    """The samples that batches will hold: those of 1 to `longest` tokens, and what is cut down to that."""
    fits = (histogram.lengths <= longest) & (histogram.lengths > 0)
    fitting = Histogram(histogram.lengths[fits], histogram.counts[fits])
    cut = int(histogram.counts[histogram.lengths > longest].sum())
    if cut and overlong in ("truncate", "split"):
        fitting += Histogram(np.array([longest], np.uint32), np.array([cut], np.uint64))
    return fitting
