"""The transformers `Trainer` on batches planned by tokens: one mixin, and a planner.

    python examples/trainer.py
    torchrun --nproc-per-node 2 examples/trainer.py --cpu

`per_device_train_batch_size` has no say. With TRL's `SFTTrainer` it is the same mixin:
`class PlannedSFT(PlannedTrainer, SFTTrainer)`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from transformers import Trainer, TrainingArguments

import lengthwise as lw
from lengthwise.integrations.transformers import PlannedTrainer
from lengthwise.torch import PaddedCollator
from toy import ToyModel, paragraphs


class TokenTrainer(PlannedTrainer, Trainer):
    """A `Trainer` that takes a planner."""


def main() -> None:
    """Train; with `--resume` from the last checkpoint."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=float, default=2)
    parser.add_argument("--output", type=Path, default=Path("trainer"))
    parser.add_argument("--cpu", action="store_true", help="train on the CPU")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    options = parser.parse_args()

    arguments = TrainingArguments(
        output_dir=str(options.output),
        num_train_epochs=options.epochs,
        learning_rate=3e-3,
        logging_steps=10,
        save_steps=10,
        report_to=[],
        use_cpu=options.cpu,
    )
    rows = paragraphs()
    lengths = [len(row["input_ids"]) for row in rows]
    planner = lw.Planner(lengths, lw.Padded(4096, boundaries=6), seed=0, world_size=arguments.world_size)
    trainer = TokenTrainer(ToyModel(), arguments, train_dataset=rows, data_collator=PaddedCollator(), planner=planner)
    trainer.train(resume_from_checkpoint=options.resume)
    print(f"trained {trainer.state.global_step} steps")


if __name__ == "__main__":
    main()
