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
PERCENTILES: Final = (0, 10, 25, 50, 75, 90, 95, 99, 100)

_BAR: Final = 10


def heading(text: str, remark: str = "") -> Text:
    """Return the title of a section, with a quiet remark after it."""
    return Text.assemble((text, TITLE), ("   " + remark if remark else "", QUIET))


def percentile_table(found: Histogram) -> Table:
    """Return one line of percentiles under their names: min, p10 ... p99, max."""
    made = Columns(*("min" if at == 0 else "max" if at == 100 else f"p{at}" for at in PERCENTILES))
    made.add(*(f"{found.percentile(at):,}" for at in PERCENTILES))
    return made.drawn


def histogram(found: Histogram, *, width: int, rows: int = 7, boundaries: Sequence[int] = ()) -> Text:
    """Return samples over a logarithmic axis of lengths, with a mark below each boundary.

    Args:
        found: the lengths; those of 0 tokens have no place on the axis.
        width: columns of the screen.
        rows: lines of blocks.
        boundaries: lengths to mark under the axis.
    """
    positive = found.lengths > 0
    lengths, counts = found.lengths[positive], found.counts[positive]
    if not lengths.size:
        return Text("no sample has a token", style=POOR)
    column_edges = draw.edges(int(lengths[0]), int(lengths[-1]), width)
    lines = draw.columns(draw.spread(lengths, counts, column_edges), rows)
    ticks, labels = draw.axis(column_edges)
    text = Text("\n".join(lines), style=REAL)
    text.append("\n" + ticks + "\n", style=QUIET)
    text.append(labels, style=QUIET)
    if boundaries:
        text.append("\n" + draw.marks(boundaries, column_edges), style=GOOD)
    return text


def padding_bar(padded_ratio: float, width: int = _BAR) -> Text:
    """Return what a batch holds as one bar: real tokens in colour, padding in grey."""
    real = round(width / padded_ratio) if padded_ratio else width
    return Text.assemble(("█" * real, REAL), ("░" * (width - real), PADDING))


class Columns:
    """A table without lines, some of whose columns a narrow screen goes without.

    Attributes:
        drawn: the table for rich.
    """

    def __init__(self, *headers: str, text: Sequence[str] = (), without: Sequence[str] = ()) -> None:
        """Make an empty table; columns in `text` are aligned left, numbers right, those in `without` left out."""
        self.drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=QUIET, show_edge=False)
        self._shown = [header not in without for header in headers]
        for header in compress(headers, self._shown):
            self.drawn.add_column(header, justify="left" if header in text else "right", no_wrap=True)

    def add(self, *cells: Text | str) -> None:
        """Add a row with a cell for every column, hidden ones too."""
        self.drawn.add_row(*compress(cells, self._shown))


def ratio_text(value: float) -> Text:
    """Return padded/real, green where little is wasted, yellow from a third on."""
    return Text(ratio(value), style=GOOD if value < 1.1 else POOR if value >= 4 / 3 else "")


def boundary_list(boundaries: Sequence[int], most: int = 8) -> str:
    """Return boundaries to read: `770, 1216, ... 8192`; long lists keep their ends."""
    shown = [str(bound) for bound in boundaries]
    if len(shown) > most:
        shown = [*shown[: most - 2], "...", shown[-1]]
    return ", ".join(shown)
