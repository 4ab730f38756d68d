"""DistributedDataParallel: every rank has the same number of batches, and every token the same weight.

    torchrun --nproc-per-node 2 examples/ddp.py
    torchrun --nproc-per-node 3 examples/ddp.py     # goes on where the two ranks stopped

Batches hold different numbers of tokens, so the mean of the ranks' mean losses would weigh tokens unequally: each rank
divides the sum of its losses by the tokens of all ranks instead.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

import lengthwise as lw
from lengthwise.torch import BatchSampler, PaddedCollator, Resumable
from toy import ToyModel, optimizer_of, paragraphs


def main() -> None:
    """Train on this rank."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps", type=int, help="stop after so many steps")
    parser.add_argument("--checkpoint", type=Path, default=Path("ddp.pt"))
    options = parser.parse_args()

    dist.init_process_group("gloo")
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // dist.get_world_size()))
    rows = paragraphs()
    lengths = [len(row["input_ids"]) for row in rows]
    planner = lw.Planner(lengths, lw.Padded(4096, boundaries=6), seed=0, world_size=dist.get_world_size())
    loader = Resumable(DataLoader(rows, batch_sampler=BatchSampler(planner), collate_fn=PaddedCollator()))
    model = DistributedDataParallel(ToyModel())
    optimizer = optimizer_of(model)
    if options.checkpoint.exists():
        saved = torch.load(options.checkpoint)
        model.module.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["data"])  # the same on every rank, whatever their number was

    step = 0
    for epoch in range(loader.epoch, options.epochs):
        loader.set_epoch(epoch)
        for batch in loader:
            result = model(**batch)
            tokens = result["tokens"].clone()
            dist.all_reduce(tokens)  # the tokens of all ranks; the gradients are averaged, hence the world size
            loss = result["loss"] * result["tokens"] / tokens * dist.get_world_size()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            stop = step == options.steps
            if dist.get_rank() == 0 and (stop or step % 10 == 0):
                print(
                    f"epoch {epoch} step {step}: {tokens.item():,} tokens on {dist.get_world_size()} ranks", flush=True
                )
                state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save({**state, "data": loader.state_dict()}, options.checkpoint)
            if stop:
                break
        if step == options.steps:
            break
    if dist.get_rank() == 0:
        print(f"trained {step} steps")
    dist.barrier()  # a rank that ends while another still talks to it may take that one down
    del model  # which holds on to the group, whose threads would outlive it
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
