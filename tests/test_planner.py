"""Plans keep their promises, whatever the layout and the lengths."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise import _core
from lengthwise.story import PUBLISHED_BOUNDARIES, story_lengths

if TYPE_CHECKING:
    import numpy.typing as npt

    from lengthwise.layouts import Order, PadTo

ORDERS: tuple[Order, ...] = ("bucketed", "shuffled", "sorted")
#: A changed stream is a new major version.
GOLDEN = [[11, 8], [7, 10], [1, 2, 5, 3], [0, 4], [6, 9]]
GOLDEN_SUM = 250661212757619
GOLDEN_STARTS = 1589630856892


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("pad_to", ["longest", "boundary"])
@pytest.mark.parametrize("world_size", [1, 3, 8])
def test_every_sample_once_within_the_budget(order: Order, pad_to: PadTo, world_size: int) -> None:
    lengths = np.random.default_rng(0).integers(1, 500, 1000)
    layout = lw.Padded(2000, boundaries=[100, 250, 500], order=order, pad_to=pad_to)
    plan = lw.Planner(lengths, layout, world_size=world_size).plan(epoch=1)
    assert np.array_equal(np.sort(np.concatenate(list(plan))), np.arange(1000))
    assert len(plan) % world_size == 0
    for batch, padded_length in zip(plan, plan.padded_lengths, strict=True):
        assert padded_length * len(batch) <= 2000
        assert lengths[batch].max() <= padded_length


@settings(max_examples=150, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 300), min_size=1, max_size=80),
    max_tokens=st.integers(300, 2000),
    order=st.sampled_from(ORDERS),
    pad_to=st.sampled_from(["longest", "boundary"]),
    multiple_of=st.sampled_from([1, 4]),
    last_batch=st.sampled_from(["keep", "merge", "drop"]),
    remainder=st.sampled_from(["split", "repeat", "drop"]),
    world_size=st.integers(1, 4),
    seed=st.integers(0, 2**64 - 1),
    dtype=st.sampled_from([np.uint16, np.int32, np.int64]),
)
def test_promises_through_python(
    *, lengths: list[int], max_tokens: int, world_size: int, seed: int, dtype: Any, remainder: Any, **layout: Any
) -> None:
    array = np.array(lengths, dtype)
    arguments: dict[str, Any] = {"seed": seed, "world_size": world_size, "remainder": remainder}
    planner = lw.Planner(array, lw.Padded(max_tokens, **layout), **arguments)
    try:
        plan = planner.plan(seed % 7)
    except lw.LengthwiseError as error:
        # Too few samples for the ranks, or only short batches, which are dropped, are the two excuses.
        assert "world_size" in str(error) or 'last_batch is "drop"' in str(error)  # noqa: PT017
        return
    used = np.bincount(np.concatenate([np.zeros(0, np.int64), *plan]).astype(np.int64), minlength=len(lengths))
    assert (used == 0).sum() == plan.accounts["dropped"]
    assert (used - 1).clip(min=0).sum() == plan.accounts["repeated"]
    assert len(plan) % world_size == 0
    assert (plan.sizes.astype(int) * plan.padded_lengths <= max_tokens).all()
    again = lw.Planner(lengths, lw.Padded(max_tokens, **layout), **arguments, threads=3).plan(seed % 7)
    for name in ("indices", "starts", "sizes", "padded_lengths"):
        assert np.array_equal(getattr(plan, name), getattr(again, name))


def test_fixed_shapes_with_everything_short_left_out() -> None:
    lengths = np.random.default_rng(2).integers(1, 1000, 20_000)
    layout = lw.Padded(16_384, boundaries=[250, 500, 1000], pad_to="boundary", multiple_of=8, last_batch="drop")
    plan = lw.Planner(lengths, layout, world_size=4, remainder="drop").plan()
    assert set(plan.padded_lengths.tolist()) == {256, 504, 1000}
    assert plan.sizes.tolist() == [layout.batch_size(length) for length in plan.padded_lengths.tolist()]
    assert plan.summary.shapes == 3


def test_epochs_and_seeds_differ() -> None:
    lengths = np.arange(1, 301)
    layout = lw.Padded(3000)
    plans = {
        (seed, epoch): lw.Planner(lengths, layout, seed=seed).plan(epoch).indices.tobytes()
        for seed in range(3)
        for epoch in range(3)
    }
    assert len(set(plans.values())) == 9


def test_the_stream_is_pinned() -> None:
    planner = lw.Planner(range(1, 13), lw.Padded(24, boundaries=[6, 12]), seed=7, steps="shuffled")
    assert [batch.tolist() for batch in planner.plan(1)] == GOLDEN
    big = lw.Planner(np.arange(100_000) % 1000, lw.Padded(10_000, boundaries=[500, 999]), seed=1, steps="shuffled")
    plan = big.plan(2)
    weights = np.arange(100_000, dtype=np.uint64)
    assert int((plan.indices * weights).sum()) == GOLDEN_SUM
    assert int((plan.starts.astype(np.uint64) * np.arange(len(plan), dtype=np.uint64)).sum()) == GOLDEN_STARTS


#: (samples, layout, settings, fingerprints of indices, starts and padded lengths) with the bits of this major version.
PINNED: dict[str, tuple[int, dict[str, Any], dict[str, Any], str]] = {
    "large": (3_000_000, {}, {}, "bcfe39b017067dbc703321a7"),
    "fixed": (3_000_000, {"pad_to": "boundary"}, {"threads": 2}, "bcfe39b034d52bcbed4f9955"),
    "shuffled": (300_000, {"order": "shuffled"}, {}, "783fcd0d6c982d0ee58249b7"),
    "sorted": (300_000, {"order": "sorted"}, {}, "414542277d11edd36c1ba759"),
    "merged": (
        300_000,
        {"last_batch": "merge", "multiple_of": 8, "samples_multiple_of": 4},
        {},
        "1c4a68f60ea70e5a4bdd2113",
    ),
    "split": (300_000, {"boundaries": [500, 1000]}, {"overlong": "split"}, "6812b084316cdf87eea3a233"),
    "ranks": (300_000, {}, {"world_size": 8, "accumulate": 2}, "1c4a68f65a8768f4f00219bb"),
    "one shape": (
        300_000,
        {"pad_to": "boundary"},
        {"world_size": 8, "steps": "same_shape"},
        "1c4a68f6dd5ec638a06fb691",
    ),
}


@pytest.mark.parametrize("name", PINNED)
def test_every_stream_is_pinned(name: str) -> None:
    samples, layout, settings_, expected = PINNED[name]
    lengths = (np.arange(samples, dtype=np.uint64) * 2_654_435_761 % 4000).astype(np.uint16)
    layout = {"boundaries": [250, 500, 1000, 2000, 4000], **layout}
    for dtype in (np.uint16, np.uint32):
        planner = lw.Planner(lengths.astype(dtype), lw.Padded(32_768, **layout), seed=2**63 + 5, **settings_)
        plan = planner.plan(9)
        arrays = (plan.indices.view(np.uint32), plan.starts.view(np.uint32), plan.padded_lengths)
        assert "".join(_core.fingerprint(array)[:8] for array in arrays) == expected


@pytest.mark.parametrize(
    ("layout", "ratio"),
    [
        ({"order": "sorted"}, 1.0001),
        ({"order": "shuffled"}, 2.150),
        ({"boundaries": PUBLISHED_BOUNDARIES}, 1.224),
        ({"boundaries": 6}, 1.1946),
        ({"boundaries": 6, "pad_to": "boundary"}, 1.2204),
        ({"boundaries": 16}, 1.068),
        ({"boundaries": 32}, 1.035),
    ],
)
def test_the_story(layout: dict[str, Any], ratio: float) -> None:
    plan = lw.Planner(story_lengths(), lw.Padded(65_536, **layout)).plan()
    assert plan.padded_tokens.sum() / 1_896_425_587 == pytest.approx(ratio, abs=0.002)
    assert plan.sizes.sum() == 902_087


@pytest.mark.parametrize("k", [1, 4, 8, 16, "auto"])
@pytest.mark.parametrize("options", [{}, {"multiple_of": 8, "samples_multiple_of": 4, "max_samples": 40}])
def test_boundaries_are_chosen_for_the_way_of_padding(k: Any, options: dict[str, Any]) -> None:
    def planned(bounds: Any, **layout: Any) -> tuple[npt.NDArray[np.uint32], int]:
        planner = lw.Planner(story_lengths(), lw.Padded(65_536, boundaries=bounds, **options, **layout))
        assert planner.boundaries is not None
        return planner.boundaries, int(planner.plan().padded_tokens.sum())

    chosen, tokens = planned(k)
    best = lw.optimal_boundaries(story_lengths(), len(chosen), objective="longest", max_tokens=65_536, **options)
    assert tokens < planned(best)[1] * 1.001
    assert not (chosen % options.get("multiple_of", 1)).any()
    fixed, _ = planned(k, pad_to="boundary")
    aligned = {"multiple_of": options.get("multiple_of", 1)}
    assert fixed.tolist() == lw.optimal_boundaries(story_lengths(), k, **aligned).tolist()


@pytest.mark.parametrize(
    ("lengths", "layout", "settings_", "message"),
    [
        ([], {}, {}, "lengths is empty"),
        ([1, -2], {}, {}, r"lengths\[1\] is -2"),
        ([1.5, 2], {}, {}, "integers"),
        (np.array([]), {}, {}, "lengths is empty"),
        ([2**70], {}, {}, "convert with .* if no value is above 2147483647"),
        (np.ma.array([3, 4], mask=[False, True]), {}, {}, r"lengths\[1\] is masked"),
        ([float("nan")], {}, {}, "integers"),
        ([1, 9000], {"max_tokens": 8192}, {}, r"lengths\[1\] is 9000 tokens, but a batch holds max_tokens=8192"),
        (
            [65],
            {"max_tokens": 65, "multiple_of": 8},
            {},
            r"lengths\[0\] is 65 tokens \(72 after rounding .*max_tokens=65",
        ),
        ([2**31 - 1], {"max_tokens": 2**40, "multiple_of": 8}, {}, "but the longest padded length is 2147483647"),
        ([1, 9000], {"boundaries": [10, 8192]}, {}, r"lengths\[1\] is 9000 tokens, but the last boundary is 8192"),
        ([1], {"max_tokens": 0}, {}, "max_tokens is 0"),
        ([1], {"max_tokens": 1.5}, {}, "max_tokens is 1.5"),
        ([1], {"max_tokens": True}, {}, "max_tokens is True"),
        ([1], {"max_samples": 0}, {}, "max_samples is 0"),
        ([1], {"multiple_of": 0}, {}, "multiple_of is 0"),
        ([1], {"max_tokens": 10, "multiple_of": 64}, {}, "multiple_of is 64"),
        ([1], {"samples_multiple_of": 8, "max_samples": 4}, {}, "samples_multiple_of is 8"),
        ([1], {"boundaries": []}, {}, "boundaries has 0 bounds"),
        ([1], {"boundaries": [5, 5]}, {}, r"boundaries\[1\] is 5"),
        ([1], {"boundaries": [0, 5]}, {}, r"boundaries\[0\] is 0"),
        ([1], {"boundaries": "many"}, {}, "boundaries is 'many'.* ascending upper bounds"),
        ([1], {"boundaries": 2.0}, {}, "boundaries is 2.0"),
        (
            [1],
            {"boundaries": {1, 2}},
            {},
            r"boundaries is \{1, 2\}, but must be an integer .* or ascending upper bounds",
        ),
        ([1], {"boundaries": [1.5]}, {}, r"boundaries must be integers.*boundaries\[0\] is 1.5"),
        ([1], {"order": "random"}, {}, "order is 'random'"),
        ([1], {"pad_to": "max"}, {}, "pad_to is 'max'"),
        ([1], {"last_batch": 3}, {}, "last_batch is 3"),
        ([1], {"longest_first": 1}, {}, "longest_first is 1"),
        ([1], {}, {"seed": -1}, "seed is -1"),
        ([1], {}, {"seed": 2**64}, "seed is 18446744073709551616"),
        ([1], {}, {"world_size": 0}, "world_size is 0"),
        ([1], {}, {"world_size": 2**31, "remainder": "repeat"}, "world_size is 2147483648, but must be from 1 to"),
        ([1], {}, {"world_size": 2**20, "accumulate": 17}, "accumulate is 17, but must be from 1 to 16"),
        ([1], {}, {"threads": 0}, "threads is 0"),
        ([1], {}, {"overlong": "cut"}, "overlong is 'cut'"),
        ([1], {}, {"remainder": "none"}, "remainder is 'none'"),
        ([100], {"max_tokens": 10}, {"overlong": "drop"}, 'overlong="drop" leaves none'),
    ],
)
def test_bad_input_is_refused(
    lengths: list[Any], layout: dict[str, Any], settings_: dict[str, Any], message: str
) -> None:
    with pytest.raises(lw.LengthwiseError, match=message):
        lw.Planner(lengths, lw.Padded(**{"max_tokens": 65_536, **layout}), **settings_)


@pytest.mark.parametrize(
    "bounds",
    [
        (4, 9),
        range(4, 10, 5),
        np.array([4, 9], np.uint8),
        pa.array([4, 9]),
        pytest.param("polars", id="polars"),
        pytest.param("pandas", id="pandas"),
        pytest.param("torch", id="torch"),
        lw.solve_boundaries([4, 9, 9], 2),
    ],
)
def test_boundaries_of_every_kind(bounds: Any) -> None:
    if isinstance(bounds, str):
        module = pytest.importorskip(bounds)
        bounds = module.tensor([4, 9]) if bounds == "torch" else module.Series([4, 9])
    layout = lw.Padded(18, boundaries=bounds)
    assert layout == lw.Padded(18, boundaries=[4, 9])
    assert hash(layout) == hash(lw.Padded(18, boundaries=[4, 9]))
    assert lw.Planner([3, 9, 4, 8, 2], layout).boundaries.tolist() == [4, 9]  # type: ignore[union-attr]


@pytest.mark.parametrize("pad_to", ["longest", "boundary"])
def test_an_overhead_decides_the_number_of_buckets(pad_to: PadTo) -> None:
    def bounds(overhead: float | None) -> list[int]:
        layout = lw.Padded(65_536, boundaries=lw.Auto(overhead), pad_to=pad_to)
        json.dumps(layout.config)
        planner = lw.Planner(story_lengths(), layout)
        assert planner.boundaries is not None
        assert planner.config["boundaries"] == planner.boundaries.tolist()
        return list(planner.boundaries)

    automatic = lw.Planner(story_lengths(), lw.Padded(65_536, boundaries="auto", pad_to=pad_to))
    assert bounds(None) == automatic.config["boundaries"]
    assert len(bounds(10**8)) < len(bounds(10**7)) < len(bounds(10**6))
    if pad_to == "boundary":
        assert bounds(10**7) == lw.optimal_boundaries(story_lengths(), lw.Auto(10**7)).tolist()


def test_more_buckets_than_lengths_are_one_for_each() -> None:
    planner = lw.Planner([3, 3, 9, 0, 17], lw.Padded(40, boundaries=8, multiple_of=8))
    assert planner.boundaries is not None
    assert planner.boundaries.tolist() == [8, 16, 24]


@pytest.mark.parametrize("pad_to", ["longest", "boundary"])
@pytest.mark.parametrize("bounds", [None, 2, "auto"])
def test_bounds_are_chosen_for_what_fits_once_rounded(pad_to: PadTo, bounds: Any) -> None:
    """65 tokens fit the budget, but not the 72 that they are padded to."""
    layout = lw.Padded(65, boundaries=bounds, multiple_of=8, pad_to=pad_to)
    for overlong, longest in (("drop", 32), ("truncate", 64), ("split", 64), ("alone", 32)):
        planner = lw.Planner([65, 10, 30], layout, overlong=overlong)  # type: ignore[arg-type]
        assert planner.boundaries is not None
        assert planner.boundaries[-1] == longest
        assert planner.plan().summary.samples == {"drop": 2, "split": 4}.get(overlong, 3)


@pytest.mark.parametrize("layout", [18, None, lw.Padded, [3, 4]])
def test_what_is_no_layout_is_refused(layout: Any) -> None:
    with pytest.raises(lw.LengthwiseError, match=r"layout is .*, but must be Padded, PaddedPairs or Packed"):
        lw.Planner([3, 4], layout)


def test_planners_do_not_change() -> None:
    planner = lw.Planner([3, 4], lw.Padded(18), seed=5)
    for name in ("seed", "lengths", "layout", "threads"):
        with pytest.raises(
            lw.LengthwiseError, match=rf"{name} of a planner cannot be changed; planner.replace\({name}="
        ):
            setattr(planner, name, 3)
    assert planner.replace(seed=3).seed == 3
    assert planner.seed == 5


def test_an_epoch_without_batches_is_refused() -> None:
    for steps in ("auto", "same_shape"):
        layout = lw.Padded(18, pad_to="boundary", last_batch="drop")
        planner = lw.Planner([3, 4], layout, steps=steps, world_size=2)
        with pytest.raises(lw.LengthwiseError, match='last_batch is "drop", but the epoch has no full batch'):
            planner.plan()


def test_too_few_samples_for_the_ranks() -> None:
    planner = lw.Planner([5, 5], lw.Padded(10), world_size=4)
    with pytest.raises(lw.LengthwiseError, match="world_size is 4"):
        planner.plan()
    with pytest.raises(lw.LengthwiseError, match="epoch is -1"):
        planner.plan(-1)


def test_odd_lengths_are_planned() -> None:
    zeros = lw.Planner([0, 0, 0], lw.Padded(2)).plan()
    assert zeros.sizes.tolist() == [2, 1]
    giant = lw.Planner([2**31 - 1] * 3, lw.Padded(2**62, order="shuffled")).plan()
    assert giant.summary.padded_tokens == 3 * (2**31 - 1)
    assert len(lw.Planner([7], lw.Padded(7)).plan()) == 1


def test_the_gil_is_free_meanwhile() -> None:
    planner = lw.Planner(np.random.default_rng(0).integers(1, 5000, 3_000_000), lw.Padded(65_536))
    ticks = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    planner._ready.plan(planner.lengths, 0)
    end = time.perf_counter()
    stop.set()
    thread.join()
    assert any(start < moment < end for moment in ticks)


@pytest.mark.parametrize(
    "layout",
    [
        *(lw.Padded(5_000, boundaries=4, order=order) for order in ORDERS),
        *(lw.Padded(5_000, boundaries=4, order=order, pad_to="boundary") for order in ORDERS),
        lw.Packed(1_000),
        lw.Packed(70_000),
    ],
    ids=repr,
)
@pytest.mark.parametrize("threads", [1, 2])
def test_lengths_that_have_changed_are_noticed(layout: Any, threads: int) -> None:
    lengths = np.random.default_rng(0).integers(1, 500, 600_000, dtype=np.uint16)
    planner = lw.Planner(lengths, layout, threads=threads)
    lengths[[7, 400_000]] = lengths[[400_000, 7]]
    plan = planner.plan(1)
    assert np.array_equal(np.sort(plan.indices), np.arange(len(lengths)))
    # One sample, in bins that have room for many more.
    lengths[300_000] = 4_000
    with pytest.raises(lw.LengthwiseError, match="lengths have changed since the planner was made"):
        planner.plan(1)
