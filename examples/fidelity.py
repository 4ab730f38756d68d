"""What the order of batches does to learning: loss curves of five plans at equal tokens, over several seeds.

    pip install . --group examples
    python examples/fidelity.py --out fidelity

A tiny transformer learns the standard library's own source (see `tiny_lm.py`) on the CPU under sorted, shuffled,
bucketed and packed plans; "stratified" makes each step of four small bucketed batches of different lengths. All see the
same samples, take steps of about the same number of real tokens, and stop after the same number of them; only what
stands together in a step differs. Runs of one seed start from the same weights and take turns, so that whatever else
the machine does slows all alike; speed is counted by the processor time that training took. Drawn is the loss of
held-out samples.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib import pyplot as plt

import lengthwise as lw
from lengthwise.torch import PaddedCollator
from tiny_lm import LONGEST, TinyTransformer, forever, load_corpus, start

ORDERS = ("sorted", "shuffled", "bucketed", "stratified", "packed")
ACCUMULATE = 4
STEPS_A_TURN = 24
LEARNING_RATE = 3e-3


@dataclass
class Run:
    """One order under one seed."""

    order: str
    planner: lw.Planner
    batches: Iterator[tuple[dict[str, Any], float]]
    model: TinyTransformer
    optimizer: torch.optim.Optimizer
    tokens: int = 0
    steps: int = 0
    seconds: float = 0.0
    curve: list[tuple[int, float]] = field(default_factory=list)

    def train(self, until: int) -> None:
        """Take some steps, up to `until` tokens in all."""
        started = time.process_time()
        for _ in range(STEPS_A_TURN):
            if self.tokens >= until:
                break
            for group in self.optimizer.param_groups:
                group["lr"] = LEARNING_RATE * min(1.0, (self.steps + 1) / 20) * max(0.1, 1 - self.tokens / until)
            self.optimizer.zero_grad()
            for batch, weight in itertools.islice(self.batches, self.planner.accumulate):
                (weight * self.model.loss(batch)).backward()
                self.tokens += int(batch["seq_len"].sum())
            self.optimizer.step()
            self.steps += 1
        self.seconds += time.process_time() - started


def planner_of(order: str, lengths: Any, budget: int, seed: int) -> lw.Planner:
    """Return the planner of an order whose steps hold about `budget` real tokens."""
    if order == "packed":
        return lw.Planner(lengths, lw.Packed(budget), seed=seed)  # full to about 99 %
    accumulate = ACCUMULATE if order == "stratified" else 1
    options: dict[str, Any] = {"order": order} if order in ("sorted", "shuffled") else {"boundaries": 8}
    tried: dict[int, float] = {}
    max_tokens = max(budget // accumulate, LONGEST)
    for _ in range(20):  # a larger budget pads more: search for the one whose steps hold the wanted real tokens
        planner = lw.Planner(lengths, lw.Padded(max_tokens, **options), seed=seed, accumulate=accumulate)
        tokens = float(planner.plan(0).step_tokens.mean())
        tried[max_tokens] = abs(tokens - budget)
        max_tokens = max(round(max_tokens * budget / tokens), LONGEST)
        while max_tokens in tried:
            max_tokens += 1
    return planner.replace(layout=lw.Padded(min(tried, key=lambda budget: tried[budget]), **options))


@torch.no_grad()
def held_out_loss(model: TinyTransformer, batches: list[dict[str, Any]]) -> float:
    """Return the mean loss of a target of the held-out samples."""
    total = sum(float(model.loss(batch, reduction="sum")) for batch in batches)
    return total / sum(int((batch["labels"][:, 1:] != -100).sum()) for batch in batches)


def compare(train: Any, held_out: Any, seed: int, arguments: argparse.Namespace) -> list[Run]:
    """Train every order from the same weights, in turns."""
    lengths = lw.read_lengths(train)
    until = int(lengths.sum()) * arguments.epochs
    everything = lw.Planner(lw.read_lengths(held_out), lw.Padded(8192, order="sorted")).plan()
    judge = [PaddedCollator()([held_out[int(i)] for i in batch]) for batch in everything]
    runs = []
    for order in ORDERS:
        planner = planner_of(order, lengths, arguments.tokens, seed)
        runs.append(Run(order, planner, forever(train, planner), *start(seed, lr=LEARNING_RATE)))
    while any(run.tokens < until for run in runs):
        for run in runs:
            if run.tokens < until:
                run.train(until)
                run.curve.append((run.tokens, held_out_loss(run.model, judge)))
    return runs


def report(runs: list[Run], out: Path) -> None:
    """Print the table, and write the curves as numbers and as a picture."""
    print(f"\n{'order':<10}{'held-out loss':>26}{'steps':>6}{'tokens a CPU second':>21}")
    for order in ORDERS:
        mine = [run for run in runs if run.order == order]
        last = np.array([run.curve[-1][1] for run in mine])
        spread = f"{last.mean():.4f} ({last.min():.4f} to {last.max():.4f})"
        print(f"{order:<10}{spread:>26}{mine[0].steps:>6}{speed_of(mine):>21,.0f}")
    out.mkdir(parents=True, exist_ok=True)
    curves = [{"order": run.order, "steps": run.steps, "cpu_seconds": run.seconds, "curve": run.curve} for run in runs]
    (out / "fidelity.json").write_text(json.dumps(curves))
    draw(runs, out / "fidelity.svg")
    print(f"\nthe mean over seeds (lowest to highest) after the same tokens; curves in {out}/fidelity.svg")


def speed_of(runs: list[Run]) -> float:
    """Return the real tokens that a second of processor time trained."""
    return sum(run.tokens for run in runs) / sum(run.seconds for run in runs)


def draw(runs: list[Run], path: Path) -> None:
    """Draw the mean curve of each order, and the range over its seeds."""
    figure, axes = plt.subplots(figsize=(7, 4))
    for order in ORDERS:
        mine = [run for run in runs if run.order == order]
        curves = [np.array(run.curve) for run in mine]
        grid = np.linspace(max(curve[0, 0] for curve in curves), min(curve[-1, 0] for curve in curves), 200)
        values = np.stack([np.interp(grid, curve[:, 0], curve[:, 1]) for curve in curves])
        (line,) = axes.plot(
            grid / 1e3, values.mean(0), label=f"{order}: {speed_of(mine) / 1e3:.1f} k tokens a CPU second"
        )
        axes.fill_between(grid / 1e3, values.min(0), values.max(0), alpha=0.2, color=line.get_color(), linewidth=0)
    axes.set(xlabel="real tokens trained (thousands)", ylabel="held-out loss (nats a token)")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    """Train and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1500, help="training samples (default: 1500)")
    parser.add_argument("--epochs", type=int, default=3, help="passes over them (default: 3)")
    parser.add_argument("--seeds", type=int, default=3, help="seeds (default: 3)")
    parser.add_argument("--tokens", type=int, default=2200, help="real tokens in a step (default: 2200)")
    parser.add_argument("--out", type=Path, default=Path("fidelity"), help="where to write (default: fidelity)")
    arguments = parser.parse_args()

    corpus = load_corpus()
    train = corpus.select(range(arguments.samples))
    held_out = corpus.select(range(arguments.samples, arguments.samples + 100))
    print(f"{arguments.samples:,} of {len(corpus):,} samples, {sum(train['seq_len']):,} tokens", flush=True)
    runs: list[Run] = []
    for seed in range(arguments.seeds):
        runs += compare(train, held_out, seed, arguments)
        print(f"\nafter {seed + 1} of {arguments.seeds} seeds:")
        report(runs, arguments.out)


if __name__ == "__main__":
    main()
