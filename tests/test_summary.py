"""The numbers of a summary: on plans whose numbers are known, and against their definitions on any plan."""

from __future__ import annotations

from itertools import combinations
from statistics import StatisticsError, correlation, fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw


def test_costs_of_a_plan_made_by_hand() -> None:
    planner = lw.Planner([2, 2, 5, 5], lw.Padded(10, boundaries=[2, 5]), world_size=2)
    summary = planner.plan().summary
    # One batch of twos (4 tokens), one of fives (10 tokens), one step.
    assert (summary.samples, summary.batches, summary.steps, summary.shapes) == (4, 2, 1, 2)
    assert (summary.real_tokens, summary.padded_tokens, summary.ratio, summary.padding) == (14, 14, 1.0, 0.0)
    assert summary.largest_tokens == 10
    assert planner.plan()[summary.largest_batch].tolist() in ([2, 3], [3, 2])
    assert summary.slowest_tokens == 10
    assert summary.imbalance == pytest.approx(20 / 14 - 1)


def test_padding_is_counted() -> None:
    summary = lw.Planner([1, 3], lw.Padded(8, multiple_of=4, order="shuffled")).plan().summary
    assert (summary.real_tokens, summary.padded_tokens, summary.padding) == (4, 8, 1.0)


def test_pure_steps_spread_more_than_a_full_shuffle() -> None:
    # Steps hold (1, 1) or (3, 3): deviations of 1, where two draws of four without replacement have variance 1/2 * 2/3.
    mixing = lw.Planner([1, 1, 3, 3], lw.Padded(6, boundaries=[1, 3], max_samples=2)).plan().summary.mixing
    assert mixing.step_spread == pytest.approx(3**0.5)


def test_a_full_shuffle_into_batches_of_one_size_has_spread_one() -> None:
    lengths = np.random.default_rng(0).integers(1, 1000, 40_000)
    layout = lw.Padded(10**6, max_samples=20, order="shuffled", longest_first=False)
    mixing = lw.Planner(lengths, layout).plan().summary.mixing
    assert mixing.step_spread == pytest.approx(1, abs=0.05)
    assert mixing.neighbour_correlation == pytest.approx(0, abs=0.1)
    assert mixing.batchmates_again == pytest.approx(19 / 39_999, rel=0.3)


def test_sorted_batches_are_the_same_every_epoch() -> None:
    lengths = np.random.default_rng(1).integers(1, 1000, 5000)
    mixing = lw.Planner(lengths, lw.Padded(5000, order="sorted")).plan().summary.mixing
    assert mixing.batchmates_again == 1
    assert mixing.step_spread > 2


def test_a_next_epoch_that_cannot_be_planned_meets_nobody_again() -> None:
    # Two batches where the short sample comes first; else it is dropped, and one sample is left for two ranks.
    planner = lw.Planner([40, 1], lw.Padded(40, boundaries=[40], last_batch="drop"), seed=0, world_size=2)
    with pytest.raises(lw.LengthwiseError, match="too few samples"):
        planner.plan(1)
    summary = planner.plan(0).summary
    assert (summary.batches, summary.mixing.batchmates_again) == (2, 0)


@pytest.mark.parametrize("lengths", [[7], [7] * 50])
def test_undefined_numbers_are_zero(lengths: list[int]) -> None:
    mixing = lw.Planner(lengths, lw.Padded(14)).plan().summary.mixing
    assert (mixing.neighbour_correlation, mixing.step_spread) == (0, 0)


@pytest.mark.parametrize(
    ("overlong", "name", "samples", "tokens"),
    [("drop", "dropped", 2, 5), ("truncate", "truncated", 3, 9), ("split", "split", 5, 15), ("alone", "alone", 3, 15)],
)
def test_over_long_samples_are_counted(overlong: str, name: str, samples: int, tokens: int) -> None:
    plan = lw.Planner([3, 2, 10], lw.Padded(4, order="sorted"), overlong=overlong).plan()  # type: ignore[arg-type]
    counts = {key: getattr(plan.summary, key) for key in ("dropped", "truncated", "split", "alone", "repeated")}
    assert counts == {"dropped": 0, "truncated": 0, "split": 0, "alone": 0, "repeated": 0, name: 1}
    assert (plan.summary.samples, plan.summary.real_tokens) == (samples, tokens)


def test_repeats_and_drops_for_equal_ranks_are_counted() -> None:
    lengths, layout = [5] * 5, lw.Padded(5)
    assert lw.Planner(lengths, layout, world_size=4, remainder="repeat").plan().summary.repeated == 3
    assert lw.Planner(lengths, layout, world_size=4, remainder="drop").plan().summary.dropped == 1
    assert lw.Planner(lengths, lw.Padded(10), world_size=4).plan().summary.cut_batches == 1


