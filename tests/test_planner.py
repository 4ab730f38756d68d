"""Plans keep their promises, whatever the layout and the lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import lengthwise as lw

if TYPE_CHECKING:
    from lengthwise.layouts import Order, PadTo

ORDERS = ("bucketed", "shuffled", "sorted")


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
