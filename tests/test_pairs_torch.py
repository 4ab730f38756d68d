"""Samples with two lengths reach a training loop: read, planned, loaded, padded, resumed."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import lengthwise as lw
from lengthwise import collate
from lengthwise.torch import BatchSampler, PaddedCollator, StreamBatches, check_dataset

SIZES = np.stack(
    [np.random.default_rng(3).integers(1, 200, 400), np.random.default_rng(4).integers(1, 40, 400)], axis=1
)


class Speech(Dataset[dict[str, Any]]):
    """Samples whose fields say which sample they are of."""

    def __len__(self) -> int:
        return len(SIZES)

    def __getitem__(self, index: int) -> dict[str, Any]:
        frames, tokens = SIZES[index].tolist()
        return {"frames": np.full(frames, index, np.float32), "labels": [index] * tokens}


def collator(**options: Any) -> collate.PairCollator:
    frames = PaddedCollator({"frames": -1}, labels=False, multiple_of=8)
    return collate.PairCollator(frames, PaddedCollator({"labels": -100}, attention_mask=False), **options)


@pytest.mark.parametrize("pad_to", ["longest", "boundary"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_training_loop(pad_to: Any, workers: int) -> None:
    table = pa.table({"frames": SIZES[:, 0], "labels": SIZES[:, 1]})
    pairs = lw.read_lengths(table, ["frames", "labels"], combine="stack")
    layout = lw.PaddedPairs(4000, cells=6, pad_to=pad_to, multiple_of=(8, 1))
    planner = lw.Planner(pairs, layout, world_size=2)
    dataset = Speech()
    check_dataset(dataset, planner)
    collate_fn = collator(cells=planner.boundaries if pad_to == "boundary" else None)
    for epoch in range(2):
        plan, seen = planner.plan(epoch), []
        for rank in range(2):
            sampler = BatchSampler(planner, rank, 2)
            sampler.set_epoch(epoch)
            loader = DataLoader(dataset, batch_sampler=sampler, collate_fn=collate_fn, num_workers=workers)
            shapes = plan.rank(rank).padded_lengths.tolist()
            assert len(loader) == len(shapes)
            for batch, (first, second) in zip(loader, shapes, strict=True):
                assert batch["frames"].shape == batch["attention_mask"].shape == (len(batch["labels"]), first)
                assert batch["labels"].shape == (len(batch["labels"]), second)
                assert batch["frames"].numel() + batch["labels"].numel() <= 4000
                samples = batch["labels"].max(dim=1).values
                assert torch.equal(batch["frames"].max(dim=1).values.long(), samples)
                assert batch["attention_mask"].sum(dim=1).tolist() == SIZES[samples, 0].tolist()
                assert (batch["labels"] >= 0).sum(dim=1).tolist() == SIZES[samples, 1].tolist()
                seen += samples.tolist()
        assert sorted(seen) == list(range(400))


def test_resumed_on_another_number_of_ranks() -> None:
    planner = lw.Planner(SIZES, lw.PaddedPairs(2000, cells=4), world_size=2, seed=5)
    first = [iter(BatchSampler(planner, rank, 2)) for rank in range(2)]
    seen = [index for _ in range(7) for batches in first for index in next(batches)]
    sampler = BatchSampler(planner, 0, 2)
    running = iter(sampler)
    for _ in range(7):
        next(running)
    state = sampler.state_dict()
    other = pickle.loads(pickle.dumps(planner.replace(world_size=3)))  # noqa: S301
    for rank in range(3):
        resumed = BatchSampler(other, rank, 3)
        resumed.load_state_dict(state)
        seen += [index for batch in resumed for index in batch]
    assert sorted(seen) == list(range(400))
    with pytest.raises(lw.LengthwiseError, match="config"):
        BatchSampler(lw.Planner(SIZES, lw.PaddedPairs(2000, cells=5)), 0, 1).load_state_dict(state)
    with pytest.raises(lw.LengthwiseError, match="fingerprint"):
        BatchSampler(lw.Planner(SIZES[:, ::-1], lw.PaddedPairs(2000, cells=4)), 0, 1).load_state_dict(state)


def test_a_stream_of_pairs() -> None:
    rows = [{"frames": [0] * frames, "labels": [0] * tokens} for frames, tokens in SIZES.tolist()]
    layout = lw.PaddedPairs(2000, cells=[[100, 20], [100, 40], [200, 40]])
    stream = StreamBatches(rows, layout, window=100, length=lambda row: (len(row["frames"]), len(row["labels"])))
    seen = []
    for batch in stream:
        sizes = np.array([(len(row["frames"]), len(row["labels"])) for row in batch])
        assert sizes.max(axis=0).sum() * len(batch) <= 2000
        seen += sizes.tolist()
    assert sorted(seen) == sorted(SIZES.tolist())
    with pytest.raises(lw.LengthwiseError, match=r"the length of row 0 is \(1, 2\), but must be an integer"):
        next(iter(StreamBatches(rows, lw.Packed(100), length=lambda _: (1, 2))))
    for field in ("labels", None):
        with pytest.raises(lw.LengthwiseError, match=r"lengths must be integers\[n, 2\]"):
            next(iter(StreamBatches(rows, layout, length=field)))


def test_a_smaller_budget_after_memory_ran_out() -> None:
    sampler = BatchSampler(lw.Planner(SIZES, lw.PaddedPairs(2000, cells=4)))
    batches = len(sampler)
    sampler.scale_budget(0.5)
    assert len(sampler) > 1.8 * batches
    with pytest.raises(lw.LengthwiseError, match="max_tokens=20"):
        sampler.scale_budget(0.02)


def test_a_dataset_of_other_lengths_is_refused() -> None:
    dataset = Speech()
    planner = lw.Planner(SIZES, lw.PaddedPairs(4000))
    check_dataset(dataset, planner, column=["frames", "labels"], rows=400)
    with pytest.raises(lw.LengthwiseError, match="must name both fields"):
        check_dataset(dataset, planner)
    with pytest.raises(lw.LengthwiseError, match="must name both fields"):
        check_dataset(dataset, planner, column="frames")
    other = SIZES.copy()
    other[int(SIZES.sum(axis=1).argmax()), 1] += 1
    with pytest.raises(lw.LengthwiseError, match=r"is \[\d+, \d+\] tokens, but lengths\[\d+\] is \[\d+, \d+\]"):
        check_dataset(dataset, lw.Planner(other, lw.PaddedPairs(4000)), column=["frames", "labels"])
    with pytest.raises(lw.LengthwiseError, match="must name one field"):
        check_dataset(dataset, lw.Planner(SIZES[:, 0], lw.Padded(4000)), column=["frames", "labels"])


ROWS = [{"frames": [1.0, 2.0], "labels": [3]}, {"frames": [4.0], "labels": [5, 6, 7]}]


def test_numpy_and_tensors_are_the_same() -> None:
    sides = ({"frames": 0}, {"labels": -100})
    plain = collate.PairCollator(
        collate.PaddedCollator(sides[0], labels=False), collate.PaddedCollator(sides[1], attention_mask=False)
    )
    made, tensors = plain(ROWS), collator()(ROWS)
    assert made["labels"].tolist() == tensors["labels"].tolist() == [[3, -100, -100], [5, 6, 7]]
    assert made["frames"].tolist() == [[1, 2], [4, 0]]
    table = pa.Table.from_pylist(ROWS)
    assert all(np.array_equal(value, made[name]) for name, value in plain(table).items())
    assert isinstance(tensors["frames"], torch.Tensor)


def test_what_a_pair_collator_refuses() -> None:
    named = collate.PaddedCollator({"frames": 0})
    with pytest.raises(lw.LengthwiseError, match=r"second\.pad is 0, but must name"):
        collate.PairCollator(named, collate.PaddedCollator(0))
    with pytest.raises(lw.LengthwiseError, match="both make 'attention_mask'"):
        collate.PairCollator(named, collate.PaddedCollator({"labels": 0}))(ROWS)
    with pytest.raises(lw.LengthwiseError, match="rows are up to 2 by 3 tokens, which fits no cell"):
        collator(cells=[[2, 2], [1, 9]])(ROWS)
    with pytest.raises(lw.LengthwiseError, match=r"cells must be integers\[n, 2\]"):
        collator(cells=[3, 4])
    with pytest.raises(lw.LengthwiseError, match="PairCollator pads two lengths"):
        collate.PaddedCollator({"frames": 0, "labels": 0})(ROWS)
