"""The page in a real browser: it draws, stays silent, loads nothing, fits a phone, and is small."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from lengthwise import LengthwiseError
from lengthwise.report.analysis import analyse
from lengthwise.report.charts import charts
from lengthwise.report.model import Dataset, Report
from lengthwise.speed import SpeedModel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("jinja2")
vl_convert = pytest.importorskip("vl_convert")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")
def report(story: Any) -> Report:
    return analyse(
        story[:50_000],
        max_tokens=65_536,
        world_size=4,
        speed=SpeedModel.from_tokens_per_second(32_000),
        dataset=Dataset(source="data/</script><b>bold", column="seq_len"),
    )


@pytest.fixture(scope="module")
def page(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from lengthwise.report.html import to_html

    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(to_html(report), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the page is tested through playwright")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser to test the page in; install one of {', '.join(BROWSERS)}")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


def test_the_page_is_small_and_names_no_address(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) < 2_000_000
    head = text[: text.index('<script type="application/json"')]
    assert "http://" not in head
    assert "https://" not in head
    assert "src=" not in head
    assert "<b>bold" not in head


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (1200, "dark"), (360, "light")])
def test_the_page_draws_in_a_browser(page: Path, browser: Any, report: Report, width: int, scheme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    tab = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(page.as_uri())
    tab.wait_for_function("document.documentElement.dataset.drawn", timeout=30_000)

    expected = charts(report)
    assert tab.evaluate("document.querySelectorAll('[data-chart] svg').length") == len(expected)
    marks = tab.evaluate(
        "[...document.querySelectorAll('[data-chart] svg')].map(s => s.querySelectorAll('path').length)"
    )
    assert all(count > 3 for count in marks), marks
    assert said == []
    assert asked == [page.as_uri()]
    # Nothing makes the page scroll sideways; wide tables scroll in themselves.
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    context.close()


def test_hovering_shows_values_and_the_theme_can_be_switched(page: Path, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 1200, "height": 800}, color_scheme="light")
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.wait_for_function("document.documentElement.dataset.drawn", timeout=30_000)
    box = tab.locator('[data-chart="lengths"] svg').bounding_box()
    tab.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.4)
    tab.wait_for_selector("#vg-tooltip-element.visible", timeout=5_000)
    assert "samples" in tab.inner_text("#vg-tooltip-element")
    tab.click("#theme")
    tab.wait_for_function("document.documentElement.dataset.theme == 'dark'")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 29)"
    context.close()


def test_every_chart_is_valid_vega_lite(report: Report) -> None:
    altair = pytest.importorskip("altair")
    for spec in charts(report).values():
        altair.Chart.from_dict(spec, validate=True)


def test_plots_are_written_as_svg_and_png(report: Report, tmp_path: Path) -> None:
    from lengthwise.report.plots import save

    files = save(report, tmp_path / "plots")
    assert len(files) == 2 * len(charts(report))
    assert {file.suffix for file in files} == {".svg", ".png"}
    assert all(file.stat().st_size > 1_000 for file in files)
    assert files[1].read_bytes().startswith(b"\x89PNG")


def test_a_missing_package_is_one_sentence(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from lengthwise.report.html import to_html

    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(LengthwiseError, match=r"pip install 'lengthwise\[report\]'"):
        to_html(report)


def test_short_samples_by_the_thousand_make_no_large_page() -> None:
    from lengthwise.report.html import to_html

    lengths = np.random.default_rng(0).integers(1, 5, 300_000)
    assert len(to_html(analyse(lengths, max_tokens=65_536)).encode()) < 2_000_000
