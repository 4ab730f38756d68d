"""Lengths at a glance: in a terminal, in a notebook, as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise._arrays import as_lengths
from lengthwise._core import LengthwiseError
from lengthwise.histogram import Histogram

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lengthwise.report.model import LengthFigures

_COLUMNS: Final = 72
_ROWS: Final = 6
_BAR: Final = (9, 90)


@dataclass(frozen=True, eq=False, repr=False)
class Distribution:
    """How long the samples of a data set are. Print it, show it in a notebook, or `plot()` it.

    Attributes:
        figures: samples, tokens, mean, percentiles, the ten longest, and `warnings` about what looks like a mistake.
        histogram: the samples of each length.
    """

    figures: LengthFigures
    histogram: Histogram

    def plot(self, ax: Axes | None = None, *, boundaries: Any = ()) -> Axes:
        """Draw samples and tokens over length on a logarithmic axis, with a line at each boundary.

        Args:
            ax: where to draw; a new figure by default.
            boundaries: lengths to mark, in tokens.

        Raises:
            LengthwiseError: matplotlib is not installed.
        """
        from lengthwise.plots import plot_lengths

        return plot_lengths(self.histogram, ax, boundaries=boundaries)

    def __repr__(self) -> str:
        from lengthwise.report import draw

        lines = [self._title(), "  ".join(f"{name} {value}" for name, value in self._percentiles())]
        edges, heights = self._columns(_COLUMNS)
        lines += ["", *draw.columns(heights, _ROWS), *draw.axis(edges)]
        lines += [f"! {warning}" for warning in self.figures.warnings]
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        names, values = zip(*self._percentiles(), strict=True)
        head = "".join(f"<th>{name}</th>" for name in names)
        row = "".join(f"<td>{value}</td>" for value in values)
        warnings = "".join(f"<p><b>!</b> {escape(warning)}</p>" for warning in self.figures.warnings)
        return f"<p>{escape(self._title())}</p><table><tr>{head}</tr><tr>{row}</tr></table>{self._svg()}{warnings}"

    def _title(self) -> str:
        figures = self.figures
        return f"{figures.samples:,} samples, {figures.tokens:,} tokens, {figures.mean:,.1f} a sample"

    def _percentiles(self) -> list[tuple[str, str]]:
        named = ((at, f"{length:,}") for at, length in self.figures.percentiles)
        return [("min" if at == 0 else "max" if at == 100 else f"p{at:g}", length) for at, length in named]

    def _columns(self, columns: int) -> tuple[Any, Any]:
        from lengthwise.report import draw

        positive = self.histogram.lengths > 0
        lengths, counts = self.histogram.lengths[positive], self.histogram.counts[positive]
        edges = draw.edges(int(lengths[0]), int(lengths[-1]), columns)
        return edges, draw.spread(lengths, counts, edges)

    def _svg(self) -> str:
        width, height = _BAR
        edges, heights = self._columns(_COLUMNS)
        bars = []
        for column, share in enumerate(np.asarray(heights) / heights.max()):
            place = f'x="{width * column}" y="{height * (1 - share):.1f}"'
            said = f"{edges[column]:,.0f} to {edges[column + 1]:,.0f} tokens: {heights[column]:,.0f} samples"
            size = f'width="{width - 1}" height="{height * share:.1f}"'
            bars.append(f"<rect {place} {size}><title>{said}</title></rect>")
        box = f'viewBox="0 0 {width * _COLUMNS} {height}"'
        style = 'width="100%" style="max-width: 40em; fill: #0f7c8c"'
        return f"<svg {box} {style}>{''.join(bars)}</svg>"


def describe(lengths: Any) -> Distribution:
    """Describe how long samples are.

    Args:
        lengths: integers[n], in tokens, or anything that `read_lengths` reads.

    Raises:
        LengthwiseError: no sample has a token, or the lengths cannot be read.

    Cost: one pass, about 5 ms for a million samples.

    Example:
        >>> import lengthwise as lw
        >>> lw.describe([3, 9, 4, 8, 2] * 4).figures.percentiles[5:8]
        ((50, 4), (75, 8), (90, 9))
    """
    from lengthwise.report.figures import figures

    array = as_lengths(lengths)
    if not array.size or not array.any():
        raise LengthwiseError("lengths has no tokens to describe: no samples, or all of length 0")
    found = Histogram.of(array)
    return Distribution(figures(array, found), found)
