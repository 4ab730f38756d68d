"""The numbers of a summary, on plans whose numbers are known."""

from __future__ import annotations

import numpy as np
import pytest

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
    planner = lw.Planner([40, 1], lw.Padded(40, boundaries=[40], last_batch="drop"), seed=3, world_size=2)
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
