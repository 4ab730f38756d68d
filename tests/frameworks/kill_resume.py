"""Kill a distributed training run at random moments, resume it on another number of processes, and count.

    python tests/frameworks/kill_resume.py --rounds 50 --seed 1

Each round trains two epochs with DistributedDataParallel over gloo, in real processes. It is killed with SIGKILL at
random moments and resumed from its last checkpoint on one, two or three processes, until it ends. Steps after the last
checkpoint are lost with the weights that they made; of the steps that count, each epoch must have seen every sample
exactly once. Exits with 1 where it has not, or where a run hangs.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

import lengthwise as lw
from lengthwise.torch import BatchSampler, Resumable

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

EPOCHS = 2
PATIENCE_S = 60.0
LENGTHS = np.random.default_rng(3).integers(1, 60, 211).astype(np.uint16)
LAYOUT = lw.Padded(max_tokens=180, order="shuffled")


class Launch(NamedTuple):
    """One start of the run."""

    number: int
    world_size: int
    save_every: int
    workers: int


def train(rank: int, launch: Launch, folder: Path) -> None:
    """Train on one rank until the end (or until killed)."""
    number, world_size, save_every, workers = launch
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store{number}", rank=rank, world_size=world_size)
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    planner = lw.Planner(LENGTHS, LAYOUT, world_size=world_size)
    rows: Any = range(len(LENGTHS))
    loader = Resumable(DataLoader(rows, batch_sampler=BatchSampler(planner), collate_fn=list, num_workers=workers))
    checkpoint = folder / "checkpoint.json"
    if checkpoint.exists():
        loader.load_state_dict(json.loads(checkpoint.read_text())["state"])
    step = 0
    with (folder / f"seen{number}.{rank}").open("w", buffering=1) as seen:
        for epoch in range(loader.epoch, EPOCHS):
            loader.set_epoch(epoch)
            for batch in loader:
                model(torch.tensor(batch)[:, None].float()).sum().backward()  # waits for every rank
                step += 1
                print(json.dumps([step, epoch, batch]), file=seen)
                if step % save_every == 0 or loader.state_dict()["epoch"] > epoch:
                    save(checkpoint, loader, number, step)
    dist.barrier()  # a rank that ends while another still talks to it may take that one down
    del model  # which holds on to the group, whose threads would outlive it
    dist.destroy_process_group()


def save(path: Path, loader: Resumable, launch: int, step: int) -> None:
    """Write what every rank agrees on, once every rank has noted its step; whole or not at all."""
    dist.barrier()
    if dist.get_rank() == 0:
        text = json.dumps({"state": loader.state_dict(), "launch": launch, "step": step})
        path.with_suffix(".new").write_text(text)
        path.with_suffix(".new").replace(path)


def run_round(generator: random.Random, worlds: list[int]) -> None:
    """Train to the end, killed after each number of processes but the last."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        counted: Counter[tuple[int, int]] = Counter()
        choose = generator.choice
        launches = [Launch(n, world, choose([1, 2, 5]), choose([0, 1])) for n, world in enumerate(worlds)]
        for launch in launches:
            context = multiprocessing.get_context("fork")
            ranks = [context.Process(target=train, args=(rank, launch, folder)) for rank in range(launch.world_size)]
            for rank in ranks:
                rank.start()
            last = launch is launches[-1]
            if not last:
                kill(ranks, folder, generator)
            join(ranks, killed=not last)
            counted += committed(folder, launch.number, launch.world_size)
        expected = Counter((epoch, row) for epoch in range(EPOCHS) for row in range(len(LENGTHS)))
        if counted != expected:
            lost, twice = expected - counted, counted - expected
            raise SystemExit(f"worlds {worlds}: lost {sorted(lost)}, seen again {sorted(twice)}")


def kill(ranks: list[ForkProcess], folder: Path, generator: random.Random) -> None:
    """Kill every rank a random moment after some rank has made a random number of steps."""
    steps, deadline = generator.randrange(12), time.monotonic() + PATIENCE_S
    before = noted(folder)
    while noted(folder) < before + steps and any(rank.is_alive() for rank in ranks):
        if time.monotonic() > deadline:
            raise SystemExit("a run hangs")
        time.sleep(0.002)
    time.sleep(generator.random() * 0.05)
    for rank in generator.sample(ranks, len(ranks)):
        if rank.pid is not None and rank.is_alive():
            os.kill(rank.pid, signal.SIGKILL)


def noted(folder: Path) -> int:
    """Return how many steps the first ranks have noted in all."""
    return sum(path.read_text().count("\n") for path in folder.glob("seen*.0"))


def join(ranks: list[ForkProcess], *, killed: bool) -> None:
    """Wait for the ranks; a rank that outlives the patience hangs."""
    deadline = time.monotonic() + PATIENCE_S
    while any(rank.is_alive() for rank in ranks):  # Process.join would wait for the loader's orphaned workers, too
        if time.monotonic() > deadline:
            for rank in ranks:
                rank.kill()
            raise SystemExit("a run hangs")
        time.sleep(0.005)
    codes = [rank.exitcode for rank in ranks]
    if any(codes) and not killed:
        raise SystemExit(f"ranks ended with {codes}")


def committed(folder: Path, launch: int, world_size: int) -> Counter[tuple[int, int]]:
    """Return how often each (epoch, row) was seen in the steps that the last checkpoint covers."""
    checkpoint = folder / "checkpoint.json"
    last = json.loads(checkpoint.read_text()) if checkpoint.exists() else {"launch": -1}
    if last["launch"] != launch:
        return Counter()
    lines = [line for rank in range(world_size) for line in (folder / f"seen{launch}.{rank}").read_text().splitlines()]
    return Counter(
        (epoch, row)
        for line in lines
        if line.endswith("]]")  # a line cut short by the kill belongs to no checkpoint
        for step, epoch, rows in [json.loads(line)]
        if step <= last["step"]
        for row in rows
    )


def main() -> None:
    """Run the rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--worlds", type=int, nargs="+", help="processes of each start; by default four at random")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    generator = random.Random(options.seed)  # noqa: S311 (no secret)
    for number in range(options.rounds):
        worlds = options.worlds or [generator.choice([1, 2, 3]) for _ in range(4)]
        run_round(generator, worlds)
        sys.stdout.write(f"round {number}: processes {worlds}: every sample of {EPOCHS} epochs once\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
