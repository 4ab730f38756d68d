"""The ways to batch that a report compares: what scripts do today, and what this library does.

Each is planned for real, by the functions that training uses, and measured alike. Two are not ours: batches of a fixed
number of samples in random order, the baseline, and batches of a fixed number sorted inside windows of 50 batches, as
`group_by_length` of Hugging Face's trainer makes them (its documented rule: a window of min(samples / 4 batches, 50)
batches, shuffled whole, sorted from long to short inside).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from lengthwise.boundaries import optimal_boundaries
from lengthwise.layouts import Padded
from lengthwise.packed import Packed
from lengthwise.packing import pack
from lengthwise.planner import Planner
from lengthwise.report.measure import Measured

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from lengthwise.histogram import Histogram
    from lengthwise.packing import PackMethod
    from lengthwise.report.model import Settings

#: The most batches in a window of the sorted-in-windows rule.
_WINDOW: Final = 50


class Planned(NamedTuple):
    """A strategy with its batches.

    Attributes:
        key: a name for programs.
        name: a name for people.
        group: "fixed", "budget", "buckets" or "packed".
        measured: its batches, as numbers.
        boundaries: of its buckets.
        lengths: the sample lengths in running order, batch after batch; kept to draw batches from.
        bound: packs that no packing goes below, where it is known.
    """

    key: str
    name: str
    group: str
    measured: Measured
    boundaries: tuple[int, ...]
    lengths: npt.NDArray[Any]
    bound: int | None = None


def planned(lengths: npt.NDArray[Any], found: Histogram, settings: Settings) -> Iterator[Planned]:
    """Yield the strategies, the baseline first.

    Args:
        lengths: uint16[n] or uint32[n], none above the budget or the capacity.
        found: the same, counted.
        settings: budget, sizes, ranks.
    """
    k = settings.buckets
    yield _fixed(lengths, settings)
    yield _windows(lengths, settings)
    yield _padded(lengths, settings, "shuffled", "budget, shuffled", "budget", order="shuffled")
    yield _padded(lengths, settings, "sorted", "budget, sorted", "budget", order="sorted")
    rules = {
        "powers": ("powers of two", powers_of_two(found)),
        "equal-count": ("equal samples", equal_shares(found, found.counts, k)),
        "equal-tokens": ("equal tokens", equal_shares(found, found.counts * found.lengths, k)),
        "optimal": ("optimal", tuple(optimal_boundaries(found, k, multiple_of=settings.multiple_of).tolist())),
    }
    for key, (rule, boundaries) in rules.items():
        name = f"{len(boundaries)} buckets, {rule}"
        yield _padded(lengths, settings, key, name, "buckets", boundaries=boundaries)
    yield _packed(lengths, settings, "next_fit")
    yield _packed(lengths, settings, "best_fit")


def _fixed(lengths: npt.NDArray[Any], settings: Settings) -> Planned:
    longest = _aligned(int(lengths.max()), settings.multiple_of)
    name = f"batches of {settings.batch_size:,}, shuffled"
    return _padded(
        lengths,
        settings,
        "fixed",
        name,
        "fixed",
        order="shuffled",
        max_tokens=max(longest, 1) * settings.batch_size,
        max_samples=settings.batch_size,
    )


def _windows(lengths: npt.NDArray[Any], settings: Settings) -> Planned:
    size = settings.batch_size
    window = max(min(len(lengths) // (size * 4), _WINDOW), 1) * size
    longest = int(lengths.max())
    shuffled = np.random.default_rng(0).permutation(lengths).astype(np.int64)
    # One sort does all windows: the window counts first, then the length from long to short.
    order = np.sort((np.arange(len(lengths)) // window) << 32 | (longest - shuffled))
    ordered = longest - (order & 0xFFFFFFFF)
    starts = np.arange(0, len(ordered), size)
    sizes = np.minimum(size, len(ordered) - starts)
    widths = _aligned(np.maximum(np.maximum.reduceat(ordered, starts), 1), settings.multiple_of)
    measured = Measured.padded_batches(ordered, sizes, widths)
    return Planned("windows", f"batches of {size:,}, in windows", "fixed", measured, (), ordered)


def _padded(lengths: npt.NDArray[Any], settings: Settings, key: str, name: str, group: str, **layout: Any) -> Planned:
    layout = {"max_tokens": settings.max_tokens, "multiple_of": settings.multiple_of, **layout}
    planner = Planner(lengths, Padded(**layout), seed=0, world_size=settings.world_size)
    plan = planner.plan(epoch=0)
    ordered = lengths[plan.indices[consecutive(plan.starts, plan.sizes.astype(np.int64))]]
    measured = Measured.padded_batches(ordered, plan.sizes, plan.padded_lengths)
    return Planned(key, name, group, measured, tuple(layout.get("boundaries", ())), ordered)


def _packed(lengths: npt.NDArray[Any], settings: Settings, method: PackMethod) -> Planned:
    bound = pack(lengths, settings.capacity).lower_bound if method == "best_fit" else None
    planner = Planner(lengths, Packed(settings.capacity, method=method), seed=0, world_size=settings.world_size)
    plan = planner.plan(epoch=0)
    ordered = lengths[plan.indices[consecutive(plan.starts, plan.sizes.astype(np.int64))]]
    measured = Measured.packs(ordered, plan.sizes, settings.capacity)
    name = method.replace("_", " ")
    return Planned(name.replace(" ", "-"), f"packed, {name}", "packed", measured, (), ordered, bound)


def consecutive(starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the positions of groups one after another: sizes[i] of them from starts[i] on.

    Example:
        >>> consecutive(np.array([7, 2]), np.array([2, 3]))
        array([7, 8, 2, 3, 4])
    """
    before = np.cumsum(sizes) - sizes
    positions = np.arange(int(sizes.sum()), dtype=np.int64)
    positions += np.repeat(starts - before, sizes)
    return positions


def powers_of_two(found: Histogram) -> tuple[int, ...]:
    """Return the powers of two from the first at or above the shortest length to the first at or above the longest.

    Example:
        >>> from lengthwise import Histogram
        >>> powers_of_two(Histogram.of([65, 700, 8191]))
        (128, 256, 512, 1024, 2048, 4096, 8192)
    """
    low, high = (max(int(length) - 1, 0).bit_length() for length in (found.lengths[0], found.lengths[-1]))
    return tuple(1 << power for power in range(low, high + 1))


def equal_shares(found: Histogram, weights: npt.NDArray[Any], k: int) -> tuple[int, ...]:
    """Return at most `k` boundaries that split a weight evenly, as quantiles do.

    Example:
        >>> from lengthwise import Histogram
        >>> found = Histogram.of([1, 2, 3, 4])
        >>> equal_shares(found, found.counts, 2), equal_shares(found, found.counts * found.lengths, 2)
        ((2, 4), (3, 4))
    """
    reached = np.cumsum(weights, dtype=np.float64)
    wanted = reached[-1] * np.arange(1, k + 1) / k
    at = np.minimum(np.searchsorted(reached, wanted * (1 - 1e-12)), len(found) - 1)
    return tuple(int(length) for length in np.unique(found.lengths[at]) if length) or (max(int(found.lengths[-1]), 1),)


def _aligned(lengths: Any, multiple_of: int) -> Any:
    return -(-lengths // multiple_of) * multiple_of
