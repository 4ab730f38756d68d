"""Steps: mixed as well as a full shuffle, balanced as far as the method promises, every sample where it belongs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw

Story = npt.NDArray[np.uint16]
METHODS = ["shuffled", "stratified", "windowed", ("windowed", 3), "routed"]


@pytest.fixture(scope="module")
def some(story: Story) -> Story:
    return story[:120_000]


@pytest.mark.parametrize("buckets", [6, 32])
@pytest.mark.parametrize(("world_size", "accumulate"), [(8, 1), (2, 4), (16, 1), (64, 1)])
def test_steps_vary_less_than_those_of_a_full_shuffle(
    some: Story, buckets: int, world_size: int, accumulate: int
) -> None:
    layout = lw.Padded(65_536, boundaries=buckets)
    summary = lw.Planner(some, layout, world_size=world_size, accumulate=accumulate).plan(1).summary
    assert summary.mixing.step_spread < 1
    assert abs(summary.mixing.step_correlation) < 0.01
    unplanned = lw.Planner(some, layout, world_size=world_size, accumulate=accumulate, steps="shuffled").plan(1).summary
    assert summary.padded_tokens == unplanned.padded_tokens
    assert summary.mixing.step_spread < 0.3 * unplanned.mixing.step_spread


def lengths_of(kind: str) -> npt.NDArray[np.uint16]:
    rng = np.random.default_rng(0)
    if kind == "uniform":
        return rng.integers(1, 8193, 60_000).astype(np.uint16)
    median, sigma = {"documents": (600, 1.4), "chats": (400, 1.0)}[kind]
    return np.clip(rng.lognormal(np.log(median), sigma, 120_000), 1, 8192).astype(np.uint16)


@pytest.mark.parametrize("buckets", [6, 16, 32])
@pytest.mark.parametrize("world_size", [8, 16])
@pytest.mark.parametrize("kind", ["documents", "chats", "uniform"])
def test_steps_vary_less_than_those_of_a_full_shuffle_whatever_the_lengths(
    kind: str, world_size: int, buckets: int
) -> None:
    lengths = lengths_of(kind)
    # What the longest samples of a step can make up for: see the guide on steps.
    mean, longest = lengths.mean(), lengths.max()
    max_samples = int((world_size - 1) * 65_536 / mean * (1 - mean / longest))
    planner = lw.Planner(lengths, lw.Padded(65_536, boundaries=buckets, max_samples=max_samples), world_size=world_size)
    summary = planner.plan(1).summary
    assert summary.mixing.step_spread < 0.75
    unlimited = planner.replace(layout=lw.Padded(65_536, boundaries=buckets)).plan(1)
    assert summary.padding == pytest.approx(unlimited.summary.padding, rel=0.01)
    assert summary.steps <= 1.025 * unlimited.steps


def test_neighbouring_steps_do_not_correlate_in_any_epoch(some: Story) -> None:
    planner = lw.Planner(some, lw.Padded(65_536, boundaries=16), world_size=16)
    trends = []
    for epoch in range(6):
        plan = planner.plan(epoch)
        means = plan.step_tokens / plan.per_rank(plan.sizes).sum(axis=1)
        assert abs(np.corrcoef(means[1:], means[:-1])[0, 1]) < max(0.01, 0.05 / np.sqrt(plan.steps))
        trends.append(np.corrcoef(means, np.arange(plan.steps))[0, 1])
    assert np.abs(trends).max() < 4 / np.sqrt(plan.steps)
    assert abs(np.mean(trends)) < 4 / np.sqrt(6 * plan.steps)


@settings(max_examples=200, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 60), min_size=40, max_size=200),
    world_size=st.integers(1, 4),
    accumulate=st.integers(1, 3),
    method=st.sampled_from([*METHODS, "same_shape"]),
    packed=st.booleans(),
    remainder=st.sampled_from(["split", "repeat", "drop"]),
)
def test_every_sample_is_used_or_counted(
    lengths: list[int], world_size: int, accumulate: int, method: Any, remainder: Any, *, packed: bool
) -> None:
    layout = lw.Packed(64) if packed else lw.Padded(64, boundaries=[20, 60], pad_to="boundary")
    planner = lw.Planner(
        lengths, layout, world_size=world_size, accumulate=accumulate, steps=method, remainder=remainder, cost=(1, 0.01)
    )
    try:
        plan = planner.plan(2)
    except lw.LengthwiseError as error:
        assert "too few samples" in str(error)  # noqa: PT017
        if method != "same_shape":
            # No number of batches that divides lies between those there are and one a sample.
            batches = len(planner.replace(world_size=1, accumulate=1, steps="shuffled").plan(2))
            divisor = world_size * accumulate
            assert remainder == "split"
            assert len(lengths) // divisor * divisor < batches
            return
        # Steps of one shape need batches that can be cut or left out.
        assert remainder != "repeat"
        cuttable = sum(length <= 20 for length in lengths)
        assert remainder == "drop" or cuttable < 40
        return
    assert len(plan) == plan.steps * world_size * accumulate
    used = np.bincount(np.concatenate(list(plan)), minlength=len(lengths)) if len(plan) else np.zeros(len(lengths))
    summary = plan.summary
    assert int(used.sum()) == len(lengths) + summary.repeated - summary.dropped
    if remainder == "split":
        assert (used == 1).all()
    for batch, padded_length in zip(plan, plan.padded_lengths.tolist(), strict=True):
        longest = max(lengths[i] for i in batch)
        assert longest <= padded_length
        assert (sum(lengths[i] for i in batch) if packed else len(batch) * padded_length) <= 64
    again = planner.replace().plan(2)
    np.testing.assert_array_equal(np.concatenate(list(plan)), np.concatenate(list(again)))


@pytest.mark.parametrize(
    "layout",
    [
        lw.Padded(400, boundaries=[20, 50, 80]),
        lw.Padded(400, boundaries=[20, 50, 80], pad_to="boundary", last_batch="merge"),
        lw.Padded(400, order="sorted"),
        lw.Padded(400, order="shuffled", last_batch="drop"),
        lw.Packed(200),
        lw.Packed(200, pad_to="fill"),
        lw.Packed(200, groups=np.arange(500) // 3),
    ],
    ids=repr,
)
@pytest.mark.parametrize("overlong", ["drop", "truncate", "split", "alone"])
@pytest.mark.parametrize("steps", ["stratified", "windowed", "routed", "shuffled", "same_shape"])
def test_real_tokens_are_those_of_the_samples(layout: Any, overlong: Any, steps: Any) -> None:
    lengths = np.random.default_rng(0).integers(1, 90, 500)
    lengths[::50] = 450
    for accumulate in (1, 2):
        options = {"world_size": 3, "accumulate": accumulate, "overlong": overlong, "steps": steps}
        try:
            plan = lw.Planner(lengths, layout, **options).plan(5)
        except lw.LengthwiseError as error:
            # Shapes of which there are too many, and policies that a layout does not have.
            assert "same_shape" in str(error) or "overlong is" in str(error)  # noqa: PT017
            continue
        used = lengths[plan.indices] if plan.segments is None else np.diff(plan.segments, axis=1)[:, 0]
        spans = [slice(start, start + size) for start, size in zip(plan.starts, plan.sizes, strict=True)]
        assert plan.real_tokens.tolist() == [int(used[span].sum()) for span in spans]


def naive_loss(plan: lw.Plan, costs: npt.NDArray[np.float64], speeds: list[float]) -> float:
    slowest = even = 0.0
    in_step = plan.world_size * plan.accumulate
    for step in range(plan.steps):
        ranks = [0.0] * plan.world_size
        for place in range(in_step):
            ranks[place % plan.world_size] += costs[step * in_step + place]
        slowest += max(cost / speed for cost, speed in zip(ranks, speeds, strict=True))
        even += sum(ranks) / sum(speeds)
    return slowest / even - 1


@pytest.mark.parametrize("method", METHODS)
def test_imbalance_is_what_the_slowest_ranks_cost(some: Story, method: Any) -> None:
    speeds = [1.0, 1.0, 2.0, 1.5]
    layout = lw.Padded(65_536, boundaries=8)
    planner = lw.Planner(
        some, layout, world_size=4, accumulate=2, steps=method, cost=(1, 1 / 24_576), rank_speed=speeds
    )
    plan = planner.plan()
    padded = plan.padded_lengths.astype(float)
    costs = plan.sizes * (padded + padded**2 / 24_576)
    np.testing.assert_allclose(plan.costs, costs)
    assert plan.summary.imbalance == pytest.approx(naive_loss(plan, costs, speeds), rel=1e-9)
    assert plan.summary.worst_imbalance >= plan.summary.imbalance


def test_windows_keep_their_bound_on_real_packs(some: Story) -> None:
    for steps in (4, 16, 64):
        planner = lw.Planner(some, lw.Packed(16_384), world_size=16, steps=("windowed", steps), cost=(1, 1 / 24_576))
        plan = planner.plan()
        bound = (plan.costs.max() - plan.costs.min()) / (steps * plan.costs.mean())
        windows = -(-plan.steps // steps) * steps / plan.steps
        assert plan.summary.imbalance <= bound * windows
    mixed = planner.replace(steps="shuffled").plan().summary.imbalance
    assert plan.summary.imbalance < 0.1 * mixed


def test_several_batches_a_rank_are_shared_evenly(some: Story) -> None:
    planner = lw.Planner(some, lw.Padded(65_536, boundaries=16), world_size=8, accumulate=4, cost=(1, 1 / 24_576))
    summary = planner.plan().summary
    assert summary.imbalance < 0.005
    assert summary.mixing.step_spread < 0.2


def test_fast_ranks_get_costly_batches(some: Story) -> None:
    layout = lw.Padded(65_536, boundaries=16)
    planner = lw.Planner(some, layout, world_size=4, cost=(1, 1 / 8192), rank_speed=[1, 2, 1, 1.2])
    plan = planner.plan()
    costs = plan.costs.reshape(-1, 4).mean(axis=0)
    assert costs[1] > costs[3] > max(costs[0], costs[2])
    even = planner.replace(rank_speed=None).plan()
    assert plan.summary.imbalance < 0.8 * naive_loss(even, even.costs, [1, 2, 1, 1.2])


def test_steps_of_one_shape(some: Story) -> None:
    layout = lw.Padded(65_536, boundaries=8, pad_to="boundary")
    plan = lw.Planner(some, layout, world_size=8, accumulate=2, steps="same_shape").plan()
    turns = plan.padded_lengths.reshape(-1, 8)
    assert (turns == turns[:, :1]).all()
    assert plan.summary.cut_batches > 0
    dropped = lw.Planner(some, layout, world_size=8, steps="same_shape", remainder="drop").plan()
    turns = dropped.padded_lengths.reshape(-1, 8)
    assert (turns == turns[:, :1]).all()
    assert dropped.summary.samples + dropped.summary.dropped == some.size


def test_routed_ranks_keep_their_lengths(some: Story) -> None:
    plan = lw.Planner(some, lw.Padded(65_536, boundaries=8), world_size=4, steps="routed").plan()
    means = (plan.real_tokens / plan.sizes).reshape(-1, 4)
    assert (np.diff(means, axis=1) >= 0).all()
    assert plan.summary.mixing.step_spread < 2


def test_the_longest_batch_still_comes_first(some: Story) -> None:
    for accumulate in (1, 2):
        plan = lw.Planner(some, lw.Padded(65_536, boundaries=8), world_size=4, accumulate=accumulate).plan()
        assert plan.padded_lengths[: 4 * accumulate].max() == plan.padded_lengths.max()


def test_a_plan_knows_its_steps() -> None:
    plan = lw.Planner(range(1, 101), lw.Padded(200), world_size=2, accumulate=3).plan()
    tokens = [sum(int(i) + 1 for batch in range(6) for i in plan[6 * step + batch]) for step in range(plan.steps)]
    assert plan.step_tokens.tolist() == tokens
    assert plan.per_rank(plan.sizes).sum() == 100
    assert len(plan.rank(1)) == 3 * plan.steps


def test_defaults_by_layout(some: Story) -> None:
    def method(layout: Any, **options: Any) -> str:
        return lw.Planner(some[:2000], layout, **options).step_maker.method

    assert method(lw.Padded(65_536)) == "shuffled"
    assert method(lw.Padded(65_536), world_size=2) == "stratified"
    assert method(lw.Padded(65_536), accumulate=2) == "stratified"
    assert method(lw.Padded(65_536, order="shuffled"), world_size=2) == "shuffled"
    assert method(lw.Packed(8192), world_size=2) == "stratified"
    assert method(lw.Packed(8192), world_size=2, cost=(1, 1e-4)) == "windowed"
    assert method(lw.Packed(8192), world_size=2, accumulate=2, cost=(1, 1e-4)) == "stratified"


def test_a_plan_with_steps_is_written_and_read(tmp_path: Any, some: Story) -> None:
    lengths = some[:5000]
    options: dict[str, Any] = {"accumulate": 2, "steps": ("windowed", 4), "cost": (1, 1e-4), "rank_speed": [1, 2]}
    plan = lw.Planner(lengths, lw.Padded(16_384), world_size=2, **options).plan(3)
    plan.write(tmp_path / "plan.arrow")
    read = lw.read_plan(tmp_path / "plan.arrow", lengths)
    assert read.summary == plan.summary
    assert lw.read_plan(tmp_path / "plan.arrow").steps == plan.steps


BAD: list[tuple[dict[str, Any], str]] = [
    ({"steps": "random"}, "steps is 'random'"),
    ({"steps": ("stratified", 3)}, "steps is 'stratified', but must be one of \"windowed\""),
    ({"steps": ("windowed", 0)}, r"steps\[1\] is 0"),
    ({"steps": "same_shape"}, 'needs few padded lengths, but the layout has pad_to="longest"'),
    ({"accumulate": 0}, "accumulate is 0"),
    ({"cost": (0, 0)}, "not both 0"),
    ({"cost": (1, -1)}, r"cost\[1\] is -1"),
    ({"cost": 1}, "cost is 1, but must be a sequence"),
    ({"cost": (1, 2, 3)}, "must be two numbers"),
    ({"rank_speed": [1]}, "rank_speed has 1 values, but world_size is 2"),
    ({"rank_speed": [1, 0]}, r"rank_speed\[1\] is 0"),
    ({"rank_speed": [1, float("nan")]}, r"rank_speed\[1\] is nan"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_arguments_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(lw.LengthwiseError, match=message):
        lw.Planner([1, 2, 3, 4], lw.Padded(8), world_size=2, **options)


def test_too_few_samples_for_whole_steps() -> None:
    with pytest.raises(lw.LengthwiseError, match="too few samples"):
        lw.Planner([1, 2, 3], lw.Padded(8), world_size=2, accumulate=2).plan()
    layout = lw.Padded(8, boundaries=[8], pad_to="boundary")
    with pytest.raises(lw.LengthwiseError, match="too few samples for whole steps"):
        lw.Planner([1, 2, 3], layout, world_size=2, accumulate=2, steps="same_shape").plan()
