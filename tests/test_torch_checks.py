"""The check of a dataset against the lengths that were planned."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

import lengthwise as lw
from lengthwise.torch import check_dataset

LENGTHS = np.random.default_rng(7).integers(1, 60, 300)
DATASET = Dataset.from_dict({"input_ids": [[0] * n for n in LENGTHS.tolist()], "seq_len": LENGTHS})
PLANNER = lw.Planner(LENGTHS, lw.Padded(max_tokens=300))


@pytest.mark.parametrize("column", [None, "input_ids", "seq_len"])
def test_the_dataset_that_was_read_passes(column: str | None) -> None:
    check_dataset(DATASET, PLANNER, column=column)
    check_dataset(DATASET, PLANNER, column=column, rows=0)
    check_dataset(DATASET, PLANNER, column=column, rows=10_000)


@pytest.mark.parametrize(
    "rows",
    [
        [np.zeros(n) for n in LENGTHS],
        [[0] * n for n in LENGTHS],
        [([0] * n, "label") for n in LENGTHS],
        [{"tokens": [0] * n} for n in LENGTHS],
    ],
)
def test_rows_of_every_form(rows: Any) -> None:
    check_dataset(rows, PLANNER)


@pytest.mark.parametrize(
    "other", [DATASET.shuffle(seed=1), DATASET.select(np.argsort(LENGTHS)), DATASET.select(range(299, -1, -1))]
)
def test_another_order_is_told(other: Dataset) -> None:
    with pytest.raises(lw.LengthwiseError, match=r"dataset\[\d+\] is \d+ tokens, but lengths\[\d+\] is \d+"):
        check_dataset(other, PLANNER)


def test_another_size_is_told() -> None:
    with pytest.raises(lw.LengthwiseError, match="the dataset has 299 rows, but the planner was given 300 lengths"):
        check_dataset(DATASET.select(range(299)), PLANNER)


def test_rows_that_do_not_tell_are_refused() -> None:
    with pytest.raises(lw.LengthwiseError, match=r"has the fields \['text'\], but none that tells its length"):
        check_dataset([{"text": "a"}] * 300, PLANNER)
    with pytest.raises(lw.LengthwiseError, match="holds a NoneType, which has no length"):
        check_dataset([None] * 300, PLANNER)


def test_the_column_that_was_read_is_remembered() -> None:
    rows = [{"num_tokens": 3, "input_ids": [1]}, {"num_tokens": 4, "input_ids": [1]}]
    lengths = lw.read_lengths(rows, "num_tokens", check="none")
    planner = lw.Planner(lengths, lw.Padded(8))
    check_dataset(rows, planner)
    check_dataset(rows, pickle.loads(pickle.dumps(planner)))  # noqa: S301
    with pytest.raises(lw.LengthwiseError, match="is 1 tokens, but"):
        check_dataset(rows, planner, column="input_ids")
