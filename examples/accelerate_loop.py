"""Hugging Face accelerate: prepared once, saved and loaded with everything else.

accelerate launch examples/accelerate_loop.py
accelerate launch examples/accelerate_loop.py     # goes on at the very next batch

Two processes on a CPU: `ACCELERATE_USE_CPU=1 torchrun --nproc-per-node 2 examples/accelerate_loop.py`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from accelerate import Accelerator
from torch.utils.data import DataLoader

import lengthwise as lw
from lengthwise.integrations.accelerate import prepare
from lengthwise.torch import BatchSampler, PaddedCollator
from toy import ToyModel, optimizer_of, paragraphs


def main() -> None:
    """Train, saving now and then."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps", type=int, help="stop after so many steps")
    parser.add_argument("--checkpoint", type=Path, default=Path("accelerate_loop"))
    options = parser.parse_args()

    accelerator = Accelerator()
    rows = paragraphs()
    lengths = [len(row["input_ids"]) for row in rows]
    planner = lw.Planner(lengths, lw.Padded(4096, boundaries=6), seed=0, world_size=accelerator.num_processes)
    model = ToyModel()
    model, optimizer = accelerator.prepare(model, optimizer_of(model))
    loader = prepare(  # in place of accelerator.prepare
        accelerator, DataLoader(rows, batch_sampler=BatchSampler(planner), collate_fn=PaddedCollator(), num_workers=1)
    )
    if options.checkpoint.exists():
        accelerator.load_state(options.checkpoint)
        accelerator.print(f"goes on in epoch {loader.epoch}")

    step = 0
    for epoch in range(loader.epoch, options.epochs):
        loader.set_epoch(epoch)
        for batch in loader:
            loss = model(**batch)["loss"]
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            stop = step == options.steps
            if stop or step % 10 == 0:
                accelerator.print(f"epoch {epoch} step {step}: loss {loss.item():.3f}")
                accelerator.save_state(options.checkpoint)
            if stop:
                return
    accelerator.print(f"trained {step} steps")


if __name__ == "__main__":
    main()
