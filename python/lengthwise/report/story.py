"""The screen of `lengthwise demo`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from lengthwise import demo
from lengthwise.report import panels, words
from lengthwise.story import PUBLISHED_BOUNDARIES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import RenderableType


#: What the columns say, by their headers.
_EXPLAINED = {
    "fresh": "fresh     the next epoch has other batches, not the same ones again",
    "Ktok/s": "Ktok/s    predicted from the padding alone, from 32 when sorted",
    "fitted": "fitted    with the cost of attention in long rows, fitted to the three measured runs",
    "measured": "measured  by the run itself, in Ktok/s of real tokens",
    "days": f"days      predicted for its {demo.EPOCHS} epochs; bucketed by hand it took {demo.MEASURED_DAYS}",
}


def _indented(*parts: RenderableType) -> Padding:
    return Padding(Group(*parts), (0, 0, 1, 2), expand=False)


def opening(folder: Path, written: int, lengths: Any, seconds: float) -> RenderableType:
    """Return what was written and how it was read."""
    return _indented(
        "",
        panels.heading("A training set", "902,087 tokenised completions, as a published run had them"),
        Text.assemble(
            ("written  ", panels.QUIET),
            f"{folder.name}/",
            (f"   as save_to_disk does, {words.size(written)} without the tokens", panels.QUIET),
        ),
        Text.assemble(
            ("read     ", panels.QUIET),
            f"{len(lengths):,} lengths in {words.duration(seconds)}",
            (f"   from its column {lengths.column}", panels.QUIET),
        ),
    )


def distribution(lengths: Any, width: int) -> RenderableType:
    """Return the distribution of the lengths, with the published boundaries under it."""
    from lengthwise.histogram import Histogram

    found = Histogram.of(lengths)
    return _indented(
        panels.heading("Lengths", f"{found.tokens:,} tokens, {found.tokens / found.samples:,.0f} a sample"),
        panels.percentile_table(found).drawn(width),
        "",
        panels.histogram(found, width=width, boundaries=PUBLISHED_BOUNDARIES),
        Text("samples over length, logarithmic   ▲ the boundaries chosen by hand", style=panels.QUIET),
    )


def orders(rows: Sequence[demo.Row], width: int) -> RenderableType:
    """Return the table of the orders, and what was measured beside it."""
    headers = ("order", "a batch", "padded/real", "batches", "fresh", "Ktok/s", "fitted", "measured", "days", "planned")
    table = panels.Columns(*headers, text=headers[:2], spare=("a batch", "fitted", "days", "measured"))
    fitted = demo.fitted_speeds(rows)
    for row in rows:
        measured = demo.MEASURED.get(row.name)
        table.add(
            row.name,
            panels.padding_bar(row.padded_ratio),
            panels.ratio_text(row.padded_ratio),
            f"{row.batches:,}",
            Text("yes", panels.GOOD) if row.again < 0.5 else Text("no", panels.POOR),
            f"{row.speed:.1f}",
            f"{fitted[row.name]:.1f}",
            f"{measured:.1f}" if measured else Text("-", panels.QUIET),
            f"{row.days:.1f}",
            f"{row.seconds * 1000:.0f} ms",
        )
    return _indented(
        panels.heading("One epoch", f"at most {demo.MAX_TOKENS:,} padded tokens a batch"),
        table.drawn(width),
        "",
        Text("\n".join(line for name, line in _EXPLAINED.items() if name in table.shown(width)), style=panels.QUIET),
    )


def closing() -> RenderableType:
    """Return what to run next."""
    return _indented(
        panels.heading("Next, on your own data"),
        Text("lengthwise report DATASET", style=panels.REAL),
        Text("lengthwise boundaries DATASET -k 6", style=panels.REAL),
    )
