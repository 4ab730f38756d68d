"""A tiny language model and the corpus that it learns: what `train.py` and `fidelity.py` share."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from typing import Any

import datasets
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader

import lengthwise as lw
from corpus import VOCABULARY, write_corpus
from lengthwise.torch import BatchSampler, PackedCollator, PaddedCollator

LONGEST = 512


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
        """Map [batch, length, width] to the same shape; `offsets` say where the samples of a pack begin and end.

        Padding stands to the right, so the causal mask hides it.
        """
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


def start(seed: int, *, lr: float) -> tuple[TinyTransformer, torch.optim.Optimizer]:
    """Return a model whose weights depend on the seed alone, and its optimizer."""
    torch.manual_seed(seed)
    model = TinyTransformer()
    return model, torch.optim.AdamW(model.parameters(), lr=lr)


def load_corpus() -> datasets.Dataset:
    """Return the definitions of the standard library as tokens, in random order."""
    datasets.disable_progress_bars()
    torch.set_num_threads(1)  # threads that wait for each other would measure the machine, not the batches
    print("tokenising the standard library ...", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(folder, max_length=LONGEST)
        corpus = datasets.load_from_disk(folder, keep_in_memory=True)
    return corpus.shuffle(seed=0).flatten_indices(keep_in_memory=True)


def forever(dataset: Any, planner: lw.Planner) -> Iterator[tuple[dict[str, Any], float]]:
    """Yield the batches of epoch after epoch, and what the mean loss of each weighs in its step."""
    sampler = BatchSampler(planner)
    packed = isinstance(planner.layout, lw.Packed)
    collate = PackedCollator(emit="varlen") if packed else PaddedCollator()
    loader = DataLoader(dataset, batch_sampler=sampler, collate_fn=collate)
    targets = [sum(mask[1:]) for mask in dataset["loss_mask"]]
    for epoch in itertools.count():
        sampler.set_epoch(epoch)
        weights = lw.batch_weights(planner.plan(epoch), targets=targets).tolist()
        yield from zip(loader, weights, strict=True)
