"""The charts of a report as Vega-Lite specifications: a grammar of plain values that browsers and `vl-convert` draw.

No colour is named here. Marks carry a style (`real`, `padding`, `boundary` ...), and the page or the exporter
brings the configuration that gives each style its colour, so that one specification serves light, dark and paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lengthwise.report.batch_charts import batch_charts, epoch_chart, fills_chart, ranks_chart
from lengthwise.report.vega import COUNT, SHARE, Spec, chart, field

if TYPE_CHECKING:
    from lengthwise.report.model import Report

#: Labels of an axis in tokens: 512, 1k, 2k.
_BINARY: Final = "datum.value >= 1024 ? datum.value / 1024 + 'k' : datum.value"

#: Padding below this is drawn as this: a logarithmic axis has no zero.
_LEAST: Final = 1e-6


def charts(report: Report) -> dict[str, Spec]:
    """Return the specifications by name, in reading order; charts without anything to show are left out."""
    made = {
        "lengths": lengths_chart(report),
        **{f"batches-{key}": spec for key, spec in batch_charts(report)},
        "curve": curve_chart(report),
        "epoch": epoch_chart(report),
    }
    if report.settings.world_size > 1 and report.pictures.loads:
        made["ranks"] = ranks_chart(report)
    if report.pictures.fills:
        made["fills"] = fills_chart(report)
    return {name: spec for name, spec in made.items() if spec}


def lengths_chart(report: Report) -> Spec:
    """Return the distribution of samples and of tokens over length, with the recommended boundaries."""
    bins = report.pictures.bins
    rows = [
        {
            "from": round(low, 1),
            "to": round(high, 1),
            "samples": round(samples),
            "tokens": round(tokens),
            "of samples": samples / max(report.lengths.samples, 1),
            "of tokens": tokens / max(report.lengths.tokens, 1),
        }
        for low, high, samples, tokens in zip(bins.edges, bins.edges[1:], bins.samples, bins.tokens, strict=False)
    ]
    tooltip = [
        field("from", title="from (tokens)", format=COUNT),
        field("to", title="to", format=COUNT),
        field("samples", format=COUNT),
        field("of samples", format=SHARE),
        field("tokens", format=COUNT),
        field("of tokens", format=SHARE),
    ]
    axis = {"values": [1 << power for power in range(31)], "labelExpr": _BINARY, "labelOverlap": True}
    x = field("from", title="length (tokens)", scale={"type": "log", "nice": False}, axis=axis)
    share: Spec = {"type": "quantitative", "title": "share of all", "axis": {"format": ".0%", "tickCount": 5}}
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "style": "real"},
            "encoding": {"y": {"field": "of samples", **share}, "x2": {"field": "to"}, "y2": {"datum": 0}},
        },
        {
            "mark": {"type": "line", "style": "tokens", "interpolate": "step-after"},
            "encoding": {"y": {"field": "of tokens", **share}},
        },
    ]
    boundaries = report.strategy(report.recommended).boundaries
    if boundaries:
        values = [{"bound": bound} for bound in boundaries]
        layers.append(
            {
                "data": {"values": values},
                "mark": {"type": "rule", "style": "boundary"},
                "encoding": {
                    "x": field("bound", scale={"type": "log", "nice": False}),
                    "tooltip": [field("bound", title="boundary (tokens)", format=COUNT)],
                },
            }
        )
    # The hover target comes last: invisible bars of full height, so that a low column is as easy to meet as a high one.
    layers.append(
        {
            "mark": {"type": "bar", "style": "target"},
            "encoding": {"x2": {"field": "to"}, "y": {"value": 0}, "y2": {"value": "height"}, "tooltip": tooltip},
        }
    )
    return chart(
        "Share of samples (bars) and of tokens (line) over length", 220, data=rows, encoding={"x": x}, layer=layers
    )


def curve_chart(report: Report) -> Spec:
    """Return padding against the number of optimal buckets, with the knee and the number that pays."""
    curve = report.curve
    rows: list[Spec] = [
        {"buckets": k, "padding": max(ratio - 1, _LEAST), "mark": "", "note": ""}
        for k, ratio in enumerate(curve.padded_ratios, start=1)
    ]
    rows[curve.knee - 1] |= {"mark": "marked", "note": f"{curve.knee}: the knee"}
    rows[curve.chosen - 1] |= {"mark": "marked", "note": f"{curve.chosen} buckets: one more pays less than 0.5%"}
    x = field(
        "buckets",
        title="number of buckets, boundaries optimal",
        axis={"values": list(range(1, len(rows) + 1)), "format": "d", "labelOverlap": True},
        scale={"domain": [1, max(len(rows), 2)]},
    )
    axis = {"format": "~%", "tickCount": 6}
    y = field("padding", title="padding, logarithmic", axis=axis, scale={"type": "log", "nice": True})
    tooltip = [field("buckets", format="d"), field("padding", format=".2%")]
    marked: Spec = {"transform": [{"filter": "datum.mark == 'marked'"}]}
    # Above the mark, on the side that has room.
    beside = {"align": "left", "dx": 6} if curve.chosen <= max(len(rows) // 2, 1) else {"align": "right", "dx": 4}
    note = {"text": {"field": "note", "type": "nominal"}}
    layers = [
        {"mark": {"type": "line", "style": "line"}},
        {"mark": {"type": "point", "style": "dots"}, "encoding": {"tooltip": tooltip}},
        {**marked, "mark": {"type": "point", "style": "knee"}, "encoding": {"tooltip": tooltip}},
        {**marked, "mark": {"type": "text", "style": "note", "dy": -16, **beside}, "encoding": note},
    ]
    return chart("Padding against the number of buckets", 220, data=rows, encoding={"x": x, "y": y}, layer=layers)
