"""What every chart shares: the frame of a Vega-Lite specification, fields and formats."""

from __future__ import annotations

from typing import Any, Final

Spec = dict[str, Any]

SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"

#: Formats of whole numbers and of shares.
COUNT: Final = ",d"
SHARE: Final = ".1%"

#: The legend of a chart with several strategies: above, where a phone has room for it.
LEGEND: Final = {"orient": "top", "title": None, "columns": 1}


def field(name: str, **more: Any) -> Spec:
    """Return the encoding of a field of numbers."""
    return {"field": name, "type": "quantitative", **more}


def chart(title: str, height: int, *, data: list[Spec], **parts: Any) -> Spec:
    """Return a specification as wide as its place on the page."""
    return {
        "$schema": SCHEMA,
        "description": title,
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": data},
        **parts,
    }


def names_in(rows: list[Spec], name: str) -> list[str]:
    """Return the different values of a field, in order."""
    return list(dict.fromkeys(row[name] for row in rows))
