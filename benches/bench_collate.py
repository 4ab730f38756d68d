"""Collators against those in common use, on batches of 65,536 tokens: equal first, then timed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from lengthwise.story import story_lengths
from lengthwise.torch import PackedCollator, PaddedCollator

TOKENS = 65_536


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Rows of the story's lengths that fill a pack, with their own labels."""
    rng = np.random.default_rng(0)
    lengths = rng.permutation(story_lengths()).astype(np.int64)
    lengths = lengths[: np.searchsorted(np.cumsum(lengths), TOKENS)]
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    values = [pa.array(rng.integers(0, 50_000, lengths.sum()), pa.int32()) for _ in range(2)]
    input_ids, labels = (pa.ListArray.from_arrays(offsets, column) for column in values)
    return pa.table({"input_ids": input_ids, "labels": labels})


def same(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    return ours.keys() == theirs.keys() and all(
        torch.equal(ours[key], value) if isinstance(value, torch.Tensor) else ours[key] == value
        for key, value in theirs.items()
    )


@pytest.mark.benchmark(group="pack 65,536 tokens from Arrow rows")
@pytest.mark.parametrize("who", ["lengthwise", "lengthwise, one table a row", "transformers"])
def test_pack(benchmark: Any, table: pa.Table, who: str) -> None:
    from transformers import DataCollatorWithFlattening

    ours = PackedCollator()
    theirs: Any = DataCollatorWithFlattening(return_flash_attn_kwargs=True, return_seq_idx=True)
    assert same(ours(table), theirs(table.to_pylist()))
    rows = [table.slice(row, 1) for row in range(table.num_rows)]
    if who == "transformers":
        benchmark(lambda: theirs(table.to_pylist()))
    else:
        benchmark(ours, table if who == "lengthwise" else rows)


@pytest.mark.benchmark(group="pack 65,536 tokens from Python lists")
@pytest.mark.parametrize("who", ["lengthwise", "transformers"])
def test_pack_lists(benchmark: Any, table: pa.Table, who: str) -> None:
    from transformers import DataCollatorWithFlattening

    theirs: Any = DataCollatorWithFlattening(return_flash_attn_kwargs=True, return_seq_idx=True)
    benchmark(PackedCollator() if who == "lengthwise" else theirs, table.to_pylist())


@pytest.mark.benchmark(group="pad 65,536 tokens from Arrow rows")
@pytest.mark.parametrize("who", ["lengthwise", "lengthwise, reused memory", "trl"])
def test_pad(benchmark: Any, table: pa.Table, who: str) -> None:
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

    theirs = DataCollatorForLanguageModeling(pad_token_id=0)
    assert same(PaddedCollator()(table), theirs(table.to_pylist()))
    if who == "trl":
        benchmark(lambda: theirs(table.to_pylist()))
    else:
        benchmark(PaddedCollator(reuse="reused" in who), table)
