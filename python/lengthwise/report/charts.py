"""The charts of a report as Vega-Lite specifications: a grammar of plain values that browsers and `vl-convert` draw.

No colour is named here. Marks carry a style (`real`, `padding`, `baseline`, `boundary`), and the page or the exporter
brings the configuration that gives each style its colour, so that one specification serves light, dark and paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lengthwise.report import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lengthwise.report.model import Batch, Report

Spec = dict[str, Any]

_SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"
#: Labels of an axis in tokens: 512, 1k, 2k.
_BINARY: Final = "datum.value >= 1024 ? datum.value / 1024 + 'k' : datum.value"
_COUNT: Final = ",d"
_SHARE: Final = ".1%"

#: The legend of a chart with several strategies: above, where a phone has room for it.
_LEGEND: Final = {"orient": "top", "title": None, "columns": 1}

#: Rows of one batch that a picture shows; more would be thinner than a pixel.
_MOST_ROWS: Final = 24


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
        _field("from", title="from (tokens)", format=_COUNT),
        _field("to", title="to", format=_COUNT),
        _field("samples", format=_COUNT),
        _field("of samples", format=_SHARE),
        _field("tokens", format=_COUNT),
        _field("of tokens", format=_SHARE),
    ]
    axis = {"values": [1 << power for power in range(31)], "labelExpr": _BINARY, "labelOverlap": True}
    x = _field("from", title="length (tokens)", scale={"type": "log", "nice": False}, axis=axis)
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
    boundaries = report.strategy(report.recommended).boundaries or _best_boundaries(report)
    if boundaries:
        values = [{"bound": bound} for bound in boundaries]
        layers.append(
            {
                "data": {"values": values},
                "mark": {"type": "rule", "style": "boundary"},
                "encoding": {
                    "x": _field("bound", scale={"type": "log", "nice": False}),
                    "tooltip": [_field("bound", title="boundary (tokens)", format=_COUNT)],
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
    return _chart("Share of samples and of tokens over length", 220, data=rows, encoding={"x": x}, layer=layers)


def _best_boundaries(report: Report) -> tuple[int, ...]:
    bucketed = [strategy for strategy in report.strategies if strategy.boundaries]
    return min(bucketed, key=lambda strategy: strategy.padded_ratio).boundaries if bucketed else ()


def batch_charts(report: Report) -> Iterator[tuple[str, Spec]]:
    """Yield, for each strategy with pictures, its key and its batches drawn row by row, padding in grey."""
    keys = dict.fromkeys(batch.strategy for batch in report.pictures.batches)
    for key in keys:
        batches = [batch for batch in report.pictures.batches if batch.strategy == key]
        rows = list(_batch_rows(batches))
        height = 6 * max(row["row"] for row in rows) + 12 if rows else 0
        encoding = {
            "x": _field("start", title="tokens", axis={"format": "~s", "tickCount": 5}, scale={"nice": False}),
            "x2": {"field": "stop"},
            "y": _field("row", axis=None, scale={"reverse": True, "nice": False, "zero": False}),
            "y2": {"field": "below"},
            "tooltip": [
                {"field": "what", "title": "what", "type": "nominal"},
                _field("length", title="tokens", format=_COUNT),
                _field("batch", title="batch", format=_COUNT),
                _field("padded", title="batch padded to", format=_COUNT),
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
        yield key, _chart(title, min(max(height, 160), 420), data=rows, layer=marks)


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


def curve_chart(report: Report) -> Spec:
    """Return padding against the number of optimal buckets, with the knee marked."""
    knee = report.curve.knee
    rows = [
        {"buckets": k, "padding": max(ratio - 1, 1e-6), "mark": "knee" if k == knee else ""}
        for k, ratio in enumerate(report.curve.padded_ratios, start=1)
    ]
    x = _field(
        "buckets",
        title="number of buckets, boundaries optimal",
        axis={"values": list(range(1, len(rows) + 1)), "format": "d", "labelOverlap": True},
        scale={"domain": [1, max(len(rows), 2)]},
    )
    # Beside the knee, on the side that has room.
    right = knee <= max(len(rows) * 2 // 3, 1)
    beside = {"align": "left", "dx": 8} if right else {"align": "right", "dx": -8}
    axis = {"format": "~%", "tickCount": 6}
    y = _field("padding", title="padding, logarithmic", axis=axis, scale={"type": "log", "nice": True})
    tooltip = [_field("buckets", format="d"), _field("padding", format=".2%")]
    layers = [
        {"mark": {"type": "line", "style": "line"}},
        {"mark": {"type": "point", "style": "dots"}, "encoding": {"tooltip": tooltip}},
        {
            "transform": [{"filter": "datum.mark == 'knee'"}],
            "mark": {"type": "point", "style": "knee"},
            "encoding": {"tooltip": tooltip},
        },
        {
            "transform": [{"filter": "datum.mark == 'knee'"}],
            "mark": {"type": "text", "style": "note", "dy": -16, **beside},
            "encoding": {"text": {"value": f"{knee} buckets: more buys little"}},
        },
    ]
    return _chart("Padding against the number of buckets", 220, data=rows, encoding={"x": x, "y": y}, layer=layers)


def epoch_chart(report: Report) -> Spec:
    """Return real and padded tokens of batches over the epoch, one strategy at a time."""
    if not report.pictures.epochs:
        return {}
    rows = [
        {"strategy": report.strategy(epoch.strategy).name, "batch": batch, "real": real, "padded": padded}
        for epoch in report.pictures.epochs
        for batch, real, padded in zip(epoch.positions, epoch.real, epoch.padded, strict=True)
    ]
    names = _names(rows, "strategy")
    x = _field("batch", title="batch of the epoch", axis={"format": "~s", "tickCount": 6}, scale={"nice": False})
    tooltip = [
        _field("batch", format=_COUNT),
        _field("real", title="real tokens", format=_COUNT),
        _field("padded", title="padded tokens", format=_COUNT),
    ]
    axis: Spec = {"title": "tokens in the batch", "axis": {"format": "~s", "tickCount": 5}}
    layers = [
        {
            "mark": {"type": "rule", "style": "gap"},
            "encoding": {"y": _field("real", **axis), "y2": {"field": "padded"}, "tooltip": tooltip},
        },
        {"mark": {"type": "point", "style": "dots"}, "encoding": {"y": _field("real", **axis), "tooltip": tooltip}},
    ]
    return _chart(
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
    names = _names(rows, "strategy")
    encoding = {
        "x": {"field": "rank", "type": "ordinal", "axis": {"labelAngle": 0, "labelOverlap": True}},
        "xOffset": {"field": "strategy", "sort": names},
        "y": _field("tokens", title="padded tokens of the epoch", axis={"format": "~s", "tickCount": 5}),
        "color": {"field": "strategy", "type": "nominal", "sort": names, "legend": _LEGEND},
        "opacity": {"condition": {"test": "datum.what == 'computing'", "value": 1}, "value": 0.35},
        "order": {"field": "what", "sort": "ascending"},
        "tooltip": [
            {"field": "strategy", "type": "nominal"},
            _field("rank", format="d"),
            {"field": "what", "type": "nominal"},
            _field("tokens", title="padded tokens", format=_COUNT),
        ],
    }
    return _chart("Load of each rank", 200, data=rows, mark={"type": "bar"}, encoding=encoding)


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
    names = _names(rows, "method")
    axis = {"format": ".0%", "labelAngle": 0, "labelOverlap": True}
    encoding = {
        "x": {"field": "to", "type": "ordinal", "title": "fill of a pack, up to", "axis": axis},
        "xOffset": {"field": "method", "sort": names},
        "y": _field("share", title="share of packs", axis={"format": ".0%", "tickCount": 5}),
        "color": {"field": "method", "type": "nominal", "sort": names, "legend": _LEGEND},
        "tooltip": [
            {"field": "method", "type": "nominal"},
            {"field": "fill", "type": "nominal"},
            _field("packs", format=_COUNT),
            _field("share", format=_SHARE),
        ],
    }
    title = f"Fill of packs of {words.short(report.settings.capacity)} tokens"
    return _chart(title, 200, data=rows, mark={"type": "bar"}, encoding=encoding)


def _names(rows: list[Spec], field: str) -> list[str]:
    return list(dict.fromkeys(row[field] for row in rows))


def _field(name: str, **more: Any) -> Spec:
    return {"field": name, "type": "quantitative", **more}


def _chart(title: str, height: int, *, data: list[Spec], **parts: Any) -> Spec:
    return {
        "$schema": _SCHEMA,
        "description": title,
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": data},
        **parts,
    }
