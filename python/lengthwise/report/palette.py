"""The colours of a report, light and dark, and what each style of a chart's marks looks like in them."""

from __future__ import annotations

from typing import Any, Final

#: By meaning: the page's ground and text, what is computed, what is padding, and what to look at.
LIGHT: Final = {
    "ground": "#ffffff",
    "raised": "#f5f6f8",
    "line": "#dde1e7",
    "ink": "#1b2330",
    "quiet": "#5f6b7c",
    "real": "#0f7c8c",
    "other": "#5fb3bf",
    "padding": "#cfd5dd",
    "tokens": "#b0521e",
    "boundary": "#6b4fa0",
    "good": "#23734a",
    "warn": "#8a5a00",
}
DARK: Final = {
    "ground": "#12161d",
    "raised": "#1b212b",
    "line": "#313a48",
    "ink": "#e6eaf0",
    "quiet": "#97a3b4",
    "real": "#41b6c4",
    "other": "#2b7f8a",
    "padding": "#3a4352",
    "tokens": "#f0955a",
    "boundary": "#b49be6",
    "good": "#5fc08e",
    "warn": "#e0b050",
}

_FONT: Final = "system-ui, sans-serif"


def css(palette: dict[str, str]) -> str:
    """Return a palette as CSS custom properties."""
    return " ".join(f"--{name}: {colour};" for name, colour in palette.items())


def config(palette: dict[str, str]) -> dict[str, Any]:
    """Return the Vega-Lite configuration that draws charts in a palette."""
    words = {"labelColor": palette["quiet"], "titleColor": palette["quiet"], "titleFontWeight": "normal"}
    lines = {"gridColor": palette["line"], "domainColor": palette["line"], "tickColor": palette["line"]}
    return {
        "background": "transparent",
        "font": _FONT,
        "view": {"stroke": None},
        "title": {"color": palette["ink"], "anchor": "start", "fontSize": 14},
        "axis": {**words, **lines, "labelFontSize": 11, "titleFontSize": 12},
        "axisX": {"grid": False},
        "legend": {**words, "labelLimit": 260, "symbolType": "square"},
        "range": {"category": [palette[name] for name in ("padding", "real", "boundary", "tokens")]},
        "style": {
            "real": {"color": palette["real"]},
            "other": {"color": palette["other"]},
            "padding": {"color": palette["padding"]},
            "line": {"color": palette["real"], "strokeWidth": 2},
            "tokens": {"color": palette["tokens"], "strokeWidth": 2},
            "boundary": {"color": palette["boundary"], "strokeWidth": 1.5, "strokeDash": [4, 3]},
            "target": {"color": "transparent"},
            "dots": {"color": palette["real"], "filled": True, "size": 26, "opacity": 1},
            "knee": {"color": palette["boundary"], "strokeWidth": 2.5, "size": 160, "opacity": 1},
            "gap": {"color": palette["padding"], "strokeWidth": 1.5},
            "note": {"color": palette["ink"], "fontSize": 12},
        },
    }
