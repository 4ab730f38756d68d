"""A plain PyTorch loop that can be stopped and resumed at any batch.

    python examples/plain_loop.py                   # trains; stop it with Ctrl-C whenever you like
    python examples/plain_loop.py                   # goes on at the very next batch

The state of the data is one small dict. It holds for another number of workers, and of ranks.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch.utils.data import DataLoader

import lengthwise as lw
from lengthwise.torch import BatchSampler, PaddedCollator, Resumable
from toy import ToyModel, optimizer_of, paragraphs


def main() -> None:
    """Train, saving now and then."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, help="stop after so many steps")
    parser.add_argument("--checkpoint", type=Path, default=Path("plain_loop.pt"))
    options = parser.parse_args()

    rows = paragraphs()
    planner = lw.Planner([len(row["input_ids"]) for row in rows], lw.Padded(4096, boundaries=6), seed=0)
    loader = Resumable(
        DataLoader(rows, batch_sampler=BatchSampler(planner), collate_fn=PaddedCollator(), num_workers=2)
    )
    model = ToyModel()
    optimizer = optimizer_of(model)
    step = 0
    if options.checkpoint.exists():
        saved = torch.load(options.checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["data"])
        step = saved["step"]
        print(f"goes on after step {step}, in epoch {loader.epoch}")

    for epoch in range(loader.epoch, options.epochs):
        loader.set_epoch(epoch)
        for batch in loader:
            loss = model(**batch)["loss"]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            stop = step == options.steps
            if stop or step % 10 == 0:
                print(f"epoch {epoch} step {step}: loss {loss.item():.3f}, batch {tuple(batch['input_ids'].shape)}")
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                torch.save({**state, "data": loader.state_dict()}, options.checkpoint)
            if stop:
                return
    print(f"trained {step} steps")


if __name__ == "__main__":
    main()
