"""Descriptions and pictures for notebooks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import lengthwise as lw
from lengthwise import LengthwiseError

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def axes() -> Iterator[Any]:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, made = plt.subplots()
    yield made
    figure.canvas.draw()
    plt.close("all")


def test_describe_as_text(story: Any) -> None:
    text = repr(lw.describe(story))
    assert text.startswith("902,087 samples, 1,896,425,587 tokens, 2,102.3 a sample")
    assert "p50 1,727" in text
    assert "█" in text
    assert "4k" in text
    assert all(len(line) <= 160 for line in text.splitlines())


def test_describe_as_html(story: Any) -> None:
    page = lw.describe(story)._repr_html_()
    assert "<td>1,727</td>" in page
    assert page.count("<rect") == 72
    assert "tokens: " in page


def test_describe_says_what_looks_wrong() -> None:
    described = lw.describe([7] * 500)
    assert "! all 500 samples have length 7" in repr(described)
    assert "all 500 samples" in described._repr_html_()


@pytest.mark.parametrize("lengths", [[], [0, 0, 0]])
def test_nothing_to_describe(lengths: list[int]) -> None:
    with pytest.raises(LengthwiseError, match="no tokens to describe"):
        lw.describe(lengths)


def test_plot_lengths(axes: Any, story: Any) -> None:
    assert lw.describe(story).plot(axes, boundaries=[770, 8192]) is axes
    assert len(axes.patches) == 2
    assert len(axes.lines) == 2
    assert axes.get_xscale() == "log"


def test_plot_a_plan(axes: Any) -> None:
    plan = lw.Planner(range(1, 2_000), lw.Padded(4_000), seed=0).plan()
    plan.plot(axes)
    (points,) = axes.lines
    assert points.get_ydata().max() <= 4_000
    assert "<th>padded/real</th>" in plan._repr_html_()


def test_plot_packs(axes: Any) -> None:
    lengths = np.random.default_rng(0).integers(0, 70, 500)
    packs = lw.pack(lengths, 64, overlong="split")
    packs.plot(lengths, axes)
    assert sum(bar.get_height() for bar in axes.patches) == len(packs)


def test_a_plot_without_axes_makes_a_figure(axes: Any) -> None:
    assert lw.describe([3, 4, 5]).plot() is not axes


def test_a_missing_matplotlib_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(LengthwiseError, match=r"pip install 'lengthwise\[plot\]'"):
        lw.describe([3, 4]).plot()
