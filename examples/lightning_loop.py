"""Lightning's Trainer on batches planned by tokens, resumed within an epoch.

python examples/lightning_loop.py
python examples/lightning_loop.py --resume lightning_loop/last.ckpt
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

import lengthwise as lw
from lengthwise.integrations.lightning import PlannedDataModule
from lengthwise.torch import PaddedCollator
from toy import ToyModel, optimizer_of, paragraphs


class LitModel(lightning.LightningModule):
    """The toy model for Lightning."""

    def __init__(self) -> None:
        """Make the model."""
        super().__init__()
        self.model = ToyModel()

    def training_step(self, batch: dict[str, Any], _: int) -> torch.Tensor:
        """Return the loss of a batch; `batch_size` is told, for Lightning would guess it."""
        loss: torch.Tensor = self.model(**batch)["loss"]
        self.log("loss", loss, batch_size=len(batch["input_ids"]), prog_bar=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimizer."""
        return optimizer_of(self)


def main() -> None:
    """Train, with a checkpoint every 10 steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--resume", type=Path)
    parser.add_argument("--output", type=Path, default=Path("lightning_loop"))
    options = parser.parse_args()

    rows = paragraphs()
    lengths = [len(row["input_ids"]) for row in rows]
    planner = lw.Planner(lengths, lw.Padded(4096, boundaries=6), seed=0, world_size=options.devices)
    trainer = lightning.Trainer(
        max_epochs=options.epochs,
        devices=options.devices,
        accelerator="cpu",
        logger=False,
        callbacks=[ModelCheckpoint(options.output, every_n_train_steps=10, save_last=True)],
    )
    data = PlannedDataModule(rows, planner, collate_fn=PaddedCollator(), num_workers=1)
    trainer.fit(LitModel(), data, ckpt_path=options.resume)
    print(f"trained {trainer.global_step} steps")


if __name__ == "__main__":
    main()
