"""The report as JSON: the fields of `lengthwise.report.model`, versioned; `schema.json` beside this file says each.

The version rises when a field goes or changes its meaning; a new field does not raise it.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from lengthwise.report.model import VERSION

if TYPE_CHECKING:
    from lengthwise.report.model import Report


def to_dict(report: Report) -> dict[str, Any]:
    """Return the report as plain values: numbers, strings, lists, dicts and None."""
    from lengthwise import __version__

    return {"version": VERSION, "lengthwise": __version__, **asdict(report)}


def to_json(report: Report) -> str:
    """Return the report as one JSON document that `schema()` describes."""
    return json.dumps(to_dict(report), indent=2, allow_nan=False, ensure_ascii=False)


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of `to_json`.

    Example:
        >>> schema()["title"]
        'lengthwise report'
    """
    text = files("lengthwise.report").joinpath("schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded
