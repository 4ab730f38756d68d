"""The charts of a report as pictures: SVG to scale, PNG to paste."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from lengthwise._core import LengthwiseError
from lengthwise.report import palette
from lengthwise.report.charts import charts

if TYPE_CHECKING:
    import os

    from lengthwise.report.model import Report

#: Pixels of a picture's width in its own units, and how many times as many a PNG has.
_WIDTH: Final = 720
_SCALE: Final = 2


def save(report: Report, folder: str | os.PathLike[str]) -> list[Path]:
    """Write every chart of a report into a folder, as SVG and as PNG, in the colours of paper.

    Returns:
        The files, two a chart.

    Raises:
        LengthwiseError: the packages of the extra `report` are not installed.
        OSError: the folder cannot be written.

    Cost: about 0.2 s a chart, and once 1 s to start the renderer.
    """
    try:
        import vl_convert
    except ModuleNotFoundError as error:
        raise LengthwiseError(f"charts need {error.name}: pip install 'lengthwise[report]'") from error
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    config = {**palette.config(palette.LIGHT), "background": palette.LIGHT["ground"]}
    written = []
    for name, spec in charts(report).items():
        svg = vl_convert.vegalite_to_svg({**spec, "title": spec["description"], "width": _WIDTH}, config=config)
        for suffix, content in (("svg", svg.encode()), ("png", vl_convert.svg_to_png(svg, scale=_SCALE))):
            file = folder / f"{name}.{suffix}"
            file.write_bytes(content)
            written.append(file)
    return written
