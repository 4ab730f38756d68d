"""The report as one page that needs nothing else: style, charts and the library that draws them are inside.

Problem: a report is opened months later, on a phone, on a machine without a network. Method: Vega-Lite draws the
charts from specifications; `vl-convert` carries its JavaScript, which is put into the page. The page forbids itself
any request by a content security policy. Cost: about 1 MB, of which 0.9 is the library; bundling it takes 2 s, once a
machine and version: the result is kept in the user's cache folder where that can be written.
"""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lengthwise._core import LengthwiseError
from lengthwise.report import palette, words
from lengthwise.report.charts import charts
from lengthwise.report.headline import headline

if TYPE_CHECKING:
    from lengthwise.report.model import Report


def to_html(report: Report) -> str:
    """Return the report as one HTML document.

    Raises:
        LengthwiseError: the packages of the extra `report` are not installed.
    """
    try:
        import jinja2
        import vl_convert  # noqa: F401
    except ModuleNotFoundError as error:
        raise LengthwiseError(f"an HTML report needs {error.name}: pip install 'lengthwise[report]'") from error
    from lengthwise import __version__

    drawn = charts(report)
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    pictured = dict.fromkeys(batch.strategy for batch in report.pictures.batches)
    return environment.from_string(_part("page.html.j2")).render(
        r=report,
        title=f"{Path(report.dataset.source).name or report.dataset.source}: lengthwise report",
        source=report.dataset.source,
        headline=headline(report),
        bucketed=report.strategy(report.recommended),
        pictured=[(key, report.strategy(key).name) for key in pictured],
        charts=drawn,
        charts_json=_data(drawn),
        configs_json=_data({"light": palette.config(palette.LIGHT), "dark": palette.config(palette.DARK)}),
        vega=_in_script(vega()),
        script=_part("page.js"),
        style=_part("page.css"),
        light=palette.css(palette.LIGHT),
        dark=palette.css(palette.DARK),
        words=words,
        version=__version__,
    )


def vega() -> str:
    """Return the JavaScript of Vega, Vega-Lite and Vega-Embed; it defines `vegaEmbed`."""
    kept = Path.home() / ".cache" / "lengthwise" / f"vega-{version('vl-convert-python')}.js"
    try:
        return kept.read_text(encoding="utf-8")
    except OSError:
        pass
    import vl_convert

    script: str = vl_convert.javascript_bundle()  # type: ignore[call-arg] # its stub lacks the default
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        unfinished = kept.with_suffix(f".{os.getpid()}")
        unfinished.write_text(script, encoding="utf-8")
        unfinished.replace(kept)
    except OSError:
        pass
    return script


def _part(name: str) -> str:
    return files("lengthwise.report").joinpath(name).read_text(encoding="utf-8")


def _data(value: Any) -> str:
    return _in_script(json.dumps(value, separators=(",", ":"), allow_nan=False))


def _in_script(text: str) -> str:
    """Return text that cannot end the script element it is put in."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")
