"""The distribution of lengths in figures: percentiles, the longest samples, what truncation cuts, what looks wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise.report.model import LengthFigures, Truncation

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from lengthwise.histogram import Histogram

PERCENTILES: Final = (0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100)

#: Longest lengths that people consider, in tokens.
_LIMITS: Final = tuple(1 << power for power in range(9, 21))

_LONGEST: Final = 10


def figures(lengths: npt.NDArray[Any], found: Histogram, *, cut: int = 0, said: tuple[str, ...] = ()) -> LengthFigures:
    """Describe lengths.

    Args:
        lengths: uint16[n] or uint32[n], at least one.
        found: the same, counted.
        cut: how many of them are longer than a batch or a pack holds.
        said: warnings that the reader gave.
    """
    return LengthFigures(
        samples=found.samples,
        tokens=found.tokens,
        mean=found.tokens / found.samples,
        percentiles=tuple((at, found.percentile(at)) for at in PERCENTILES),
        distinct=len(found),
        empty=int(found.counts[0]) if found.lengths[0] == 0 else 0,
        longest=longest(lengths, found),
        warnings=(*said, *_warnings(found, cut, told=bool(said))),
    )


def longest(lengths: npt.NDArray[Any], found: Histogram) -> tuple[tuple[int, int], ...]:
    """Return (index, length) of the ten longest samples, the longest first, equal ones by index."""
    # Only samples at least as long as the tenth from the top are sorted.
    at_least = np.cumsum(found.counts[::-1])
    reached = min(int(np.searchsorted(at_least, _LONGEST)), len(found) - 1)
    candidates = np.flatnonzero(lengths >= found.lengths[len(found) - 1 - reached])
    order = np.lexsort((candidates, -lengths[candidates].astype(np.int64)))[:_LONGEST]
    return tuple((int(index), int(lengths[index])) for index in candidates[order])


def truncations(found: Histogram) -> tuple[Truncation, ...]:
    """Return what each power of two below the longest length would cut, from 512 tokens."""
    top = int(found.lengths[-1])
    return tuple(_truncation(found, limit) for limit in _LIMITS if limit < top)


def _truncation(found: Histogram, limit: int) -> Truncation:
    over = found.lengths > limit
    excess = (found.lengths[over].astype(np.int64) - limit) * found.counts[over].astype(np.int64)
    return Truncation(max_length=limit, samples=int(found.counts[over].sum()), tokens=int(excess.sum()))


def _warnings(found: Histogram, cut: int, *, told: bool) -> Iterator[str]:
    """Yield a sentence for everything that has hidden a mistake in somebody's data before."""
    samples, top = found.samples, int(found.lengths[-1])
    if cut:
        yield f"{cut:,} samples do not fit the budget or a pack; every strategy here counts them as cut to fit"
    if found.lengths[0] == 0:
        yield f"{int(found.counts[0]):,} samples are empty"
    if len(found) == 1 and samples > 1 and told:
        return
    if len(found) == 1 and samples > 1:
        yield f"all {samples:,} samples have length {top:,}: padded before they were measured, or not lengths at all?"
        return
    if top <= 16 and samples > 1_000:
        yield f"no sample is longer than {top}: are these lengths, or the number of columns of a row?"
    at_top = int(found.counts[-1]) / samples
    if at_top > 0.01 and samples > 100:
        yield f"{at_top:.1%} of the samples have exactly the longest length {top:,}: cut to it before?"
    typical = found.percentile(99)
    if samples >= 1_000 and top > 10 * max(typical, 1):
        yield f"the longest sample, {top:,} tokens, is more than 10 times the 99th percentile, {typical:,}"
