"""Train a tiny transformer on a real corpus under each order, and compare the speed with what the plan predicted.

    pip install lengthwise[torch] datasets bpe-openai
    python examples/train.py

Three models learn next tokens of the standard library's own source (see `corpus.py`) on the CPU, one for each order of
`lengthwise.Padded`. They take turns, a few steps each, so that whatever else the machine does slows all three alike.
Real tokens a second should fall as the plan's padded/real ratio rises: that is the whole point of planning.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import datasets
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader

import lengthwise as lw
from corpus import VOCABULARY, write_corpus
from lengthwise.torch import BatchSampler, PaddedCollator

ORDERS = ("sorted", "shuffled", "bucketed")
STEPS_A_TURN = 25
WARM_UP = 5


class Block(nn.Module):
    """One pre-norm transformer block with causal attention."""

    def __init__(self, width: int, heads: int) -> None:
        """Make a block of `heads` heads over `width` channels."""
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """Map [batch, length, width] to the same shape. Padding stands to the right, so the causal mask hides it."""
        batch, length, width = x.shape
        q, k, v = self.qkv(self.before_attention(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.before_mlp(x))


class TinyTransformer(nn.Module):
    """A language model that a CPU trains at thousands of tokens a second."""

    def __init__(self, *, width: int = 96, layers: int = 2, heads: int = 4, max_length: int = 512) -> None:
        """Make a model for sequences of at most `max_length` tokens."""
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, width), nn.Embedding(max_length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, VOCABULARY))

    def loss(self, input_ids: Tensor, labels: Tensor) -> Tensor:
        """Return the mean loss of the next tokens; labels of -100 do not count."""
        x = self.tokens(input_ids) + self.positions(torch.arange(input_ids.shape[1]))
        logits = self.head(self.blocks(x))[:, :-1]
        return functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


@dataclass
class Run:
    """One order, its plan and its model."""

    order: str
    planner: lw.Planner
    batches: Iterator[dict[str, Tensor]]
    model: TinyTransformer
    optimizer: torch.optim.Optimizer
    tokens: int = 0
    seconds: float = 0.0
    losses: list[float] = field(default_factory=list)

    @classmethod
    def start(cls, order: str, dataset: datasets.Dataset, planner: lw.Planner) -> Run:
        """Start from the same weights as every other run."""
        torch.manual_seed(0)
        model = TinyTransformer()
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        return cls(order, planner, forever(dataset, planner), model, optimizer)

    def train(self, steps: int, *, timed: bool) -> None:
        """Take `steps` optimizer steps; `timed` ones count in the speed."""
        started, tokens = time.perf_counter(), 0
        for batch in itertools.islice(self.batches, steps):
            loss = self.model.loss(batch["input_ids"], batch["labels"])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            tokens += int(batch["attention_mask"].sum())
            self.losses.append(loss.item())
        if timed:
            self.seconds += time.perf_counter() - started
            self.tokens += tokens


def forever(dataset: datasets.Dataset, planner: lw.Planner) -> Iterator[dict[str, Tensor]]:
    """Yield the batches of epoch after epoch, as a training loop does."""
    sampler = BatchSampler(planner)
    loader = DataLoader(dataset, batch_sampler=sampler, collate_fn=PaddedCollator())
    for epoch in itertools.count():
        sampler.set_epoch(epoch)
        yield from loader


def main() -> None:
    """Train under each order in turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300, help="timed optimizer steps for each order (default: 300)")
    parser.add_argument("--max-tokens", type=int, default=4096, help="padded tokens in a batch (default: 4096)")
    arguments = parser.parse_args()

    datasets.disable_progress_bars()
    torch.set_num_threads(1)  # threads that wait for each other would measure the machine, not the batches
    with tempfile.TemporaryDirectory() as folder:
        print("tokenising the standard library ...", flush=True)
        write_corpus(Path(folder) / "corpus")
        lengths = lw.read_lengths(Path(folder) / "corpus")
        print(f"{lengths.size:,} samples, {lengths.sum():,} tokens, lengths from column {lengths.column!r}")
        dataset = datasets.load_from_disk(str(Path(folder) / "corpus"))
        runs = []
        for order in ORDERS:
            boundaries = 8 if order == "bucketed" else None
            layout = lw.Padded(arguments.max_tokens, boundaries=boundaries, order=order)
            runs.append(Run.start(order, dataset, lw.Planner(lengths, layout, seed=0)))
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
