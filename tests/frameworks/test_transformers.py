"""The transformers Trainer on planned batches: every batch, every epoch, and after a resume."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from torch import nn
from transformers import Trainer, TrainerCallback, TrainingArguments

import lengthwise as lw
from lengthwise.integrations.transformers import PlannedTrainer
from lengthwise.torch import PaddedCollator

LENGTHS = np.random.default_rng(7).integers(1, 30, 90)
DATASET = Dataset.from_dict(
    {
        "input_ids": [[row] * n for row, n in enumerate(LENGTHS.tolist())],
        "labels": [[row] * n for row, n in enumerate(LENGTHS.tolist())],
        "source": ["web"] * len(LENGTHS),
    }
)


def planner(**options: Any) -> lw.Planner:
    return lw.Planner(LENGTHS, lw.Padded(max_tokens=120, order="shuffled"), **options)


class Model(nn.Module):
    """Remembers the rows of every batch that it was trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.rows: list[list[int]] = []

    def forward(  # noqa: D102
        self, input_ids: torch.Tensor, labels: torch.Tensor, attention_mask: torch.Tensor
    ) -> Any:
        assert attention_mask.shape == labels.shape
        self.rows.append(sorted(input_ids[:, 0].tolist()))
        return {"loss": self.weight * 0}


class PlannedBatches(PlannedTrainer, Trainer):
    """What a user writes."""


