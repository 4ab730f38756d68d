"""The padding curve: every number's optimum, its knee, and how it is shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise import LengthwiseError


@given(st.lists(st.integers(0, 200), min_size=1, max_size=300).filter(any))
def test_every_number_is_the_optimum(lengths: list[int]) -> None:
    curve = lw.padding_curve(lengths, 40)
    assert len(curve) == min(40, len({length for length in lengths if length}))
    for k, solution in zip(curve.k.tolist(), curve, strict=True):
        assert solution.cost == solution.lower_bound == lw.solve_boundaries(lengths, k).cost
        assert len(solution) == k


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=8).flatmap(
        lambda values: st.lists(st.sampled_from(values), min_size=1, max_size=40)
    ),
    st.fixed_dictionaries(
        {
            "multiple_of": st.integers(1, 3),
            "min_count": st.integers(0, 6),
            "max_ratio": st.sampled_from([1.3, 2.0, np.inf]),
            "include": st.sampled_from([[], [6], [12, 36]]),
        }
    ),
    st.sampled_from([{}, {"objective": lambda x: x * x}, {"objective": "steps", "max_tokens": 64}]),
)
def test_constraints_leave_the_optimum_of_every_number_they_allow(
    lengths: list[int], constraints: dict[str, Any], objective: dict[str, Any]
) -> None:
    best = brute_force(lengths, **constraints, **objective)
    if not best:
        with pytest.raises(LengthwiseError, match=r"min_count|max_ratio|include"):
            lw.padding_curve(lengths, 40, **constraints, **objective)
        return
    curve = lw.padding_curve(lengths, 40, **constraints, **objective)
    assert dict(zip(curve.k.tolist(), curve.costs.tolist(), strict=True)) == best
    for k in curve.k.tolist():
        assert curve[k].boundaries.tolist() == lw.optimal_boundaries(lengths, k, **constraints, **objective).tolist()
    assert curve.knee in best
    assert curve.auto(0) == max(best, key=lambda k: (-best[k], -k))


def brute_force(
    lengths: list[int],
    *,
    multiple_of: int,
    min_count: int,
    max_ratio: float,
    include: list[int],
    objective: Any = lambda x: x,
    max_tokens: int = 0,
) -> dict[int, float]:
    """The least cost of every number of boundaries that some boundaries have, from the definitions."""
    occupied = {-(-length // multiple_of) * multiple_of for length in lengths}
    candidates = np.array(sorted(occupied | {bound for bound in include if bound % multiple_of == 0}))
    best: dict[int, float] = {}
    for chosen in range(1 << (len(candidates) - 1)):
        bounds = candidates[[*(bool(chosen >> i & 1) for i in range(len(candidates) - 1)), True]]
        counts = np.bincount(np.searchsorted(bounds, lengths), minlength=len(bounds))
        if not set(include) <= set(bounds.tolist()) or counts.min() < min_count:
            continue
        if np.any(bounds[1:] > max_ratio * bounds[:-1]):
            continue
        if objective == "steps":
            cost = int(np.sum(-(-counts // np.maximum(max_tokens // bounds, 1))))
        else:
            cost = int(np.sum(counts * objective(bounds)))
        best[len(bounds)] = min(cost, best.get(len(bounds), cost))
    return best


def test_a_constrained_story(story: npt.NDArray[np.uint16]) -> None:
    constraints: dict[str, Any] = {"min_count": 20_000, "max_ratio": 2.0, "include": [2048], "multiple_of": 64}
    curve = lw.padding_curve(story, 16, **constraints)
    assert curve.k[0] > 1
    assert repr(curve).startswith(f"PaddingCurve({curve.k[0]} to 16 boundaries")
    assert (1 in curve, 16 in curve, np.int64(16) in curve, "16" in curve) == (False, True, True, False)
    for k in curve.k.tolist():
        assert curve[k].cost == curve[k].lower_bound == lw.solve_boundaries(story, k, **constraints).cost
    with pytest.raises(LengthwiseError, match=f"k is 1 boundaries, but the curve holds {curve.k[0]} to 16"):
        curve[1]


def test_story(story: npt.NDArray[np.uint16]) -> None:
    curve = lw.padding_curve(story, 64)
    assert [curve[k].padding_tokens for k in (6, 8, 16, 32)] == [417_807_138, 296_538_773, 141_145_226, 70_634_951]
    assert 4 <= curve.knee <= 8
    assert curve.auto() == len(lw.optimal_boundaries(story, "auto"))
    assert curve.auto(0) == 64
    assert curve.auto(1e12) == 1
    assert repr(curve).startswith("PaddingCurve(1 to 64 boundaries, padding 289.63% to 1.85%, knee at ")


@pytest.mark.parametrize(
    "options",
    [
        {"objective": "longest", "max_tokens": 65_536},
        {"objective": "steps", "max_tokens": 65_536, "multiple_of": 8},
        {"objective": np.polynomial.Polynomial([0, 1, 1e-4])},
        {"multiple_of": 64},
    ],
)
def test_objectives(story: npt.NDArray[np.uint16], options: dict[str, Any]) -> None:
    curve = lw.padding_curve(story, 12, **options)
    assert np.all(np.diff(curve.costs) < 0)
    single = lw.solve_boundaries(story, 12, **options)
    assert curve[12].boundaries.tolist() == single.boundaries.tolist()
    assert curve[12].cost == single.cost


def test_flat_and_single_curves_have_a_knee() -> None:
    assert lw.padding_curve([5, 5], 3).knee == 1
    assert lw.padding_curve([1, 2], 9, objective=lambda x: 0 * x + 3).knee == 1


def test_table(story: npt.NDArray[np.uint16]) -> None:
    curve = lw.padding_curve(story, 8)
    table = curve.to_arrow()
    assert table.schema.field("boundaries").type == pa.list_(pa.uint32())
    assert table["boundaries"][5].as_py() == [1115, 1887, 2911, 4297, 4917, 8191]
    assert table["k"].to_pylist() == list(range(1, 9))
    assert table["padding"].to_numpy() == pytest.approx(curve.padding)
    html = curve._repr_html_()
    assert html.count("<tr>") == 9
    assert "22.03%" in html


def test_plot(story: npt.NDArray[np.uint16]) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    curve = lw.padding_curve(story, 8)
    axes = curve.plot()
    assert axes.get_xlabel() == "number of buckets"
    assert [text.get_text() for text in axes.texts] == [f"{curve.knee} buckets"]
    assert lw.padding_curve(story, 12, min_count=20_000).plot(axes) is axes
    plt.close("all")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lw.padding_curve([1, 2], 0), "max_buckets is 0"),
        (lambda: lw.padding_curve([], 3), "lengths is empty"),
        (lambda: lw.padding_curve([1, 2], 2)[0], "k is 0"),
        (lambda: lw.padding_curve([1, 2], 2)[3], "k is 3"),
        (lambda: lw.padding_curve([1, 2], 2).auto(-1), "overhead is -1"),
        (lambda: lw.padding_curve([1, 2], 2, objective="steps"), "needs max_tokens"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(LengthwiseError, match=message):
        call()
