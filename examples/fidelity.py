"""What the order of batches does to learning: loss curves of five plans at equal tokens, over several seeds.

    pip install lengthwise[torch,plot] datasets bpe-openai
    python examples/fidelity.py --out fidelity

A tiny transformer learns the standard library's own source (see `corpus.py`) on the CPU under sorted, shuffled,
bucketed and packed plans; "stratified" makes each step of four small bucketed batches of different lengths. All see the
same samples, take steps of about the same number of real tokens, and stop after the same number of them; only what
stands together in a step differs. Runs of one seed start from the same weights and take turns, so that whatever else
the machine does slows all alike. Drawn is the loss of held-out samples.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import torch
from matplotlib import pyplot as plt
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader

import lengthwise as lw
from corpus import VOCABULARY, write_corpus
from lengthwise.torch import BatchSampler, PackedCollator, PaddedCollator

ORDERS = ("sorted", "shuffled", "bucketed", "stratified", "packed")
ACCUMULATE = 4
LONGEST = 512
STEPS_A_TURN = 12


class Block(nn.Module):
    """One pre-norm transformer block with causal attention inside samples."""

    def __init__(self, width: int, heads: int) -> None:
        """Make a block of `heads` heads over `width` channels."""
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor, offsets: Tensor | None) -> Tensor:
        """Map [batch, length, width] to the same shape; `offsets` say where the samples of a pack begin and end."""
        qkv = self.qkv(self.before_attention(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if offsets is None:
            mixed = functional.scaled_dot_product_attention(*qkv, is_causal=True)
        else:  # a CPU has no kernel for packs: one call a sample
            pieces = qkv.split(offsets.diff().tolist(), dim=3)
            mixed = torch.cat([functional.scaled_dot_product_attention(*p, is_causal=True) for p in pieces], dim=2)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.before_mlp(x))


class TinyTransformer(nn.Module):
    """A language model that a CPU trains at ten thousands of tokens a second."""

    def __init__(self, *, width: int = 64, layers: int = 2, heads: int = 2) -> None:
        """Make a model for samples of at most `LONGEST` tokens."""
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, width), nn.Embedding(LONGEST, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, VOCABULARY))

    def loss(self, batch: dict[str, Any], *, reduction: str = "mean") -> Tensor:
        """Return the loss of the next tokens; labels of -100 do not count."""
        ids = batch["input_ids"]
        places = batch.get("position_ids", torch.arange(ids.shape[1]))
        x = self.tokens(ids) + self.positions(places)
        for block in self.blocks:
            x = block(x, batch.get("cu_seqlens"))
        labels = batch["labels"][:, 1:]
        wanted = labels != -100
        return functional.cross_entropy(self.head(x[:, :-1][wanted]), labels[wanted], reduction=reduction)


@dataclass
class Run:
    """One order under one seed."""

    order: str
    steps_of_batches: Iterator[list[tuple[dict[str, Any], float]]]
    model: TinyTransformer
    optimizer: torch.optim.Optimizer
    tokens: int = 0
    steps: int = 0
    seconds: float = 0.0
    curve: list[tuple[int, float]] = field(default_factory=list)

    def train(self, until: int) -> None:
        """Take some steps, up to `until` tokens in all."""
        started = time.perf_counter()
        for batches in itertools.islice(self.steps_of_batches, STEPS_A_TURN):
            if self.tokens >= until:
                break
            for group in self.optimizer.param_groups:
                group["lr"] = 3e-3 * min(1.0, (self.steps + 1) / 20) * max(0.1, 1 - self.tokens / until)
            self.optimizer.zero_grad()
            for batch, weight in batches:
                (weight * self.model.loss(batch)).backward()
                self.tokens += int(batch["seq_len"].sum())
            self.optimizer.step()
            self.steps += 1
        self.seconds += time.perf_counter() - started


def planner_of(order: str, lengths: Any, budget: int, seed: int) -> lw.Planner:
    """Return the planner of an order whose steps hold about `budget` real tokens."""
    if order == "packed":
        return lw.Planner(lengths, lw.Packed(budget), seed=seed)  # full to about 99 %
    accumulate = ACCUMULATE if order == "stratified" else 1
    options: dict[str, Any] = {"order": order} if order in ("sorted", "shuffled") else {"boundaries": 8}
    wanted = max_tokens = budget / accumulate
    for _ in range(10):  # a larger budget pads more: settle on the one whose batches hold the wanted real tokens
        plan = lw.Planner(lengths, lw.Padded(max(round(max_tokens), LONGEST), **options)).plan(0)
        max_tokens *= wanted / float(plan.real_tokens.mean())
    layout = lw.Padded(max(round(max_tokens), LONGEST), **options)
    return lw.Planner(lengths, layout, seed=seed, accumulate=accumulate)


def forever(dataset: Any, planner: lw.Planner, targets: Any) -> Iterator[list[tuple[dict[str, Any], float]]]:
    """Yield the batches of each step, and what their mean losses weigh, epoch after epoch."""
    sampler = BatchSampler(planner)
    packed = isinstance(planner.layout, lw.Packed)
    collate = PackedCollator(emit="varlen") if packed else PaddedCollator()
    loader = DataLoader(dataset, batch_sampler=sampler, collate_fn=collate)
    for epoch in itertools.count():
        sampler.set_epoch(epoch)
        weights = lw.batch_weights(planner.plan(epoch), targets=targets).tolist()
        pairs = zip(loader, weights, strict=True)
        while step := list(itertools.islice(pairs, planner.accumulate)):
            yield step


@torch.no_grad()
def held_out_loss(model: TinyTransformer, batches: list[dict[str, Any]]) -> float:
    """Return the mean loss of a target of the held-out samples."""
    total = sum(float(model.loss(batch, reduction="sum")) for batch in batches)
    return total / sum(int((batch["labels"][:, 1:] != -100).sum()) for batch in batches)


def compare(train: Any, held_out: Any, arguments: argparse.Namespace) -> list[Run]:
    """Train every order under every seed; runs of one seed take turns."""
    lengths = lw.read_lengths(train)
    until = int(lengths.sum()) * arguments.epochs
    targets = np.array([sum(mask[1:]) for mask in train["loss_mask"]])
    everything = lw.Planner(lw.read_lengths(held_out), lw.Padded(8192, order="sorted")).plan()
    judge = [PaddedCollator()([held_out[int(i)] for i in batch]) for batch in everything]
    done = []
    for seed in range(arguments.seeds):
        runs = []
        for order in ORDERS:
            torch.manual_seed(seed)
            model = TinyTransformer()
            optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
            planner = planner_of(order, lengths, arguments.tokens, seed)
            runs.append(Run(order, forever(train, planner, targets), model, optimizer))
        while any(run.tokens < until for run in runs):
            for run in runs:
                if run.tokens < until:
                    run.train(until)
                    run.curve.append((run.tokens, held_out_loss(run.model, judge)))
        print(f"seed {seed}: " + ", ".join(f"{run.order} {run.curve[-1][1]:.3f}" for run in runs), flush=True)
        done += runs
    return done


def report(runs: list[Run], out: Path) -> None:
    """Print the table, and write the curves as numbers and as a picture."""
    print(f"\n{'order':<10}{'held-out loss':>22}{'steps':>8}{'tokens/s':>10}")
    for order in ORDERS:
        mine = [run for run in runs if run.order == order]
        last = np.array([run.curve[-1][1] for run in mine])
        speed = sum(run.tokens for run in mine) / sum(run.seconds for run in mine)
        spread = f"{last.mean():.4f} ({last.min():.4f} to {last.max():.4f})"
        print(f"{order:<10}{spread:>26}{mine[0].steps:>6}{speed:>10,.0f}")
    out.mkdir(parents=True, exist_ok=True)
    curves = [{"order": run.order, "steps": run.steps, "seconds": run.seconds, "curve": run.curve} for run in runs]
    (out / "fidelity.json").write_text(json.dumps(curves))
    draw(runs, out / "fidelity.svg")
    print(f"\nthe mean over seeds (lowest to highest) after the same tokens; curves in {out}/fidelity.svg")


def draw(runs: list[Run], path: Path) -> None:
    """Draw the mean curve of each order, and the range over its seeds."""
    figure, axes = plt.subplots(figsize=(7, 4))
    for order in ORDERS:
        mine = [np.array(run.curve) for run in runs if run.order == order]
        grid = np.linspace(max(curve[0, 0] for curve in mine), min(curve[-1, 0] for curve in mine), 200)
        values = np.stack([np.interp(grid, curve[:, 0], curve[:, 1]) for curve in mine])
        (line,) = axes.plot(grid / 1e3, values.mean(0), label=order)
        axes.fill_between(grid / 1e3, values.min(0), values.max(0), alpha=0.2, color=line.get_color(), linewidth=0)
    axes.set(xlabel="real tokens trained (thousands)", ylabel="held-out loss (nats a token)")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    """Train and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=800, help="training samples (default: 800)")
    parser.add_argument("--epochs", type=int, default=3, help="passes over them (default: 3)")
    parser.add_argument("--seeds", type=int, default=3, help="seeds (default: 3)")
    parser.add_argument("--tokens", type=int, default=2048, help="real tokens in a step (default: 2048)")
    parser.add_argument("--out", type=Path, default=Path("fidelity"), help="where to write (default: fidelity)")
    arguments = parser.parse_args()

    datasets.disable_progress_bars()
    torch.set_num_threads(1)  # threads that wait for each other would measure the machine, not the batches
    with tempfile.TemporaryDirectory() as folder:
        print("tokenising the standard library ...", flush=True)
        write_corpus(Path(folder) / "corpus", max_length=LONGEST)
        corpus = datasets.load_from_disk(str(Path(folder) / "corpus")).shuffle(seed=0)
        train = corpus.select(range(arguments.samples)).flatten_indices()
        held_out = corpus.select(range(arguments.samples, arguments.samples + 100)).flatten_indices()
        print(f"{arguments.samples:,} of {len(corpus):,} samples, {sum(train['seq_len']):,} tokens", flush=True)
        report(compare(train, held_out, arguments), arguments.out)


if __name__ == "__main__":
    main()
