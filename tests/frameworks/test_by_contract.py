"""Frameworks that are too big to install: what their source reads and calls, as the contract says."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch.distributed.checkpoint.stateful import Stateful
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

import lengthwise as lw
from lengthwise.integrations import composer, ray
from lengthwise.integrations.megatron import MegatronSampler
from lengthwise.integrations.nemo import PlannedBatchSamplerConfig
from lengthwise.integrations.torchtitan import EndlessLoader
from lengthwise.torch import BatchSampler, PackedCollator, PaddedCollator, StreamBatches

LENGTHS = np.random.default_rng(7).integers(1, 60, 120)
ROWS: Any = range(len(LENGTHS))


def planner(world_size: int = 1, **options: Any) -> lw.Planner:
    return lw.Planner(LENGTHS, lw.Padded(max_tokens=300), world_size=world_size, **options)


def planned(epoch: int, world_size: int = 1, rank: int = 0) -> list[list[int]]:
    return [batch.tolist() for batch in planner(world_size).plan(epoch).rank(rank)]


@pytest.fixture
def ray_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray Train on worker 1 of 2: its context, and `prepare_data_loader` as far as a CPU worker sees it (Y1)."""
    context = SimpleNamespace(get_world_rank=lambda: 1, get_world_size=lambda: 2)

    def prepare_data_loader(loader: Any, *, add_dist_sampler: bool = True) -> Any:
        return DataLoader(loader.dataset, batch_size=loader.batch_size) if add_dist_sampler else loader

    train: Any = ModuleType("ray.train")
    train.get_context = lambda: context
    train.torch = ModuleType("ray.train.torch")
    train.torch.prepare_data_loader = prepare_data_loader
    package: Any = ModuleType("ray")
    package.train = train
    for module in (package, train, train.torch):
        monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.usefixtures("ray_worker")
def test_ray_keeps_the_batch_sampler() -> None:
    sampler = BatchSampler(planner(2), *ray.ranks())
    loader = ray.prepare(DataLoader(ROWS, batch_sampler=sampler, collate_fn=list))
    assert loader.batch_sampler is sampler
    assert list(loader) == planned(0, 2, 1)
    with pytest.raises(lw.LengthwiseError, match="rank 0 of 1, but this is worker 1 of 2"):
        ray.prepare(DataLoader(ROWS, batch_sampler=BatchSampler(planner()), collate_fn=list))


@pytest.mark.parametrize("layout", [lw.Padded(300, boundaries=[20, 40, 60]), lw.Packed(100)])
@pytest.mark.parametrize("column", ["input_ids", "seq_len"])
def test_ray_data_is_batched_by_tokens(layout: Any, column: str) -> None:
    """The contract Y3 and Y4: Arrow tables of any size, regrouped; a fixed number of batches where it is given."""
    rows = [{"input_ids": [row] * n, "seq_len": n} for row, n in enumerate(LENGTHS.tolist())]
    blocks = [pa.Table.from_pylist(rows[start : start + 17]) for start in range(0, len(rows), 17)]
    options: dict[str, Any] = {"window": 30, "rank": 1, "world_size": 2}
    batches = ray.token_batches(blocks, layout, column=column, **options)
    expected = StreamBatches(rows, layout, share="source", **options)
    assert [[row.to_pylist()[0] for row in batch] for batch in batches] == list(expected)
    collate = PackedCollator() if layout == lw.Packed(100) else PaddedCollator()
    loader: DataLoader[Any] = DataLoader(
        ray.token_batches(blocks, layout, column=column, batches=200, **options), batch_size=None, collate_fn=collate
    )
    assert sum(batch["input_ids"].numel() <= 300 for batch in loader) == 200 == len(loader)


def test_composer_finds_a_distributed_sampler() -> None:
    """The contract M1 and D3."""
    sampler = composer.DistributedBatchSampler(planner(2), rank=1, dataset=ROWS)
    loader = DataLoader(ROWS, batch_sampler=sampler, collate_fn=list)
    assert isinstance(loader.batch_sampler, DistributedSampler)
    sampler.set_epoch(1)
    assert list(loader) == planned(1, 2, 1)
    read = {name: getattr(sampler, name) for name in ("num_replicas", "rank", "epoch", "drop_last", "seed", "shuffle")}
    assert read == {"num_replicas": 2, "rank": 1, "epoch": 1, "drop_last": False, "seed": 0, "shuffle": True}
    assert sampler.dataset is ROWS
    assert sampler.total_size == 2 * sampler.num_samples == len(LENGTHS)
    assert not hasattr(sampler, "batch_size")


