"""Lightning's Trainer and Fabric on planned batches: as planned, and the same after a resume."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import lightning
import numpy as np
import pytest
import torch
from lightning.fabric import Fabric
from lightning.pytorch.trainer.states import RunningStage
from lightning.pytorch.utilities.data import _update_dataloader
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

import lengthwise as lw
from lengthwise.integrations.lightning import PlannedDataModule, setup
from lengthwise.torch import BatchSampler, Resumable

if TYPE_CHECKING:
    from pathlib import Path

LENGTHS = np.random.default_rng(7).integers(1, 60, 120)
PLANNER = lw.Planner(LENGTHS, lw.Padded(max_tokens=300, order="shuffled"))
ROWS: Any = range(len(LENGTHS))

pytestmark = [
    pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore:The 'train_dataloader' does not have many workers"),
    pytest.mark.filterwarnings("ignore:You're resuming from a checkpoint that ended before"),
]


class Model(lightning.LightningModule):
    """Remembers the rows of every batch that it was trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.rows: list[list[int]] = []

    def training_step(self, batch: torch.Tensor, _: int) -> torch.Tensor:  # noqa: D102
        self.rows.append(batch.tolist())
        return self.weight * 0

    def predict_step(self, batch: torch.Tensor, _: int) -> torch.Tensor:  # noqa: D102
        return batch

    def configure_optimizers(self) -> Any:  # noqa: D102
        return torch.optim.SGD(self.parameters(), 0.1)


class KilledError(Exception):
    """The end of a process, as far as the Trainer is concerned."""


class KillAt(lightning.Callback):
    """Saves a checkpoint after a step, and ends."""

    def __init__(self, step: int, path: Path) -> None:
        self.step, self.path = step, path

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:  # noqa: D102
        if trainer.global_step == self.step:
            trainer.save_checkpoint(self.path)
            raise KilledError


def trainer(**options: Any) -> lightning.Trainer:
    quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    return lightning.Trainer(**{"max_epochs": 3, "accelerator": "cpu", **dict.fromkeys(quiet, False), **options})


