"""Pieces of the terminal screens that more than one command shows."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from lengthwise.report import draw
from lengthwise.report.words import ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lengthwise.histogram import Histogram

#: The styles of the screens, by meaning: what is computed, what is padding, what to look at.
REAL: Final = "cyan"
PADDING: Final = "bright_black"
GOOD: Final = "green"
POOR: Final = "yellow"
QUIET: Final = "dim"
TITLE: Final = "bold"

#: The percentiles that a screen shows.
PERCENTILES: Final = (0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100)

_BAR: Final = 8
_ROWS: Final = 7
_GAP: Final = 2


def heading(text: str, remark: str = "") -> Text:
    """Return the title of a section, with a quiet remark after it."""
    return Text.assemble((text, TITLE), ("   " + remark if remark else "", QUIET))


def percentile_name(at: float) -> str:
    """Return how a percentile is called.

    Example:
        >>> percentile_name(0), percentile_name(25), percentile_name(99.9), percentile_name(100)
        ('min', 'p25', 'p99.9', 'max')
    """
    return "min" if at == 0 else "max" if at == 100 else f"p{at:g}"


def percentile_table(found: Histogram) -> Columns:
    """Return one line of percentiles under their names: min, p1 ... p99.9, max."""
    made = Columns(*(percentile_name(at) for at in PERCENTILES), spare=("p99.9", "p1", "p5"))
    made.add(*(f"{found.percentile(at):,}" for at in PERCENTILES))
    return made


def histogram(found: Histogram, *, width: int, boundaries: Sequence[int] = ()) -> Text:
    """Return samples over a logarithmic axis of lengths, `width` columns wide, with a mark below each boundary.

    Samples of 0 tokens have no place on the axis.
    """
    positive = found.lengths > 0
    lengths, counts = found.lengths[positive], found.counts[positive]
    if not lengths.size:
        return Text("no sample has a token", style=POOR)
    edges = draw.edges(int(lengths[0]), int(lengths[-1]), width)
    return blocks(edges, draw.spread(lengths, counts, edges), boundaries=boundaries)


def blocks(edges: draw.Floats, heights: draw.Floats, *, boundaries: Sequence[int] = ()) -> Text:
    """Return a column of blocks between each pair of edges, the axis below, and a mark under each boundary."""
    ticks, labels = draw.axis(edges)
    text = Text("\n".join(draw.columns(heights, _ROWS)), style=REAL)
    text.append(f"\n{ticks}\n{labels}", style=QUIET)
    if boundaries:
        text.append("\n" + draw.marks(boundaries, edges), style=GOOD)
    return text


def padding_bar(padded_ratio: float, width: int = _BAR) -> Text:
    """Return what a batch holds as one bar: real tokens in colour, padding in grey."""
    real = round(width / padded_ratio) if padded_ratio else width
    return Text.assemble(("█" * real, REAL), ("░" * (width - real), PADDING))


class Columns:
    """A table without lines that goes without its spare columns on a screen too narrow for all."""

    def __init__(self, *headers: str, text: Sequence[str] = (), spare: Sequence[str] = ()) -> None:
        """Make an empty table; columns in `text` are aligned left, those in `spare` go first, in that order."""
        self._headers = headers
        self._text = text
        self._spare = spare
        self._rows: list[tuple[Text, ...]] = []

    def add(self, *cells: Text | str, style: str = "") -> None:
        """Add a row with a cell for every column."""
        row = tuple(Text(cell) if isinstance(cell, str) else cell for cell in cells)
        for cell in row:
            cell.stylize(style)
        self._rows.append(row)

    def drawn(self, width: int) -> Table:
        """Return the table for rich, at most `width` columns wide where spare columns allow."""
        shown = self._fitting(width)
        made = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style=QUIET, show_edge=False)
        for header in compress(self._headers, shown):
            made.add_column(header, justify="left" if header in self._text else "right", no_wrap=True)
        for row in self._rows:
            made.add_row(*compress(row, shown))
        return made

    def shown(self, width: int) -> list[str]:
        """Return the headers of the columns that a screen of this width has room for."""
        return list(compress(self._headers, self._fitting(width)))

    def _fitting(self, width: int) -> list[bool]:
        widths = [
            max(len(header), *(row[column].cell_len for row in self._rows), 0) + _GAP
            for column, header in enumerate(self._headers)
        ]
        shown = [True] * len(widths)
        for header in self._spare:
            if sum(compress(widths, shown)) - _GAP <= width:
                break
            shown[self._headers.index(header)] = False
        return shown


def ratio_text(value: float) -> Text:
    """Return padded/real, green where little is wasted, yellow from a third on."""
    return Text(ratio(value), style=GOOD if value < 1.1 else POOR if value >= 4 / 3 else "")


def boundary_list(boundaries: Sequence[int], most: int = 8) -> str:
    """Return boundaries to read: `770, 1216, ... 8192`; long lists keep their ends."""
    shown = [str(bound) for bound in boundaries]
    if len(shown) > most:
        shown = [*shown[: most - 2], "...", shown[-1]]
    return ", ".join(shown)