@settings(max_examples=150, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 60), min_size=2, max_size=60),
    layout=st.fixed_dictionaries(
        {
            "max_tokens": st.integers(8, 200),
            "multiple_of": st.sampled_from([1, 8]),
            "order": st.sampled_from(["bucketed", "shuffled", "sorted"]),
            "last_batch": st.sampled_from(["keep", "drop"]),
        }
    ),
    arguments=st.fixed_dictionaries(
        {
            "world_size": st.integers(1, 3),
            "accumulate": st.integers(1, 2),
            "overlong": st.sampled_from(["drop", "truncate", "split", "alone"]),
            "remainder": st.sampled_from(["split", "repeat", "drop"]),
            "cost": st.sampled_from([(1, 0), (1, 0.5)]),
        }
    ),
)
def test_every_number_is_as_defined(lengths: list[int], layout: dict[str, Any], arguments: dict[str, Any]) -> None:
    try:
        planner = lw.Planner(lengths, lw.Padded(**layout), **arguments)
        plan, following = planner.plan(0), planner.plan(1)
    except lw.LengthwiseError:
        return
    summary, mixing, batches = plan.summary, plan.summary.mixing, entries(plan, lengths)
    # What a batch pads to, costs, and how they follow each other in steps.
    padded = [len(batch) * length for batch, length in zip(batches, plan.padded_lengths.tolist(), strict=True)]
    squares = [len(batch) * length**2 for batch, length in zip(batches, plan.padded_lengths.tolist(), strict=True)]
    costs = [arguments["cost"][0] * a + arguments["cost"][1] * b for a, b in zip(padded, squares, strict=True)]
    ranks, in_step = plan.world_size, plan.world_size * plan.accumulate
    steps = range(0, len(batches), in_step)
    slowest = [max(sum(costs[step + rank : step + in_step : ranks]) for rank in range(ranks)) for step in steps]
    even = [sum(costs[step : step + in_step]) / ranks for step in steps]
    heaviest = [max(sum(padded[step + rank : step + in_step : ranks]) for rank in range(ranks)) for step in steps]
    tokens = [tokens for batch in batches for _, tokens in batch]
    assert (summary.samples, summary.real_tokens, summary.padded_tokens) == (len(tokens), sum(tokens), sum(padded))
    assert (summary.batches, summary.steps) == (len(batches), len(steps))
    assert summary.shapes == len(set(zip(plan.sizes.tolist(), plan.padded_lengths.tolist(), strict=True)))
    assert (summary.largest_tokens, summary.largest_batch) == (max(padded), padded.index(max(padded)))
    assert summary.slowest_tokens == pytest.approx(fmean(heaviest))
    assert summary.imbalance == pytest.approx(sum(slowest) / sum(even) - 1)
    assert summary.worst_imbalance == pytest.approx(max(s / e for s, e in zip(slowest, even, strict=True)) - 1)
    # How well it mixes.
    together = [[entry for batch in batches[step : step + in_step] for entry in batch] for step in steps]
    assert mixing.neighbour_correlation == pytest.approx(with_next(list(map(mean, batches))), abs=1e-9)
    assert mixing.step_correlation == pytest.approx(with_next(list(map(mean, together))), abs=1e-9)
    assert mixing.step_spread == pytest.approx(spread(together, tokens), abs=1e-9)
    home = {sample: at for at, batch in enumerate(following) for sample in batch.tolist()}
    pairs = [pair for batch in plan for pair in combinations(batch.tolist(), 2)]
    met = sum(home.get(a, -1) == home.get(b, -2) for a, b in pairs)
    assert mixing.batchmates_again == pytest.approx(met / len(pairs) if pairs else 0)


def entries(plan: lw.Plan, lengths: list[int]) -> list[list[tuple[int, int]]]:
    """(sample, tokens) of every entry of every batch."""
    segments = plan.segments
    tokens = [lengths[sample] for sample in plan.indices] if segments is None else np.diff(segments)[:, 0].tolist()
    known = list(zip(plan.indices.tolist(), tokens, strict=True))
    return [known[start : start + size] for start, size in zip(plan.starts, plan.sizes.astype(int), strict=True)]


def mean(batch: list[tuple[int, int]]) -> float:
    return fmean(tokens for _, tokens in batch)


def with_next(means: list[float]) -> float:
    try:
        return correlation(means[:-1], means[1:]) if len(means) > 2 else 0
    except StatisticsError:
        return 0


def spread(steps: list[list[tuple[int, int]]], tokens: list[int]) -> float:
    middle, n = fmean(tokens), len(tokens)
    variance = fmean((token - middle) ** 2 for token in tokens)
    if len(steps) < 2 or not variance:
        return 0
    expected = fmean(variance / len(step) * (n - len(step)) / (n - 1) for step in steps)
    return float((fmean((mean(step) - middle) ** 2 for step in steps) / expected) ** 0.5)
