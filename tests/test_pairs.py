"""Samples with two lengths: what a plan promises, and everything around it."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import lengthwise as lw
from lengthwise.verification import verify_plan

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

#: A changed stream is a new major version.
GOLDEN: list[Any] = [
    ([0, 4], [5, 12]),
    ([6, 9], [10, 6]),
    ([1, 2], [3, 11]),
    ([7, 10], [11, 5]),
    ([11, 8], [12, 4]),
    ([5, 3], [6, 9]),
]
GOLDEN_SUMS: dict[Any, Any] = {
    "longest": [250249196434082, 661507885108, 7665014065, 3675835323],
    "boundary": [250249196434082, 709290522509, 8383700750, 3993929604],
}


def speech(n: int) -> npt.NDArray[np.uint32]:
    """Frames of ten milliseconds, and the tokens that are spoken in them."""
    random = np.random.default_rng(5)
    frames = np.clip(random.gamma(6, 250, n), 50, 4000)
    tokens = np.clip(frames * 0.03 * random.lognormal(0, 0.4, n), 1, 400)
    return np.stack([frames, tokens], axis=1).astype(np.uint32)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    pairs = speech(600_000)
    for layout in (lw.PaddedPairs(65_536), lw.PaddedPairs(65_536, pad_to="boundary")):
        plans = [lw.Planner(pairs, layout, seed=3, threads=threads).plan(1) for threads in (1, 2, 5)]
        for other in plans[1:]:
            for name in ("indices", "starts", "sizes", "padded_lengths"):
                assert np.array_equal(getattr(plans[0], name), getattr(other, name)), name


def test_the_stream_is_pinned() -> None:
    pairs = [[first, 13 - first] for first in range(1, 13)]
    layout = lw.PaddedPairs(40, cells=[[6, 12], [12, 6]])
    plan = lw.Planner(pairs, layout, seed=7, steps="shuffled").plan(1)
    assert [(batch.tolist(), shape) for batch, shape in zip(plan, plan.padded_lengths.tolist(), strict=True)] == GOLDEN
    frames = np.arange(100_000)
    big = np.stack([frames % 997, frames * 7 % 503], axis=1)
    cells = [[250 * row, 126 * column] for row in range(1, 5) for column in range(1, 5)]
    for pad_to, sums in GOLDEN_SUMS.items():
        plan = lw.Planner(big, lw.PaddedPairs(20_000, cells=cells, pad_to=pad_to), seed=1, steps="shuffled").plan(2)
        weights = np.arange(1, len(plan) + 1, dtype=np.uint64)
        found = [
            (plan.indices * np.arange(100_000, dtype=np.uint64)).sum(),
            (plan.starts.astype(np.uint64) * weights).sum(),
        ]
        found += [(plan.padded_lengths[:, side] * weights).sum() for side in range(2)]
        assert [int(value) for value in found] == sums, pad_to


def test_one_cell_of_one_length_is_the_plan_of_that_length() -> None:
    lengths = np.random.default_rng(1).integers(1, 500, 3000)
    nothing = np.zeros_like(lengths)
    bounds = [100, 250, 499]
    one = lw.Planner(lengths + 1, lw.Padded(4000, boundaries=[bound + 1 for bound in bounds]), seed=3).plan(2)
    cells = [[bound, 1] for bound in bounds]
    two = lw.Planner(np.stack([lengths, nothing], axis=1), lw.PaddedPairs(4000, cells=cells), seed=3).plan(2)
    for name in ("indices", "starts", "sizes"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    assert np.array_equal(one.padded_lengths, two.padded_lengths.sum(axis=1))


def test_fixed_shapes_are_few_and_steps_can_have_one() -> None:
    pairs = speech(20_000)
    layout = lw.PaddedPairs(32_768, cells=12, pad_to="boundary", multiple_of=(8, 4), last_batch="drop")
    planner = lw.Planner(pairs, layout, world_size=4, remainder="drop")
    plan = planner.plan()
    shapes = {tuple(shape) for shape in plan.padded_lengths.tolist()}
    assert planner.boundaries is not None
    assert shapes == {tuple(cell) for cell in planner.boundaries.tolist()}
    assert all(first % 8 == 0 and second % 4 == 0 for first, second in shapes)
    full = [layout.batch_size(shape) for shape in plan.padded_lengths.tolist()]
    assert plan.sizes.tolist() == full
    assert plan.summary.shapes == len(shapes) == 12
    same = planner.replace(
        steps="same_shape", remainder="split", layout=lw.PaddedPairs(32_768, cells=12, pad_to="boundary")
    )
    plan = same.plan()
    shapes_of_steps = plan.padded_lengths.reshape(-1, 4, 2)
    assert np.all(shapes_of_steps == shapes_of_steps[:, :1])
    assert np.array_equal(np.sort(np.concatenate(list(plan))), np.arange(20_000))
    assert (plan.padded_tokens <= 32_768).all()
    assert plan.padded_tokens[:4].max() // plan.sizes[0] == same.boundaries.sum(axis=1).max()  # type: ignore[union-attr]


def test_cells_of_a_tensor() -> None:
    torch = pytest.importorskip("torch")
    assert lw.PaddedPairs(40, cells=torch.tensor([[6, 12]])) == lw.PaddedPairs(40, cells=((6, 12),))


def test_cells_of_every_kind() -> None:
    pairs = speech(5000)
    stripes = lw.optimal_stripes(pairs[:, 0], pairs[:, 1], 6)
    arrays = [lw.Planner(pairs, lw.PaddedPairs(20_000, cells=cells)).plan() for cells in (stripes, stripes.shapes)]
    assert np.array_equal(arrays[0].indices, arrays[1].indices)
    chosen = lw.Planner(pairs, lw.PaddedPairs(20_000))
    assert chosen.boundaries is not None
    assert chosen.boundaries.shape == (32, 2)
    tokens = chosen.boundaries.sum(axis=1)
    assert tokens.tolist() == sorted(tokens.tolist())
    assert chosen.plan().summary.padding < 0.12
    again = lw.Planner(pairs, lw.PaddedPairs(20_000, cells=chosen.config["cells"]))
    assert np.array_equal(again.plan(3).indices, chosen.plan(3).indices)
    few = lw.Planner([[1, 2], [1, 2], [3, 1]], lw.PaddedPairs(9))
    assert few.boundaries is not None
    assert few.boundaries.tolist() == [[1, 2], [3, 1]]


def test_the_cheapest_cell_that_holds_a_sample_is_its_own() -> None:
    layout = lw.PaddedPairs(1000, cells=[[11, 40], [30, 6], [31, 50]], pad_to="boundary")
    plan = lw.Planner([[11, 6], [11, 7], [12, 7]], layout).plan()
    shapes = {int(batch[0]): shape for batch, shape in zip(plan, plan.padded_lengths.tolist(), strict=True)}
    assert shapes == {0: [30, 6], 1: [11, 40], 2: [31, 50]}


def test_weights_count_one_length_as_several_tokens() -> None:
    pairs = np.array([[80, 10]] * 10)
    plan = lw.Planner(pairs, lw.PaddedPairs(480, weights=(1, 8))).plan()
    assert plan.sizes.tolist() == [3, 3, 3, 1] or sorted(plan.sizes.tolist()) == [1, 3, 3, 3]
    assert plan.summary.real_tokens == 1600
    costs = lw.Planner(pairs, lw.PaddedPairs(480, weights=(1, 8)), cost=(1, 0.5)).plan().costs
    assert sorted(costs.tolist()) == [160 + 3250.0, *[3 * (160 + 3250.0)] * 3]


def test_overlong_samples() -> None:
    pairs = [[5, 5], [90, 20], [5, 60], [6, 4]]
    layout = lw.PaddedPairs(100, cells=[[50, 50], [95, 50]])
    plan = lw.Planner(pairs, layout, overlong="drop").plan()
    assert plan.accounts["dropped"] == 2
    assert sorted(np.concatenate(list(plan)).tolist()) == [0, 3]
    rounded, fixed = (
        lw.PaddedPairs(100, cells=[[50, 50]], multiple_of=8),
        lw.PaddedPairs(100, cells=[[50, 50]], pad_to="boundary"),
    )
    for layout, alone in ((rounded, [[96, 24], [8, 64]]), (fixed, [[90, 20], [5, 60]])):
        plan = lw.Planner(pairs, layout, overlong="alone").plan()
        assert plan.accounts["alone"] == plan.summary.alone == 2
        shapes = {tuple(batch.tolist()): shape for batch, shape in zip(plan, plan.padded_lengths.tolist(), strict=True)}
        assert [shapes[1,], shapes[2,]] == alone


BAD: list[tuple[Any, dict[str, Any], dict[str, Any], str]] = [
    ([1, 2, 3], {}, {}, r"lengths must be integers\[n, 2\].*combine="),
    ([], {}, {}, r"integers\[n, 2\]"),
    (np.zeros((0, 2), int), {}, {}, "lengths is empty"),
    (np.zeros((0, 2), int), {"cells": [[1, 1]]}, {}, "lengths is empty"),
    (np.ones((4, 3), int), {}, {}, r"got shape \(4, 3\)"),
    ([[1, 2], [3]], {}, {}, "flat sequence|integers"),
    ([[1.5, 2]], {}, {}, r"lengths\[0, 0\] is 1.5"),
    ([[1, np.nan]], {}, {}, r"lengths\[0, 1\] is nan"),
    ([[1, 2], [3, -4]], {}, {}, r"lengths\[1, 1\] is -4; a length cannot be negative"),
    ([[1, 2], [2**31, 4]], {}, {}, r"lengths\[1, 0\] is 2147483648 tokens"),
    (np.array([[1, "a"]], object), {}, {}, r"lengths\[0, 1\] is 'a'"),
    ([[1, 2], [60, 60]], {}, {}, r"lengths\[1\] is 60 by 60, but a batch holds max_tokens=100, not 120; choose"),
    ([[1, 2], [2, 1]], {"cells": [[9, 1]]}, {}, r"lengths\[0\] is 1 by 2, but fits no cell"),
    ([[1, 2]], {"cells": [[9, 1]]}, {"overlong": "drop"}, 'overlong="drop" leaves none'),
    ([[60, 60]], {}, {"overlong": "drop"}, 'overlong="drop" leaves none'),
    ([[1, 2]], {}, {"overlong": "truncate"}, "no one place to cut"),
    ([[1, 2]], {}, {"overlong": "split"}, "no one place to cut"),
    ([[2**31 - 1, 1]], {}, {"overlong": "alone"}, r"lengths\[0\] is 2147483647 by 1, together 2147483648"),
    ([[1, 2]], {"cells": [[60, 60]], "pad_to": "boundary"}, {}, r"cells\[0\] is 60 by 60, together 120 padded tokens"),
    (
        [[1, 90], [90, 1]],
        {"cells": 1, "pad_to": "boundary"},
        {},
        r"cells is 1, but then samples \(1\) would need a cell",
    ),
    ([[1, 2]], {"cells": [[5, 5], [5, 5]]}, {}, "5 by 5 twice"),
    ([[1, 2]], {"cells": [[0, 5]]}, {}, r"cells\[0\] is 0 by 5"),
    ([[1, 2]], {"cells": [[i, 1] for i in range(1, 1026)]}, {}, "1025 cells"),
    ([[1, 2]], {}, {"steps": "same_shape"}, 'pad_to="longest"'),
    ([[1, 2]], {}, {"world_size": 2}, "too few samples"),
]


@pytest.mark.parametrize(("pairs", "layout", "options", "message"), BAD)
def test_bad_input(pairs: Any, layout: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(lw.LengthwiseError, match=message):
        lw.Planner(pairs, lw.PaddedPairs(100, **layout), **options).plan()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"max_tokens": 1}, "max_tokens is 1, but the shortest padded sample is 2"),
        ({"multiple_of": (64, 64)}, "shortest padded sample is 128"),
        ({"multiple_of": (8,)}, "multiple_of is .* two integers"),
        ({"multiple_of": 0}, "multiple_of is 0"),
        ({"multiple_of": (1, 0)}, r"multiple_of\[1\] is 0"),
        ({"weights": 2}, "weights is 2, but must be two integers"),
        ({"weights": (1, 0)}, r"weights\[1\] is 0"),
        ({"weights": (1, 2**16)}, r"weights\[1\] is 65536"),
        ({"weights": (1.0, 2)}, r"weights\[0\] is 1.0"),
        ({"cells": 0}, "cells is 0"),
        ({"cells": 2000}, "cells is 2000"),
        ({"cells": "auto"}, "cells is 'auto'.*optimal_stripes"),
        ({"cells": [3, 4]}, r"cells must be integers\[n, 2\]"),
        ({"cells": []}, r"cells must be integers\[n, 2\]"),
        ({"max_samples": 0}, "max_samples is 0"),
        ({"samples_multiple_of": 0}, "samples_multiple_of is 0"),
        ({"pad_to": "cell"}, "pad_to is 'cell'"),
        ({"last_batch": "merge"}, "last_batch is 'merge'"),
        ({"longest_first": 1}, "longest_first is 1"),
    ],
)
def test_bad_layouts(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(lw.LengthwiseError, match=message):
        lw.PaddedPairs(**({"max_tokens": 100} | arguments))


def test_pairs_where_one_length_is_wanted() -> None:
    for layout in (lw.Padded(100), lw.Packed(100)):
        with pytest.raises(lw.LengthwiseError, match=r"got shape \(1, 2\); PaddedPairs plans samples of two lengths"):
            lw.Planner([[1, 2]], layout)
    plan = lw.Planner([[1, 2], [3, 4]], lw.PaddedPairs(100)).plan()
    with pytest.raises(
        lw.LengthwiseError, match=r"two lengths; give the targets of each, as in targets=lengths\[:, 1\]"
    ):
        lw.batch_targets(plan)
    assert lw.batch_targets(plan, targets=[2, 4]).sum() == 6


def test_the_largest_lengths_are_right_or_refused() -> None:
    most = 2**31 - 1
    pairs = [[most // 2, most // 2], [1, most - 1], [most - 1, 1]]
    plan = lw.Planner(pairs, lw.PaddedPairs(2**40, cells=2)).plan()
    assert plan.summary.real_tokens == 3 * most - 1
    assert (plan.padded_tokens <= 2**40).all()
    assert np.array_equal(plan.padded_lengths[0], plan.padded_lengths.max(axis=0)) or len(plan) > 1
    with pytest.raises(lw.LengthwiseError, match=r"lengths\[0\] is 2147483647 by 2147483647"):
        lw.Planner([[most, most]], lw.PaddedPairs(2**62)).plan()
    dropped = lw.Planner([[most, most], [2, 3]], lw.PaddedPairs(2**62), overlong="drop").plan()
    assert dropped.accounts["dropped"] == 1


def test_written_and_read_again(tmp_path: Path) -> None:
    pairs = speech(3000)
    layout = lw.PaddedPairs(20_000, cells=5, multiple_of=(8, 1), weights=(1, 4), pad_to="boundary")
    plan = lw.Planner(pairs, layout, world_size=2, seed=9).plan(4)
    plan.write(tmp_path / "plan.arrow")
    for again in (lw.read_plan(tmp_path / "plan.arrow"), lw.read_plan(tmp_path / "plan.arrow", pairs)):
        assert np.array_equal(again.padded_lengths, plan.padded_lengths)
        assert [batch.tolist() for batch in again] == [batch.tolist() for batch in plan]
        assert again.config == plan.config
    assert again.summary == plan.summary
    assert [check for check in verify_plan(again) if not check.passed] == []
    other = pairs.copy()
    other[7, 1] += 1
    with pytest.raises(lw.LengthwiseError, match=r"\(3,000 samples\), but the plan in"):
        lw.read_plan(tmp_path / "plan.arrow", other)


def test_numpy_integers_are_integers(tmp_path: Path) -> None:
    number = np.int64(100)
    for lengths, layout in (
        ([[3, 4]], lw.PaddedPairs(number, multiple_of=np.int32(2), cells=np.int64(2), max_samples=number)),  # type: ignore[arg-type]
        ([[3, 4]], lw.PaddedPairs(number, multiple_of=(np.int32(2), 1), weights=np.array([1, 2]))),  # type: ignore[arg-type]
        ([3], lw.Padded(number, multiple_of=np.int32(2), max_samples=number)),  # type: ignore[arg-type]
    ):
        lw.Planner(lengths, layout).plan().write(tmp_path / "plan.arrow")
        config = lw.read_plan(tmp_path / "plan.arrow", lengths).config
        assert config["max_tokens"] == 100
        assert config["multiple_of"] in (2, [2, 1])


def test_pickled_also_from_a_mapped_file(tmp_path: Path) -> None:
    pairs = speech(1000)
    np.save(tmp_path / "pairs.npy", pairs)
    for lengths in (pairs, np.load(tmp_path / "pairs.npy", mmap_mode="r")):
        planner = lw.Planner(lengths, lw.PaddedPairs(20_000, cells=4), seed=2)
        small = pickle.dumps(planner)
        assert len(small) < (2000 if lengths is not pairs else 20_000)
        again = pickle.loads(small)  # noqa: S301
        assert np.array_equal(again.plan(1).indices, planner.plan(1).indices)
        assert again.fingerprint == planner.fingerprint
        assert repr(again).startswith("<Planner of 1,000 samples for 1 ranks: PaddedPairs(max_tokens=20000, cells=4")


def test_lengths_in_any_memory_give_one_plan() -> None:
    pairs = speech(2000)
    layout = lw.PaddedPairs(20_000, cells=6)
    expected = lw.Planner(pairs, layout).plan().indices
    for same in (np.asfortranarray(pairs), pairs.astype(np.int64), pairs.astype(np.uint16), np.tile(pairs, 2)[:, :2]):
        planner = lw.Planner(same, layout)
        assert np.array_equal(planner.plan().indices, expected)
        assert planner.fingerprint == lw.Planner(pairs, layout).fingerprint


def test_comparison_and_summary_count_both_lengths() -> None:
    pairs = speech(4000)
    table = lw.compare(pairs, max_tokens=20_000)
    assert [row.name for row in table.rows] == ["one cell", "32 cells"]
    assert lw.compare(pairs.tolist(), max_tokens=20_000).rows[0].summary == table.rows[0].summary
    assert table["32 cells"].summary.ratio < 1.15
    assert table["one cell"].summary.ratio > 1.5
    summary = table["one cell"].summary
    assert summary.real_tokens == int(pairs.sum())
    assert abs(summary.mixing.neighbour_correlation) < 0.2
    assert summary.mixing.step_spread == pytest.approx(1, abs=0.35)