class StopAt(TrainerCallback):
    """Ends the process, as far as the trainer is concerned, after a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:  # noqa: ARG002, D102
        control.should_training_stop = state.global_step >= self.step
        return control


def trainer(folder: Path, model: Model, plan: lw.Planner, *, callbacks: Any = None, **options: Any) -> PlannedBatches:
    args = TrainingArguments(
        output_dir=str(folder),
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        logging_strategy="no",
        dataloader_pin_memory=False,
        **{"num_train_epochs": 3, "save_strategy": "no", **options},
    )
    return PlannedBatches(
        model, args, train_dataset=DATASET, data_collator=PaddedCollator(0), planner=plan, callbacks=callbacks
    )


def planned(epochs: int, plan: lw.Planner) -> list[list[int]]:
    """The rows of every batch, where no batch was cut to make the epochs equal."""
    return [sorted(batch.tolist()) for epoch in range(epochs) for batch in plan.plan(epoch)]


def test_it_trains_every_epoch_as_planned(tmp_path: Path) -> None:
    model = Model()
    run = trainer(tmp_path, model, planner())
    run.train()
    counts = [len(planner().plan(epoch)) for epoch in range(3)]
    assert len(set(counts)) > 1, "the epochs must differ for this to show anything"
    assert run.state.max_steps == run.state.global_step == len(model.rows) == 3 * max(counts)
    for epoch in range(3):
        rows = model.rows[epoch * max(counts) : (epoch + 1) * max(counts)]
        assert sorted(row for batch in rows for row in batch) == list(range(len(LENGTHS)))
    assert model.rows[: max(counts)] != model.rows[max(counts) : 2 * max(counts)]


@pytest.mark.parametrize("accumulation", [1, 2])
def test_steps_may_be_given_instead_of_epochs(tmp_path: Path, accumulation: int) -> None:
    model = Model()
    steps = 2 * len(planner().plan(0)) + 3
    run = trainer(tmp_path, model, planner(), max_steps=steps, gradient_accumulation_steps=accumulation)
    run.train()
    assert run.state.global_step == steps
    assert accumulation * (steps - run.state.num_train_epochs) <= len(model.rows) <= accumulation * steps


@pytest.mark.parametrize(("part", "accumulation"), [(0.5, 1), (0.96, 1), (1.0, 1), (1.4, 2), (1.9, 2)])
def test_a_resumed_run_sees_what_an_uninterrupted_one_does(tmp_path: Path, part: float, accumulation: int) -> None:
    """The contract H4 and H5, among the last batches of an epoch, too, which are cut to make epochs equal."""
    whole = Model()
    reference = trainer(tmp_path / "whole", whole, planner(), gradient_accumulation_steps=accumulation)
    reference.train()
    stop = int(part * reference.state.max_steps / 3)
    first, rest = Model(), Model()
    options: Any = {"save_strategy": "steps", "save_steps": stop, "gradient_accumulation_steps": accumulation}
    trainer(tmp_path / "run", first, planner(), callbacks=[StopAt(stop)], **options).train()
    trainer(tmp_path / "run", rest, planner(), **options).train(
        resume_from_checkpoint=str(tmp_path / "run" / f"checkpoint-{stop}")
    )
    assert first.rows + rest.rows == whole.rows


def test_a_checkpoint_of_another_plan_is_refused(tmp_path: Path) -> None:
    options: Any = {"save_strategy": "steps", "save_steps": 3}
    trainer(tmp_path, Model(), planner(), callbacks=[StopAt(3)], **options).train()
    for checkpoint in (True, str(tmp_path / "checkpoint-3")):
        with pytest.raises(lw.LengthwiseError, match=r'state\["config"\]\["seed"\] is 0, but the planner has 1'):
            trainer(tmp_path, Model(), planner(seed=1)).train(resume_from_checkpoint=checkpoint)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_another_number_of_processes_goes_on() -> None:
    """Real processes over gloo: within and after an epoch, with fewer ranks and with more, by epochs and by steps."""
    script = Path(__file__).with_name("trainer_ranks.py")
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)  # noqa: S603
    assert run.returncode == 0, run.stderr[-2000:]
    assert "every sample was seen once an epoch" in run.stdout


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    trainer(tmp_path, Model(), planner(), save_strategy="epoch").train()
    model = Model()
    trainer(tmp_path, model, planner()).train(resume_from_checkpoint=True)
    assert not model.rows


def test_skipping_no_data_starts_the_epoch_over(tmp_path: Path) -> None:
    options: Any = {"save_strategy": "steps", "save_steps": 3}
    trainer(tmp_path, Model(), planner(), callbacks=[StopAt(3)], **options).train()
    model = Model()
    trainer(tmp_path, model, planner(), ignore_data_skip=True).train(resume_from_checkpoint=True)
    batches = max(len(planner().plan(epoch)) for epoch in range(3))
    assert sorted(row for batch in model.rows[:batches] for row in batch) == list(range(len(LENGTHS)))


def test_misfits_are_refused_when_training_starts(tmp_path: Path) -> None:
    with pytest.raises(lw.LengthwiseError, match=r"world_size=2, but 1 processes train"):
        trainer(tmp_path, Model(), planner(world_size=2)).train()
    short = lw.Planner(LENGTHS[:-1], lw.Padded(max_tokens=120))
    with pytest.raises(lw.LengthwiseError, match="the dataset has 90 rows, but the planner was given 89 lengths"):
        trainer(tmp_path, Model(), short).train()
    for option in ("split_batches", "dispatch_batches"):
        with pytest.raises(lw.LengthwiseError, match=rf"{option} is True .*accelerator_config .* without {option}"):
            trainer(tmp_path, Model(), planner(), accelerator_config={option: True}).train()
    stream = trainer(tmp_path, Model(), planner())
    stream.train_dataset = iter(DATASET)
    with pytest.raises(lw.LengthwiseError, match=r"without a length.*StreamBatches"):
        stream.train()


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_batches_shrink_until_they_fit_the_memory(tmp_path: Path) -> None:
    """The contract H11: `auto_find_batch_size` has no batch size to halve, so it scales the budget."""

    class Small(Model):
        def forward(self, input_ids: torch.Tensor, labels: torch.Tensor, attention_mask: torch.Tensor) -> Any:
            if input_ids.numel() > 100:
                raise RuntimeError("CUDA out of memory.")  # as torch says it, and accelerate looks for it
            return super().forward(input_ids, labels, attention_mask)

    model = Small()
    options: Any = {"auto_find_batch_size": True, "per_device_train_batch_size": 8, "save_strategy": "epoch"}
    run = trainer(tmp_path, model, planner(), num_train_epochs=1, **options)
    run.train()
    assert run.planned_sampler.planner.layout == lw.Padded(max_tokens=90, order="shuffled")  # of 120: 7/8, then 6/8
    rows = [row for batch in model.rows[-run.state.max_steps :] for row in batch]
    assert sorted(rows) == list(range(len(LENGTHS)))
    again = trainer(tmp_path, model, planner(), num_train_epochs=2, **options)
    again.train(resume_from_checkpoint=True)
    assert again.planned_sampler.planner.layout == run.planned_sampler.planner.layout


def test_planners_that_cut_samples_get_pieces(tmp_path: Path) -> None:
    model = Model()
    cutter = lw.Planner(LENGTHS, lw.Padded(max_tokens=20), overlong="split")
    trainer(tmp_path, model, cutter, num_train_epochs=1).train()
    assert len({row for batch in model.rows for row in batch}) == len(LENGTHS)
    assert sum(len(batch) for batch in model.rows) > len(LENGTHS)
