"""The table of orders."""

from __future__ import annotations

from typing import Any

import pytest

import lengthwise as lw


def test_table_prints_and_converts() -> None:
    table = lw.compare(range(1, 2001), max_tokens=20_000, seed=3)
    assert [row.name for row in table.rows] == ["sorted", "shuffled", "bucketed", "packed"]
    assert len(table) == 4
    lines = repr(table).splitlines()
    assert len(lines) == 5
    assert lines[1].startswith("sorted")
    assert "padded/real" in lines[0]
    arrow = table.to_arrow()
    assert arrow.num_rows == 4
    assert arrow["ratio"].to_pylist() == [row.summary.ratio for row in table.rows]
    assert max(arrow["speed"].to_pylist()) == 1.0
    assert table._repr_html_().count("<tr>") == 5


@pytest.mark.parametrize("overlong", ["drop", "truncate", "split", "alone"])
def test_over_long_samples_are_compared(overlong: Any) -> None:
    table = lw.compare([5, 9, 30, 7], max_tokens=20, overlong=overlong)
    assert [row.name for row in table.rows][3:] == ([] if overlong == "alone" else ["packed"])
    assert len(lw.compare([5, 9], max_tokens=2**62)) == 4


def test_own_layouts_are_escaped_in_html() -> None:
    table = lw.compare([1, 2, 3], max_tokens=4, layouts={"<mine>": lw.Padded(4)})
    assert "&lt;mine&gt;" in table._repr_html_()
    assert table["<mine>"].summary.samples == 3


def test_plot() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    table = lw.compare(range(1, 2001), max_tokens=20_000)
    axes = table.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["sorted", "shuffled", "bucketed", "packed"]
    assert [text.get_text() for text in axes.texts] == [f"{row.summary.ratio:.3f}" for row in table.rows]
    assert table.plot(axes) is axes
    plt.close("all")


def test_bad_input_is_refused() -> None:
    with pytest.raises(lw.LengthwiseError, match="max_tokens"):
        lw.compare([1], max_tokens=0)
    with pytest.raises(lw.LengthwiseError, match=r'name is .packs., but must be one of "sorted"'):
        lw.compare([1], max_tokens=10)["packs"]
    with pytest.raises(lw.LengthwiseError, match=r"layouts is .*, but must map names to layouts"):
        lw.compare([1], max_tokens=10, layouts=[lw.Padded(4)])  # type: ignore[arg-type]
    with pytest.raises(lw.LengthwiseError, match="empty"):
        lw.compare([], max_tokens=10)
