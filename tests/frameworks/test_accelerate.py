"""accelerate: both sharding modes, epochs, skipping and checkpoints, against the library itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator, skip_first_batches
from accelerate.data_loader import prepare_data_loader
from accelerate.utils import DataLoaderConfiguration
from torch.utils.data import DataLoader

import lengthwise as lw
from lengthwise.integrations import accelerate as integration
from lengthwise.torch import BatchSampler

if TYPE_CHECKING:
    from pathlib import Path

LENGTHS = np.random.default_rng(7).integers(1, 60, 203).astype(np.uint16)

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")


def planner(world_size: int = 1) -> lw.Planner:
    return lw.Planner(LENGTHS, lw.Padded(max_tokens=300), world_size=world_size)


def collate(rows: list[int]) -> torch.Tensor:
    return torch.tensor(rows)


def plain(sampler: BatchSampler, **options: Any) -> DataLoader[int]:
    return DataLoader(range(len(LENGTHS)), batch_sampler=sampler, collate_fn=collate, **options)  # type: ignore[arg-type]


def seen(loader: Any) -> list[list[int]]:
    return [batch.tolist() for batch in loader]


def planned(epoch: int, world_size: int = 1, rank: int = 0) -> list[list[int]]:
    return [batch.tolist() for batch in planner(world_size).plan(epoch).rank(rank)]


@pytest.fixture
def accelerators(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make accelerators that believe to be one of several processes, without launching any."""

    def make(processes: int = 1, index: int = 0, **options: Any) -> Accelerator:
        monkeypatch.setattr(Accelerator, "num_processes", property(lambda _: processes))
        monkeypatch.setattr(Accelerator, "process_index", property(lambda _: index))
        return Accelerator(cpu=True, rng_types=[], **options)

    return make


@pytest.mark.parametrize("processes", [1, 2, 4])
@pytest.mark.parametrize("mode", ["rank", "global"])
def test_every_process_gets_its_share_in_every_epoch(accelerators: Any, processes: int, mode: str) -> None:
    for index in range(processes):
        ranks: Any = {"rank": index} if mode == "rank" else {"rank": 0, "world_size": 1}
        loader = integration.prepare(accelerators(processes, index), plain(BatchSampler(planner(processes), **ranks)))
        for epoch in (0, 1, 5):
            loader.set_epoch(epoch)
            assert len(loader) == len(planned(epoch, processes, index))
            assert seen(loader) == planned(epoch, processes, index)


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_prepared_without_us_a_global_sampler_is_dealt_whole(processes: int) -> None:
    """The contract A2 to A6: nothing is lost, no sample is seen twice, and the epoch reaches the sampler."""
    sampler = BatchSampler(planner(processes), rank=0, world_size=1)
    loaders = [
        prepare_data_loader(plain(sampler), num_processes=processes, process_index=index, put_on_device=False)
        for index in range(processes)
    ]
    for epoch in (0, 1):
        for index, loader in enumerate(loaders):
            loader.set_epoch(epoch)
            assert seen(loader) == planned(epoch, processes, index)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("mode", ["rank", "global"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_checkpoint_in_the_middle_of_an_epoch(
    accelerators: Any, tmp_path: Path, processes: int, mode: str, workers: int
) -> None:
    index = processes - 1
    ranks: Any = {"rank": index} if mode == "rank" else {"rank": 0, "world_size": 1}

    def start() -> tuple[Accelerator, Any]:
        accelerator = accelerators(processes, index)
        sampler = BatchSampler(planner(processes), **ranks)
        return accelerator, integration.prepare(accelerator, plain(sampler, num_workers=workers))

    accelerator, loader = start()
    expected = [batch for epoch in range(3) for batch in planned(epoch, processes, index)]
    count = len(planned(0, processes, index))
    got: list[list[int]] = []
    for stop in (1, count // 2, count, count + 2, 2 * count, len(expected)):
        for epoch in range(loader.epoch, 3):
            loader.set_epoch(epoch)
            for batch in loader:
                got.append(batch.tolist())
                if len(got) == stop:
                    break
            if len(got) == stop:
                break
        accelerator.save_state(str(tmp_path / str(stop)))
        accelerator, loader = start()
        accelerator.load_state(str(tmp_path / str(stop)))
    assert got == expected


def test_a_checkpoint_goes_on_with_other_processes(accelerators: Any) -> None:
    first = integration.prepare(accelerators(2, 0), plain(BatchSampler(planner(2), rank=0)))
    iterator = iter(first)
    for _ in range(3):
        next(iterator)
    state = json.loads(json.dumps(first.state_dict()))
    rest: list[int] = []
    for index in range(3):
        other = integration.prepare(accelerators(3, index), plain(BatchSampler(planner(3), rank=index)))
        other.load_state_dict(state)
        rest += [row for batch in seen(other) for row in batch]
    before = [row for batch in list(planner(2).plan(0))[:6] for row in batch.tolist()]
    assert sorted(before + rest) == list(range(len(LENGTHS)))


@pytest.mark.parametrize("processes", [1, 2])
def test_skipping_batches_keeps_the_epoch(accelerators: Any, processes: int) -> None:
    loader = integration.prepare(accelerators(processes, 0), plain(BatchSampler(planner(processes), rank=0)))
    rest = skip_first_batches(loader.loader, 3)
    rest.set_epoch(2)
    assert seen(rest) == planned(2, processes)[3:]


@pytest.mark.parametrize("option", ["split_batches", "dispatch_batches", "use_stateful_dataloader"])
def test_options_that_cannot_work_are_refused(accelerators: Any, option: str) -> None:
    accelerator = accelerators(2, dataloader_config=DataLoaderConfiguration(**{option: True}))
    with pytest.raises(lw.LengthwiseError, match=rf"{option} is True .*without {option}"):
        integration.prepare(accelerator, plain(BatchSampler(planner(2), rank=0)))


def test_another_number_of_processes_is_refused(accelerators: Any) -> None:
    with pytest.raises(lw.LengthwiseError, match=r"world_size=3, but accelerate runs 2 processes"):
        integration.prepare(accelerators(2), plain(BatchSampler(planner(3), rank=0)))


def test_a_loader_of_something_else_is_refused(accelerators: Any) -> None:
    with pytest.raises(lw.LengthwiseError, match=r"draws from BatchSampler, .* lengthwise\.torch\.BatchSampler"):
        integration.prepare(accelerators(), DataLoader(range(3)))  # type: ignore[arg-type]


@pytest.mark.parametrize("workers", [0, 2])
def test_stateful_loaders_of_one_process_use_our_state(workers: int) -> None:
    """The contract A9: accelerate's own way, without `prepare` from here."""

    def start() -> Any:
        return prepare_data_loader(
            plain(BatchSampler(planner()), num_workers=workers), put_on_device=False, use_stateful_dataloader=True
        )

    loader = start()
    iterator = iter(loader)
    for _ in range(4):
        next(iterator)
    again = start()
    again.load_state_dict(loader.state_dict())
    assert seen(again) == planned(0)[4:]
    assert seen(again) == planned(1)