def data(workers: int = 0) -> PlannedDataModule:
    return PlannedDataModule(ROWS, PLANNER, collate_fn=torch.tensor, num_workers=workers)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_resumed_run_sees_what_an_uninterrupted_one_does(workers: int, tmp_path: Path) -> None:
    whole = Model()
    trainer().fit(whole, data(workers))
    count = len(whole.rows) // 3
    assert count == max(len(PLANNER.plan(epoch)) for epoch in range(3))
    for epoch in range(3):
        rows = [row for batch in whole.rows[epoch * count : (epoch + 1) * count] for row in batch]
        assert sorted(rows) == list(ROWS)
    assert whole.rows[:count] != whole.rows[count : 2 * count]
    for stop in (count // 2, count, count + 3):
        first, rest = Model(), Model()
        with pytest.raises(KilledError):
            trainer(callbacks=[KillAt(stop, tmp_path / "last.ckpt")]).fit(first, data(workers))
        trainer().fit(rest, data(workers), ckpt_path=tmp_path / "last.ckpt", weights_only=False)
        assert first.rows + rest.rows == whole.rows


@pytest.mark.parametrize(("worlds", "part"), [((2, 1), 0.4), ((1, 2), 0.7), ((2, 3), 1.4), ((3, 1), 1.0)])
@pytest.mark.parametrize("accumulation", [1, 2])
def test_another_number_of_processes_goes_on(
    worlds: tuple[int, int], part: float, accumulation: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each rank in turn, as it would run beside the others."""
    counted: Counter[int] = Counter()
    steps: list[int] = []
    for number, world in enumerate(worlds):
        counts = set()
        monkeypatch.setattr(lightning.Trainer, "world_size", world)
        for rank in range(world):
            monkeypatch.setattr(lightning.Trainer, "global_rank", rank)
            module = PlannedDataModule(ROWS, PLANNER.replace(world_size=world), collate_fn=torch.tensor)
            model, path = Model(), tmp_path / "last.ckpt"
            options: dict[str, Any] = {"accumulate_grad_batches": accumulation}
            if number == 0:
                length = max(len(PLANNER.replace(world_size=world).plan(epoch)) for epoch in range(3)) // world
                stop = int(part * length) if accumulation == 1 else int(part * -(-length // 2))
                with pytest.raises(KilledError):
                    trainer(callbacks=[KillAt(stop, path)], **options).fit(model, module)
            else:
                trainer(**options).fit(model, module, ckpt_path=path, weights_only=False)
            counts.add(len(model.rows))
            counted += Counter(row for batch in model.rows for row in batch)
        steps += counts
    assert len(steps) == 2, "every rank ran as many batches"
    assert counted == dict.fromkeys(ROWS, 3)


def test_the_trainer_leaves_the_loader_alone() -> None:
    """The contract L1: only a `DataLoader` gets a distributed sampler, and ours is told so in clear words."""
    run = trainer()
    module = data()
    module.trainer = run
    run.strategy.connect(Model())
    loader = module.train_dataloader()
    assert not isinstance(loader, DataLoader)
    connector = run._data_connector
    assert connector._prepare_dataloader(loader, shuffle=True, mode=None) is loader  # type: ignore[arg-type]


def test_a_plain_loader_is_refused_by_name_of_the_flag() -> None:
    """The contract L1: what Lightning says where several devices train on a `DataLoader` of ours."""
    loader: DataLoader[Any] = DataLoader(ROWS, batch_sampler=BatchSampler(PLANNER), collate_fn=torch.tensor)
    with pytest.raises(TypeError, match=r"Trainer\(use_distributed_sampler=False\)"):
        _update_dataloader(loader, DistributedSampler(ROWS, 2, 0), RunningStage.TRAINING)


@pytest.mark.filterwarnings("ignore:You are using a custom batch sampler")
@pytest.mark.filterwarnings("ignore:The 'predict_dataloader' does not have many workers")
@pytest.mark.filterwarnings("ignore:Lightning couldn't infer the indices fetched")
@pytest.mark.parametrize("make", [lambda loader: loader, Resumable])
def test_predictions_come_in_the_order_of_the_plan(make: Any) -> None:
    """The contract L3: prediction wraps every batch sampler, and copies its attributes."""
    loader = make(DataLoader(ROWS, batch_sampler=BatchSampler(PLANNER), collate_fn=torch.tensor))
    predictions: Any = trainer().predict(Model(), loader)
    assert [batch.tolist() for batch in predictions] == [batch.tolist() for batch in PLANNER.plan(0)]


def test_another_number_of_processes_is_refused() -> None:
    module = PlannedDataModule(ROWS, PLANNER.replace(world_size=2), collate_fn=torch.tensor)
    with pytest.raises(lw.LengthwiseError, match="world_size=2, but 1 processes train"):
        trainer().fit(Model(), module)


@pytest.mark.parametrize("workers", [0, 2])
def test_fabric_goes_on_in_the_right_epoch(workers: int, tmp_path: Path) -> None:
    fabric = Fabric(accelerator="cpu")

    def start() -> Resumable:
        sampler = BatchSampler(PLANNER)
        return setup(fabric, DataLoader(ROWS, batch_sampler=sampler, collate_fn=torch.tensor, num_workers=workers))

    expected = [batch.tolist() for epoch in range(3) for batch in PLANNER.plan(epoch)]
    count = len(PLANNER.plan(0))
    seen: list[list[int]] = []
    loader = start()
    for stop in (3, count, count + 2, len(expected)):
        for epoch in range(loader.epoch, 3):
            loader.set_epoch(epoch)
            for batch in loader:
                seen.append(batch.tolist())
                if len(seen) == stop:
                    break
            if len(seen) == stop:
                break
        fabric.save(tmp_path / "state.ckpt", {"data": loader})
        loader = start()
        fabric.load(tmp_path / "state.ckpt", {"data": loader}, weights_only=True)
    assert seen == expected
