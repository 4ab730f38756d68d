"""Pictures for notebooks and papers, drawn with matplotlib on axes that the caller may bring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise._core import LengthwiseError
from lengthwise.report.palette import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lengthwise.comparison import Comparison
    from lengthwise.curve import PaddingCurve
    from lengthwise.histogram import Histogram
    from lengthwise.packing import Packs
    from lengthwise.plan import Plan

_COLUMNS: Final = 72
_POINTS: Final = 400
_BINS: Final = 40


def plot_lengths(found: Histogram, ax: Axes | None = None, *, boundaries: Any = ()) -> Axes:
    """Draw the share of samples and of tokens over length, and a line at each boundary.

    Args:
        found: the samples of each length.
        ax: where to draw; a new figure by default.
        boundaries: lengths to mark, in tokens.

    Raises:
        LengthwiseError: matplotlib is not installed, or no sample has a token.
    """
    from lengthwise.report import draw

    positive = found.lengths > 0
    lengths, counts = found.lengths[positive], found.counts[positive]
    if not lengths.size:
        raise LengthwiseError("no sample has a token, so there is nothing to draw")
    ax = _axes(ax)
    edges = draw.edges(int(lengths[0]), int(lengths[-1]), _COLUMNS)
    samples = draw.spread(lengths, counts, edges) / found.samples
    tokens = draw.spread(lengths, counts * lengths, edges) / max(found.tokens, 1)
    ax.stairs(samples, edges, fill=True, color=LIGHT["real"], label="samples")
    ax.stairs(tokens, edges, color=LIGHT["tokens"], linewidth=1.5, label="tokens")
    for bound in boundaries:
        ax.axvline(bound, color=LIGHT["boundary"], linewidth=1, linestyle="--")
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.set(xlabel="length (tokens)", ylabel="share of all", xlim=(edges[0], edges[-1]))
    ax.legend(frameon=False)
    return ax


def plot_curve(curve: PaddingCurve, ax: Axes | None = None) -> Axes:
    """Draw padding (padded over real tokens, less 1) against the number of buckets, and the knee.

    Args:
        curve: what `lw.padding_curve` returned.
        ax: where to draw; a new figure by default.

    Raises:
        LengthwiseError: matplotlib is not installed.
    """
    ax = _axes(ax)
    knee = curve.knee, curve[curve.knee].padding
    ax.plot(curve.k, curve.padding, marker=".", color=LIGHT["real"])
    ax.plot(*knee, marker="o", markersize=11, fillstyle="none", color=LIGHT["boundary"])
    ax.annotate(f"{knee[0]} buckets", knee, xytext=(6, 10), textcoords="offset points")
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.set(xlabel="number of buckets", ylabel="padding", ylim=(0, None))
    return ax


def plot_comparison(table: Comparison, ax: Axes | None = None) -> Axes:
    """Draw what each layout computes for every real token: the token itself, and its padding.

    Args:
        table: what `lw.compare` returned.
        ax: where to draw; a new figure by default.

    Raises:
        LengthwiseError: matplotlib is not installed.
    """
    ax = _axes(ax)
    names, ratios = zip(*((row.name, row.summary.ratio) for row in table.rows), strict=True)
    ax.barh(names, 1, color=LIGHT["real"], label="real tokens")
    bars = ax.barh(names, [ratio - 1 for ratio in ratios], left=1, color=LIGHT["padding"], label="padding")
    ax.bar_label(bars, [f"{ratio:.3f}" for ratio in ratios], padding=3)
    ax.invert_yaxis()
    ax.set(xlabel="padded over real tokens", xlim=(0, 1.12 * max(ratios)))
    ax.legend(frameon=False)
    return ax


def plot_plan(plan: Plan, ax: Axes | None = None) -> Axes:
    """Draw real and padded tokens of batches over the epoch, of a few hundred of them evenly spaced.

    Raises:
        LengthwiseError: matplotlib is not installed, or the plan was read without its lengths.
    """
    ax = _axes(ax)
    at = np.unique(np.linspace(0, max(len(plan) - 1, 0), _POINTS).astype(np.int64))[: len(plan)]
    real, padded = plan.real_tokens[at].astype(np.float64), plan.padded_tokens[at].astype(np.float64)
    ax.vlines(at, real, padded, color=LIGHT["padding"], label="padding")
    ax.plot(at, real, ".", color=LIGHT["real"], markersize=4, label="real tokens")
    ax.set(xlabel="batch of the epoch", ylabel="tokens", ylim=(0, None))
    ax.legend(frameon=False)
    return ax


def plot_packs(packs: Packs, lengths: Any, ax: Axes | None = None) -> Axes:
    """Draw how many packs are how full.

    Args:
        packs: what `lw.pack` returned.
        lengths: integers[n], what was packed.
        ax: where to draw; a new figure by default.

    Raises:
        LengthwiseError: matplotlib is not installed.
    """
    ax = _axes(ax)
    if packs.segments is None:
        used = np.asarray(lengths, np.int64)[packs.indices]
    else:
        used = packs.segments[:, 1].astype(np.int64) - packs.segments[:, 0]
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(used)])
    fill = (before[packs.offsets[1:]] - before[packs.offsets[:-1]]) / packs.capacity
    ax.hist(fill, bins=_BINS, range=(0, 1), color=LIGHT["real"])
    ax.set_yscale("symlog")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.set(xlabel=f"fill of {packs.capacity:,} tokens", ylabel="packs", xlim=(0, 1))
    return ax


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        raise LengthwiseError(f"a plot needs {error.name}: pip install 'lengthwise[plot]'") from error
    _, made = plt.subplots(figsize=(8, 3.2), layout="constrained")
    return made
