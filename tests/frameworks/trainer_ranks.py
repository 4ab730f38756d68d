"""Train with the transformers Trainer in real processes over gloo, stop, and go on with another number of them.

    python tests/frameworks/trainer_ranks.py
    python tests/frameworks/trainer_ranks.py --worlds 2 1 3 --stops 12 9 --epochs 3
    python tests/frameworks/trainer_ranks.py --worlds 2 1 --stops 9 --max-steps 40

Each start but the last stops after some steps with a checkpoint. Exits with 1 where the epochs have not seen every
sample exactly once, or where steps or learning rates do not go on.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import socket
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from datasets import Dataset
from torch import nn
from transformers import Trainer, TrainerCallback, TrainingArguments

import lengthwise as lw
from lengthwise.integrations.transformers import PlannedTrainer
from lengthwise.torch import PaddedCollator

LENGTHS = np.random.default_rng(7).integers(1, 30, 90)
LAYOUT = lw.Padded(max_tokens=120, order="shuffled")
RATE = 1.0


class Model(nn.Module):
    """Remembers the rows of every batch that it was trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.rows: list[list[int]] = []

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor, attention_mask: torch.Tensor) -> Any:  # noqa: D102, ARG002
        self.rows.append(input_ids[:, 0].tolist())
        return {"loss": self.weight * 0}


class Watch(TrainerCallback):
    """Notes the learning rates, and stops after some steps."""

    def __init__(self, steps: int | None) -> None:
        self.steps = steps
        self.done = 0
        self.rates: list[float] = []

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> Any:  # noqa: ARG002, D102
        self.done += 1
        self.rates.append(others["optimizer"].param_groups[0]["lr"])
        control.should_save = control.should_training_stop = self.done == self.steps
        control.should_training_stop |= state.global_step >= state.max_steps
        return control


class PlannedBatches(PlannedTrainer, Trainer):
    """What a user writes."""


class Launch(NamedTuple):
    """One start of the run."""

    number: int
    world_size: int
    steps: int | None  # None for the rest
    folder: Path
    options: dict[str, Any]


def train(rank: int, port: int, launch: Launch) -> None:
    """Train on one rank and write down what was seen."""
    torch.set_num_threads(1)
    number, world_size, steps, folder, options = launch
    places = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world_size, "LOCAL_WORLD_SIZE": world_size}
    os.environ |= {name: str(value) for name, value in {**places, "MASTER_PORT": port}.items()}
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    args = TrainingArguments(
        output_dir=str(folder / "run"),
        use_cpu=True,
        learning_rate=RATE,
        report_to=[],
        disable_tqdm=True,
        logging_strategy="no",
        save_strategy="steps",
        save_steps=10**6,
        dataloader_pin_memory=False,
        gradient_accumulation_steps=2,
        ddp_backend="gloo",
        **options,
    )
    rows = [[row] * n for row, n in enumerate(LENGTHS.tolist())]
    model, watch = Model(), Watch(steps)
    run = PlannedBatches(
        model,
        args,
        train_dataset=Dataset.from_dict({"input_ids": rows, "labels": rows}),
        data_collator=PaddedCollator(0),
        planner=lw.Planner(LENGTHS, LAYOUT, world_size=world_size),
        callbacks=[watch],
    )
    run.train(resume_from_checkpoint=number > 0)
    state = run.state
    seen = {"rows": model.rows, "rates": watch.rates, "step": state.global_step, "max_steps": state.max_steps}
    (folder / f"seen.{rank}").write_text(json.dumps(seen))


def start(launch: Launch) -> list[dict[str, Any]]:
    """Train in as many processes; return what each has seen."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("fork")
    ranks = [context.Process(target=train, args=(rank, port, launch)) for rank in range(launch.world_size)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(60)
    if any(process.exitcode for process in ranks):
        raise SystemExit(f"ranks ended with {[process.exitcode for process in ranks]}")
    return [json.loads((launch.folder / f"seen.{rank}").read_text()) for rank in range(launch.world_size)]


def check(worlds: list[int], stops: list[int], options: dict[str, Any]) -> None:
    """Train on one number of processes after another."""
    counted: Counter[int] = Counter()
    rates: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        for number, world_size in enumerate(worlds):
            steps = stops[number] if number + 1 < len(worlds) else None
            seen = start(Launch(number, world_size, steps, Path(name), options))
            if len({len(one["rows"]) for one in seen}) > 1:
                raise SystemExit("ranks ran different numbers of batches")
            counted += Counter(row for one in seen for batch in one["rows"] for row in batch)
            rates += seen[0]["rates"]
            if sorted(rates, reverse=True) != rates and "max_steps" not in options:
                raise SystemExit(f"the learning rate rose: {rates}")
    if seen[0]["step"] != seen[0]["max_steps"] or len(rates) != seen[0]["step"]:
        raise SystemExit(f"ended at step {seen[0]['step']} of {seen[0]['max_steps']} after {len(rates)} steps")
    if abs(rates[-1]) > 1e-9:
        raise SystemExit(f"the schedule ended at {rates[-1]}")
    times = set(counted.values())
    whole = {options["num_train_epochs"]} if "num_train_epochs" in options else {min(times), min(times) + 1}
    if not times <= whole or len(counted) != len(LENGTHS):
        raise SystemExit(f"samples were seen {sorted(times)} times")


def main() -> None:
    """Run the sequence of starts that is asked for, or two short ones: by epochs, and by steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, nargs="+", help="processes of each start")
    parser.add_argument("--stops", type=int, nargs="+", default=[5, 9, 4], help="steps of each start but the last")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--max-steps", type=int, default=-1)
    options = parser.parse_args()
    if options.worlds is None:
        check([2, 2, 1, 3], [7, 6, 4], {"num_train_epochs": 3})
        check([1, 2], [22], {"max_steps": 40})
    else:
        by_steps = options.max_steps > 0
        length = {"max_steps": options.max_steps} if by_steps else {"num_train_epochs": options.epochs}
        check(options.worlds, options.stops, length)
    sys.stdout.write("every sample was seen once an epoch\n")


if __name__ == "__main__":
    main()
