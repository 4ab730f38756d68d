"""The report on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from lengthwise.report import draw, panels, words
from lengthwise.report.headline import headline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from lengthwise.report.model import Report, Strategy

_CURVE_ROWS: Final = 6


def screens(report: Report, width: int) -> Iterator[RenderableType]:
    """Yield the sections of the report, for screens of `width` columns, margins aside."""
    yield _section("", *_opening(report))
    if report.lengths.warnings:
        yield _section(
            "Look at these first", *(Text(f"! {line}", style=panels.POOR) for line in report.lengths.warnings)
        )
    yield _section("Lengths", *_lengths(report, width), remark=_tokens(report))
    yield _section("One epoch", *_strategies(report, width), remark=_assumptions(report))
    yield _section("How many buckets", *_curve(report), remark="padding with optimal ones, logarithmic")
    if report.truncations:
        yield _section("What truncation would cost", _truncations(report, width))
    yield _section("To paste", *_snippet(report), remark="more for lhotse, tf.data and NeMo: --html FILE or --json")


def _section(title: str, *parts: RenderableType, remark: str = "") -> RenderableType:
    head = [panels.heading(title, remark)] if title else []
    return Padding(Group(*head, *parts), (0, 0, 1, 2), expand=False)


def _opening(report: Report) -> Iterator[RenderableType]:
    read = report.dataset
    column = f"   lengths from its column {read.column}" if read.column else ""
    timed = f", read in {words.duration(read.read_seconds)}" if read.read_seconds else ""
    yield Text()
    yield Text.assemble((read.source, panels.TITLE), (f"{column}{timed}", panels.QUIET))
    yield Text()
    for line, sentence in enumerate(headline(report)):
        yield Text(sentence, style=panels.REAL if line == 0 else "")


def _tokens(report: Report) -> str:
    figures = report.lengths
    return f"{figures.samples:,} samples, {figures.tokens:,} tokens, {figures.mean:,.0f} a sample"


def _lengths(report: Report, width: int) -> Iterator[RenderableType]:
    percentiles = panels.Columns(
        *(panels.percentile_name(at) for at, _ in report.lengths.percentiles), spare=("p99.9", "p1", "p5", "p10")
    )
    percentiles.add(*(f"{length:,}" for _, length in report.lengths.percentiles))
    yield percentiles.drawn(width)
    yield Text()
    best = report.strategy(report.recommended)
    bins = report.pictures.bins
    yield panels.blocks(np.asarray(bins.edges), np.asarray(bins.samples), boundaries=best.boundaries)
    yield Text("samples over length, logarithmic   ▲ optimal boundaries", style=panels.QUIET)
    longest = ", ".join(f"{length:,} (row {index:,})" for index, length in report.lengths.longest[:3])
    yield Text(f"longest: {longest}", style=panels.QUIET)


def _assumptions(report: Report) -> str:
    settings = report.settings
    parts = [f"at most {settings.max_tokens:,} padded tokens a batch"]
    if settings.capacity != settings.max_tokens:
        parts.append(f"packs of {settings.capacity:,}")
    if settings.world_size > 1:
        parts.append(f"{settings.world_size} ranks")
    if settings.accumulate > 1:
        parts.append(f"{settings.accumulate} batches a step")
    if settings.multiple_of > 1:
        parts.append(f"multiples of {settings.multiple_of}")
    return ", ".join(parts)


def _strategies(report: Report, width: int) -> Iterator[RenderableType]:
    timed, ranks = report.speed is not None, report.settings.world_size > 1
    headers = ["strategy", "a batch", "padded/real", "batches", "steps", "shapes", "largest", "waiting", "mixing",
               "speed", "an epoch"]  # fmt: skip
    hidden = {"an epoch": timed, "waiting": ranks, "batches": ranks or report.settings.accumulate > 1}
    kept = [header for header in headers if hidden.get(header, True)]
    table = panels.Columns(*kept, text=headers[:2], spare=("largest", "a batch", "shapes", "batches", "mixing"))
    for strategy in report.strategies:
        cells = dict(zip(headers, _cells(strategy), strict=True))
        style = panels.GOOD if strategy.key == report.recommended else panels.QUIET if strategy.bound else ""
        table.add(*(cells[header] for header in kept), style=style)
    yield table.drawn(width)
    yield Text()
    yield Text("\n".join(_explanations(report, table.shown(width))), style=panels.QUIET)


def _cells(strategy: Strategy) -> list[Text | str]:
    return [
        strategy.name,
        panels.padding_bar(strategy.padded_ratio),
        words.ratio(strategy.padded_ratio),
        f"{strategy.batches:,}",
        f"{strategy.steps:,}",
        "" if strategy.shapes is None else f"{strategy.shapes:,}",
        "" if strategy.largest_batch is None else f"{strategy.largest_batch:,}",
        "" if strategy.imbalance is None else f"{strategy.imbalance:.1%}",
        "" if strategy.mixing is None else f"{round(strategy.mixing, 2) + 0:.2f}",
        f"{strategy.speed:.2f}x",
        "" if strategy.seconds is None else words.duration(strategy.seconds),
    ]


def _explanations(report: Report, shown: list[str]) -> Iterator[str]:
    by = "the fitted model" if report.speed and report.speed.source == "timings" else "the tokens computed"
    slowest = " of the busiest ranks" if report.settings.world_size > 1 else ""
    lines = {
        "shapes": "shapes     different (rows, length) of batches; a compiler takes about 8",
        "waiting": "waiting    what the busiest rank of a step computes beyond the mean of all",
        "mixing": "mixing     correlation of neighbouring batches' lengths: 0 mixed, 1 sorted",
    }
    yield from (line for header, line in lines.items() if header in shown)
    yield f"speed      by {by}{slowest}, against the first row"
    yield "in windows of 50 batches, sorted inside: what group_by_length does"
    if report.settings.assumed:
        yield f"not given, so assumed: {', '.join('--' + name.replace('_', '-') for name in report.settings.assumed)}"


def _curve(report: Report) -> Iterator[RenderableType]:
    padding = np.maximum(np.asarray(report.curve.padded_ratios) - 1, 1e-6)
    # From a little below the least padding, so that the last column is still a column.
    heights = np.log(padding) - np.log(padding.min() / 1.3)
    lines = [" ".join(line) for line in draw.columns(heights, _CURVE_ROWS)]
    curve = report.curve
    labels = "".join(f"{k:<4}" for k in range(1, len(padding) + 1, 2))
    yield Text("\n".join(lines), style=panels.REAL)
    yield Text(labels.rstrip(), style=panels.QUIET)
    if curve.knee != curve.chosen:
        yield Text(_pointer(curve.knee, f"{curve.knee}: the knee"), style=panels.QUIET)
    chosen = f"{curve.chosen}: one more pays less than 0.5%"
    yield Text(_pointer(curve.chosen, chosen), style=panels.GOOD)
    shown = sorted({k for k in (1, 2, 4, 8, 16, 32) if k <= len(padding)} | {curve.knee, curve.chosen})
    yield Text("   ".join(f"{k}: {padding[k - 1]:.1%}" for k in shown), style=panels.QUIET)


def _pointer(k: int, text: str) -> str:
    """Point at the column of k buckets, with the words on the side that has room."""
    column = 2 * (k - 1)
    return " " * column + f"▲ {text}" if column < len(text) + 2 else f"{text} ▲".rjust(column + 1)


def _truncations(report: Report, width: int) -> RenderableType:
    table = panels.Columns("longest length", "samples cut", "", "tokens lost", " ")
    for cut in report.truncations:
        table.add(
            f"{cut.max_length:,}",
            f"{cut.samples:,}",
            Text(f"{cut.samples / report.lengths.samples:.2%}", style=panels.QUIET),
            f"{cut.tokens:,}",
            Text(f"{cut.tokens / max(report.lengths.tokens, 1):.2%}", style=panels.QUIET),
        )
    return table.drawn(width)


def _snippet(report: Report) -> Iterator[RenderableType]:
    yield Text(report.snippets[0].code.rstrip(), style=panels.REAL)
