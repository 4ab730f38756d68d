"""The charts of batches: what is in them, over the epoch, over the ranks, and how full packs are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lengthwise.report import words
from lengthwise.report.vega import COUNT, LEGEND, SHARE, Spec, chart, field, names_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lengthwise.report.model import Batch, Report

#: Rows of one batch that a picture shows; more would be thinner than a pixel.
_MOST_ROWS: Final = 24


def batch_charts(report: Report) -> Iterator[tuple[str, Spec]]:
    """Yield, for each strategy with pictures, its key and its batches drawn row by row, padding in grey."""
    keys = dict.fromkeys(batch.strategy for batch in report.pictures.batches)
    for key in keys:
        batches = [batch for batch in report.pictures.batches if batch.strategy == key]
        rows = list(_batch_rows(batches))
        height = 6 * max(row["row"] for row in rows) + 12 if rows else 0
        encoding = {
            "x": field("start", title="tokens", axis={"format": "~s", "tickCount": 5}, scale={"nice": False}),
            "x2": {"field": "stop"},
            "y": field("row", axis=None, scale={"reverse": True, "nice": False, "zero": False}),
            "y2": {"field": "below"},
            "tooltip": [
                {"field": "what", "title": "what", "type": "nominal"},
                field("length", title="tokens", format=COUNT),
                field("batch", title="batch", format=COUNT),
                field("padded", title="batch padded to", format=COUNT),
            ],
        }
        marks = [
            {
                "transform": [{"filter": f"datum.kind == '{kind}'"}],
                "mark": {"type": "rect", "style": kind},
                "encoding": encoding,
            }
            for kind in dict.fromkeys(row["kind"] for row in rows)
        ]
        title = f"{len(batches)} batches, {report.strategy(key).name}"
        yield key, chart(title, min(max(height, 160), 420), data=rows, layer=marks)


def _batch_rows(batches: list[Batch]) -> Iterator[Spec]:
    """Yield a rectangle for every sample and one for the padding at the end of its row, batches one below another."""
    at = 0.0
    for batch in batches:
        step = max(len(batch.rows) / _MOST_ROWS, 1.0)
        for number in range(min(len(batch.rows), _MOST_ROWS)):
            samples = batch.rows[int(number * step)]
            common = {"row": at, "below": at + 0.85, "batch": batch.position, "padded": batch.padded_length}
            stop = 0
            for index, length in enumerate(samples):
                kind = "other" if index % 2 else "real"
                yield {**common, "kind": kind, "what": "sample", "start": stop, "stop": stop + length, "length": length}
                stop += length
            if stop < batch.padded_length:
                rest = batch.padded_length - stop
                yield {
                    **common,
                    "kind": "padding",
                    "what": "padding",
                    "start": stop,
                    "stop": stop + rest,
                    "length": rest,
                }
            at += 1
        at += 1.5


def epoch_chart(report: Report) -> Spec:
    """Return real and padded tokens of batches over the epoch, one strategy at a time."""
    if not report.pictures.epochs:
        return {}
    rows = [
        {"strategy": report.strategy(epoch.strategy).name, "batch": batch, "real": real, "padded": padded}
        for epoch in report.pictures.epochs
        for batch, real, padded in zip(epoch.positions, epoch.real, epoch.padded, strict=True)
    ]
    names = names_in(rows, "strategy")
    x = field("batch", title="batch of the epoch", axis={"format": "~s", "tickCount": 6}, scale={"nice": False})
    tooltip = [
        field("batch", format=COUNT),
        field("real", title="real tokens", format=COUNT),
        field("padded", title="padded tokens", format=COUNT),
    ]
    axis: Spec = {"title": "tokens in the batch", "axis": {"format": "~s", "tickCount": 5}}
    layers = [
        {
            "mark": {"type": "rule", "style": "gap"},
            "encoding": {"y": field("real", **axis), "y2": {"field": "padded"}, "tooltip": tooltip},
        },
        {"mark": {"type": "point", "style": "dots"}, "encoding": {"y": field("real", **axis), "tooltip": tooltip}},
    ]
    return chart(
        "Tokens of each batch over the epoch",
        220,
        data=rows,
        params=[
            {
                "name": "shown",
                "value": report.strategy(report.recommended).name,
                "bind": {"input": "select", "options": names, "name": "strategy "},
            }
        ],
        transform=[{"filter": "datum.strategy == shown"}],
        encoding={"x": x},
        layer=layers,
    )


def ranks_chart(report: Report) -> Spec:
    """Return what every rank computes over the epoch, and above it what it waits for, by strategy."""
    rows = [
        {"strategy": report.strategy(loads.strategy).name, "rank": rank, "what": what, "tokens": tokens}
        for loads in report.pictures.loads
        for what, values in (("computing", loads.busy), ("waiting for the busiest rank", loads.waiting))
        for rank, tokens in enumerate(values)
    ]
    names = names_in(rows, "strategy")
    encoding = {
        "x": {"field": "rank", "type": "ordinal", "axis": {"labelAngle": 0, "labelOverlap": True}},
        "xOffset": {"field": "strategy", "sort": names},
        "y": field("tokens", title="padded tokens of the epoch", axis={"format": "~s", "tickCount": 5}),
        "color": {"field": "strategy", "type": "nominal", "sort": names, "legend": LEGEND},
        "opacity": {"condition": {"test": "datum.what == 'computing'", "value": 1}, "value": 0.35},
        "order": {"field": "what", "sort": "ascending"},
        "tooltip": [
            {"field": "strategy", "type": "nominal"},
            field("rank", format="d"),
            {"field": "what", "type": "nominal"},
            field("tokens", title="padded tokens", format=COUNT),
        ],
    }
    return chart("Load of each rank", 200, data=rows, mark={"type": "bar"}, encoding=encoding)


def fills_chart(report: Report) -> Spec:
    """Return how full the packs are, by packing method."""
    rows = [
        {
            "method": report.strategy(fills.strategy).name,
            "fill": f"{bin_ / len(fills.packs):.0%} to {(bin_ + 1) / len(fills.packs):.0%}",
            "to": (bin_ + 1) / len(fills.packs),
            "packs": packs,
            "share": packs / max(sum(fills.packs), 1),
        }
        for fills in report.pictures.fills
        for bin_, packs in enumerate(fills.packs)
    ]
    names = names_in(rows, "method")
    axis = {"format": ".0%", "labelAngle": 0, "labelOverlap": True}
    encoding = {
        "x": {"field": "to", "type": "ordinal", "title": "fill of a pack, up to", "axis": axis},
        "xOffset": {"field": "method", "sort": names},
        "y": field("share", title="share of packs", axis={"format": ".0%", "tickCount": 5}),
        "color": {"field": "method", "type": "nominal", "sort": names, "legend": LEGEND},
        "tooltip": [
            {"field": "method", "type": "nominal"},
            {"field": "fill", "type": "nominal"},
            field("packs", format=COUNT),
            field("share", format=SHARE),
        ],
    }
    title = f"Fill of packs of {words.short(report.settings.capacity)} tokens"
    return chart(title, 200, data=rows, mark={"type": "bar"}, encoding=encoding)
