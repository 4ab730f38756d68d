"""The collators of `lengthwise.torch`: the arrays of `lengthwise.collate` as tensors."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from lengthwise import LengthwiseError, collate
from lengthwise.torch import PaddedCollator

ROWS = [{"input_ids": [1, 2, 3], "loss_mask": [0, 1, 1]}, {"input_ids": [4], "loss_mask": [1]}]


def test_padded_tensors_equal_the_arrays() -> None:
    arrays, tensors = collate.PaddedCollator(pad=9)(ROWS), PaddedCollator(pad=9)(ROWS)
    assert set(arrays) == set(tensors)
    for name, array in arrays.items():
        assert tensors[name].dtype == torch.int64
        np.testing.assert_array_equal(tensors[name].numpy(), array)
    assert PaddedCollator()(ROWS, length=8)["labels"].shape == (2, 8)


def test_padded_in_a_loader_with_workers() -> None:
    loader = DataLoader(cast("Any", ROWS), batch_size=2, collate_fn=PaddedCollator(), num_workers=1)
    (batch,) = loader
    assert batch["input_ids"].tolist() == [[1, 2, 3], [4, 0, 0]]


@pytest.mark.skipif(torch.accelerator.is_available(), reason="needs a machine without an accelerator")
def test_pinning_without_an_accelerator_says_so() -> None:
    with pytest.raises(LengthwiseError, match="pin_memory is True, but torch sees no accelerator"):
        PaddedCollator(pin_memory=True)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_pinned_tensors_are_pinned() -> None:
    assert PaddedCollator(pin_memory=True)(ROWS)["input_ids"].is_pinned()


def test_arrow_tables_of_whole_batches_through_a_loader() -> None:
    import datasets

    import lengthwise as lw
    from lengthwise.torch import BatchSampler, PackedCollator

    rows = datasets.Dataset.from_dict({"input_ids": [list(range(n)) for n in range(1, 31)]}).with_format("arrow")
    planner = lw.Planner(range(1, 31), lw.Packed(64), world_size=2)
    loader = DataLoader(
        rows,
        sampler=BatchSampler(planner, rank=1, world_size=2),
        batch_size=None,
        collate_fn=PackedCollator(capacity=64),
    )
    batches = list(loader)
    assert len(batches) == planner.plan().steps
    assert all(batch["input_ids"].shape == (1, 64) for batch in batches)


@pytest.mark.parametrize("continued", [True, False])
def test_positions_of_split_samples_continue_or_restart(*, continued: bool) -> None:
    import lengthwise as lw
    from lengthwise.torch import BatchSampler, PackedCollator, Segmented

    lengths = [5, 20, 3]
    rows = [{"input_ids": list(range(n))} for n in lengths]
    planner = lw.Planner(lengths, lw.Packed(8), overlong="split")
    dataset = Segmented(rows, start_field="first" if continued else None)
    collate_fn = PackedCollator(position_start="first" if continued else 0)
    tokens = 0
    for batch in DataLoader(dataset, batch_sampler=BatchSampler(planner), collate_fn=collate_fn):
        # Here a token is its own position in the whole sample.
        same = (batch["position_ids"] == batch["input_ids"]).all()
        restarts = (batch["position_ids"][0, batch["cu_seq_lens_q"][:-1].long()] == 0).all()
        assert same if continued else restarts
        tokens += batch["input_ids"].numel()
    assert tokens == sum(lengths)


def test_the_wrappers_take_every_option_of_the_numpy_collators() -> None:
    from dataclasses import fields

    from lengthwise.torch import PackedCollator

    for wrapper, plain in ((PaddedCollator, collate.PaddedCollator), (PackedCollator, collate.PackedCollator)):
        assert {field.name for field in fields(wrapper)} == {field.name for field in fields(plain)} | {"pin_memory"}
    with pytest.raises(TypeError, match="unexpected keyword argument 'capcity'"):
        PackedCollator(capcity=8)  # type: ignore[call-arg]
    reused = PackedCollator(reuse=True)
    assert reused(ROWS)["input_ids"].data_ptr() == reused(ROWS[:1])["input_ids"].data_ptr()
