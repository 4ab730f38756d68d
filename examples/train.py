"""Train a tiny transformer on a real corpus under each order, and compare the speed with what the plan predicted.

    pip install . --group examples
    python examples/train.py

Three models learn next tokens of the standard library's own source (see `tiny_lm.py`) on the CPU, one for each order of
`lengthwise.Padded`. They take turns, a few steps each, so that whatever else the machine does slows all three alike.
Real tokens a second fall as the plan's padded/real ratio rises: that is the whole point of planning. (Not quite as far
as predicted here: the last layer of this model skips padding.)
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

import lengthwise as lw
from tiny_lm import TinyTransformer, forever, load_corpus, start

ORDERS = ("sorted", "shuffled", "bucketed")
STEPS_A_TURN = 25
WARM_UP = 5


@dataclass
class Run:
    """One order, its plan and its model."""

    order: str
    planner: lw.Planner
    batches: Iterator[tuple[dict[str, Any], float]]
    model: TinyTransformer
    optimizer: torch.optim.Optimizer
    tokens: int = 0
    seconds: float = 0.0
    losses: list[float] = field(default_factory=list)

    def train(self, steps: int, *, timed: bool) -> None:
        """Take `steps` optimizer steps; `timed` ones count in the speed."""
        started, tokens = time.perf_counter(), 0
        for batch, weight in itertools.islice(self.batches, steps):
            loss = weight * self.model.loss(batch)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            tokens += int(batch["seq_len"].sum())
            self.losses.append(loss.item())
        if timed:
            self.seconds += time.perf_counter() - started
            self.tokens += tokens


def main() -> None:
    """Train under each order in turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300, help="timed optimizer steps for each order (default: 300)")
    parser.add_argument("--max-tokens", type=int, default=4096, help="padded tokens in a batch (default: 4096)")
    arguments = parser.parse_args()

    corpus = load_corpus()
    lengths = lw.read_lengths(corpus)
    print(f"{lengths.size:,} samples, {lengths.sum():,} tokens, lengths from column {lengths.column!r}")
    runs = []
    for order in ORDERS:
        boundaries = 8 if order == "bucketed" else None
        planner = lw.Planner(lengths, lw.Padded(arguments.max_tokens, boundaries=boundaries, order=order))
        runs.append(Run(order, planner, forever(corpus, planner), *start(0, lr=2e-3)))
    for run in runs:
        run.train(WARM_UP, timed=False)
    for done in range(0, arguments.steps, STEPS_A_TURN):
        for run in runs:
            run.train(min(STEPS_A_TURN, arguments.steps - done), timed=True)
        print(f"  {min(done + STEPS_A_TURN, arguments.steps)} of {arguments.steps} steps", flush=True)
    report(runs)


def report(runs: list[Run]) -> None:
    """Print real tokens a second beside what the plan said."""
    ratios = {run.order: run.planner.plan(0).summary.ratio for run in runs}
    best = runs[0].tokens / runs[0].seconds
    print(f"\n{'order':<10}{'padded/real':>12}{'tokens/s':>10}{'predicted':>11}{'measured':>10}{'last loss':>11}")
    for run in runs:
        speed = run.tokens / run.seconds
        predicted = ratios["sorted"] / ratios[run.order]
        tail = run.losses[-50:]
        print(
            f"{run.order:<10}{ratios[run.order]:>12.3f}{speed:>10,.0f}{predicted:>10.0%}{speed / best:>10.0%}"
            f"{sum(tail) / len(tail):>11.3f}"
        )
    print("\npredicted and measured are speeds relative to sorted; the loss is the mean of the last 50 batches.")


if __name__ == "__main__":
    main()
