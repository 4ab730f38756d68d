"""The data of the charts: bins, a few real batches, the epoch in a few hundred points, loads and fills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise.report import draw
from lengthwise.report.model import Batch, Bins, Epoch, Fills, Loads, Pictures

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from lengthwise.histogram import Histogram
    from lengthwise.report.model import Settings
    from lengthwise.report.strategies import Planned

_BINS: Final = 72
_POINTS: Final = 300
_FILL_BINS: Final = 20

#: Rows of a batch that are kept, and samples of a row.
_ROWS: Final = 24
_BATCHES: Final = 3
_PACKS: Final = 8
_SAMPLES: Final = 96


def pictures(found: Histogram, plans: Sequence[Planned], recommended: str, settings: Settings) -> Pictures:
    """Return what the charts draw, from plans that were made anyway."""
    by_key = {plan.key: plan for plan in plans}
    shown = [by_key[key] for key in ("fixed", recommended, "best-fit") if key in by_key]
    compared = [by_key[key] for key in ("fixed", "sorted", "shuffled", recommended, "best-fit") if key in by_key]
    packed = [plan for plan in plans if plan.group == "packed"]
    return Pictures(
        bins=bins(found),
        batches=tuple(batch for plan in shown for batch in _batches(plan)),
        epochs=tuple(_epoch(plan) for plan in compared),
        loads=tuple(_loads(plan, settings) for plan in shown),
        fills=tuple(_fills(plan) for plan in packed),
    )


def bins(found: Histogram) -> Bins:
    """Return samples and tokens in bins of a logarithmic axis; samples of 0 tokens are left out."""
    positive = found.lengths > 0
    lengths, counts = found.lengths[positive], found.counts[positive]
    edges = draw.edges(int(lengths[0]), int(lengths[-1]), _BINS)
    samples = draw.spread(lengths, counts, edges)
    tokens = draw.spread(lengths, counts * lengths, edges)
    return Bins(edges=tuple(edges.tolist()), samples=tuple(samples.tolist()), tokens=tuple(tokens.tolist()))


def _batches(plan: Planned) -> Iterator[Batch]:
    """Yield batches at even distances through the epoch; for packs, their rows as one batch."""
    measured = plan.measured
    stops = np.cumsum(measured.samples)
    if plan.group == "packed":
        at = _evenly(len(stops), _PACKS)
        rows = [plan.lengths[stops[pack] - measured.samples[pack] : stops[pack]] for pack in at]
        yield Batch(
            strategy=plan.key,
            position=int(at[0]),
            padded_length=int(measured.widths[0]),
            rows=tuple(_grouped(row) for row in rows),
        )
        return
    for batch in _evenly(len(stops), _BATCHES):
        lengths = plan.lengths[stops[batch] - measured.samples[batch] : stops[batch]]
        kept = lengths[_evenly(len(lengths), _ROWS)]
        yield Batch(
            strategy=plan.key,
            position=int(batch),
            padded_length=int(measured.widths[batch]),
            rows=tuple((int(length),) for length in kept),
        )


def _grouped(row: npt.NDArray[Any]) -> tuple[int, ...]:
    """Return the samples of a pack, or sums of neighbours where they are more than can be told apart."""
    each = -(-len(row) // _SAMPLES)
    return tuple(np.add.reduceat(row.astype(np.int64), np.arange(0, len(row), each)).tolist()) if len(row) else ()


def _epoch(plan: Planned) -> Epoch:
    at = _evenly(len(plan.measured.padded), _POINTS)
    return Epoch(
        strategy=plan.key,
        positions=tuple(at.tolist()),
        real=tuple(plan.measured.real[at].tolist()),
        padded=tuple(plan.measured.padded[at].tolist()),
    )


def _loads(plan: Planned, settings: Settings) -> Loads:
    ranks = plan.measured.per_step(plan.measured.padded, settings.world_size, settings.accumulate)
    waiting = ranks.max(axis=1, keepdims=True) - ranks
    return Loads(
        strategy=plan.key,
        busy=tuple(int(tokens) for tokens in ranks.sum(axis=0)),
        waiting=tuple(int(tokens) for tokens in waiting.sum(axis=0)),
    )


def _fills(plan: Planned) -> Fills:
    shares = plan.measured.real / np.maximum(plan.measured.padded, 1)
    into = np.clip(np.ceil(shares * _FILL_BINS).astype(int) - 1, 0, _FILL_BINS - 1)
    return Fills(strategy=plan.key, packs=tuple(np.bincount(into, minlength=_FILL_BINS).tolist()))


def _evenly(count: int, most: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return at most `most` positions of 0..count-1 at even distances, from the middle of each part."""
    parts = min(count, most)
    return ((np.arange(parts) * 2 + 1) * count // (2 * max(parts, 1))).astype(np.int64)