def test_composer_counts_and_cuts_batches() -> None:
    """The contract M2."""
    mask = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0]])
    padded = {"input_ids": torch.zeros(3, 3), "attention_mask": mask, "max_length": 3}
    assert (composer.samples_in_batch(padded), composer.tokens_in_batch(padded)) == (3, 6)
    parts = composer.split_batch(padded, 2)
    assert [len(part["input_ids"]) for part in parts] == [2, 1]
    assert [part["max_length"] for part in parts] == [3, 3]
    packed = {"input_ids": torch.zeros(1, 7), "cu_seq_lens_q": torch.tensor([0, 3, 5, 7])}
    assert (composer.samples_in_batch(packed), composer.tokens_in_batch(packed)) == (3, 7)
    assert composer.split_batch(packed, 1) == [packed]


def test_composer_specs(monkeypatch: pytest.MonkeyPatch) -> None:
    core: Any = ModuleType("composer.core")
    core.DataSpec = lambda loader, **functions: (loader, sorted(functions))
    monkeypatch.setitem(sys.modules, "composer", ModuleType("composer"))
    monkeypatch.setitem(sys.modules, "composer.core", core)
    assert composer.data_spec("loader") == (
        "loader",
        ["get_num_samples_in_batch", "get_num_tokens_in_batch", "split_batch"],
    )


def test_megatron_resumes_from_samples_consumed() -> None:
    """The contract M6: lists, samples as length, and any number consumed, also within a batch."""

    def start(consumed: int, rank: int = 0, size: int = 1) -> MegatronSampler:
        return MegatronSampler(
            planner(size), consumed_samples=consumed, data_parallel_rank=rank, data_parallel_size=size
        )

    order = [row for epoch in range(2) for batch in planned(epoch) for row in batch]
    assert len(start(0)) == len(LENGTHS)
    for consumed in (0, 1, 7, len(LENGTHS) - 1, len(LENGTHS), len(LENGTHS) + 9):
        sampler = start(consumed)
        assert sampler.consumed_samples == consumed
        rest = [row for batch in sampler for row in batch]
        epoch = consumed // len(LENGTHS)
        assert rest == order[consumed : (epoch + 1) * len(LENGTHS)]
        assert sampler.consumed_samples == (epoch + 1) * len(LENGTHS)
    shares = [list(start(0, rank, 2)) for rank in range(2)]
    assert shares == [planned(0, 2, rank) for rank in range(2)]


def test_megatron_refuses_what_it_cannot_count() -> None:
    with pytest.raises(lw.LengthwiseError, match="consumed_samples is -1"):
        MegatronSampler(planner(), consumed_samples=-1, data_parallel_rank=0, data_parallel_size=1)
    options: list[Any] = [{"overlong": "split"}, {"overlong": "drop"}, {"remainder": "drop"}]
    for option in options:
        with pytest.raises(lw.LengthwiseError, match="used once an epoch"):
            MegatronSampler(planner(**option), data_parallel_rank=0, data_parallel_size=1)


def test_torchtitan_gets_batches_without_end() -> None:
    """The contract M11: Stateful, iterated once, another number of ranks at load."""
    loader = EndlessLoader(DataLoader(ROWS, batch_sampler=BatchSampler(planner()), collate_fn=list))
    assert isinstance(loader, Stateful)
    steps = iter(loader)
    count = len(planned(0))
    seen = [next(steps) for _ in range(count + 4)]
    assert seen == planned(0) + planned(1)[:4]
    rest = []
    for rank in range(2):
        other = EndlessLoader(DataLoader(ROWS, batch_sampler=BatchSampler(planner(2), rank=rank), collate_fn=list))
        other.load_state_dict(loader.state_dict())
        rest += [row for batch, _ in zip(other, range(other.batch_sampler.remaining), strict=False) for row in batch]
    assert sorted([row for batch in seen[count:] for row in batch] + rest) == list(ROWS)


def test_nemo_builds_the_sampler_of_a_rank() -> None:
    """The contract M9."""
    config = PlannedBatchSamplerConfig(planner())
    sampler = config.build(dataset_len=len(LENGTHS), rank=1, world_size=2)
    assert list(sampler) == planned(0, 2, 1)
    with pytest.raises(lw.LengthwiseError, match="the dataset has 7 rows"):
        config.build(dataset_len=7, rank=0, world_size=1)
