"""Plans keep their promises, whatever the layout and the lengths."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.story import PUBLISHED_BOUNDARIES, story_lengths

if TYPE_CHECKING:
    import numpy.typing as npt

    from lengthwise.layouts import Order, PadTo

ORDERS = ("bucketed", "shuffled", "sorted")
#: A changed stream is a new major version.
GOLDEN = [[11, 10], [9, 6], [1, 4, 3, 5], [0, 2], [8, 7]]
GOLDEN_SUM = 250777557863464
GOLDEN_STARTS = 1591711248912


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
        assert "world_size" in str(error)  # noqa: PT017 (too few samples for the ranks is the one excuse)
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
    assert plan.padded_tokens.sum() / 1_896_425_587 == pytest.approx(ratio, abs=0.001)
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
        ([float("nan")], {}, {}, "integers"),
        ([1, 9000], {"max_tokens": 8192}, {}, r"lengths\[1\] is 9000 tokens, but a batch holds max_tokens=8192"),
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
        ([1], {"boundaries": 2}, {}, "k is 2|distinct"),
        ([1], {"boundaries": "many"}, {}, "boundaries is 'many'"),
        ([1], {"order": "random"}, {}, "order is 'random'"),
        ([1], {"pad_to": "max"}, {}, "pad_to is 'max'"),
        ([1], {"last_batch": 3}, {}, "last_batch is 3"),
        ([1], {"longest_first": 1}, {}, "longest_first is 1"),
        ([1], {}, {"seed": -1}, "seed is -1"),
        ([1], {}, {"seed": 2**64}, "seed is 18446744073709551616"),
        ([1], {}, {"world_size": 0}, "world_size is 0"),
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
