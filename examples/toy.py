"""What the framework examples train: paragraphs of the standard library, byte by byte, on a model for a CPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional


def paragraphs(limit: int = 400) -> list[dict[str, Any]]:
    """Return paragraphs of the sources around `json` as rows of bytes: `input_ids` of 20 to 512 tokens."""
    rows = []
    for path in sorted(Path(json.__file__).parents[1].glob("*.py")):
        for text in path.read_bytes().split(b"\n\n"):
            if len(text) >= 20:
                rows.append({"input_ids": np.frombuffer(text[:512], np.uint8)})
            if len(rows) == limit:
                return rows
    return rows


class ToyModel(nn.Module):
    """Predicts a byte from the four before it."""

    def __init__(self, width: int = 16) -> None:
        """Make a model of `width` channels."""
        super().__init__()
        self.bytes = nn.Embedding(256, width)
        self.mix = nn.Conv1d(width, width, kernel_size=4)
        self.head = nn.Linear(width, 256)

    def forward(self, input_ids: Tensor, labels: Tensor, **_: Any) -> dict[str, Tensor]:
        """Return the mean `loss` of the next bytes, and of how many `tokens` it is; labels of -100 do not count."""
        x = self.bytes(input_ids).transpose(1, 2)
        x = functional.gelu(self.mix(functional.pad(x, (3, 0)))).transpose(1, 2)
        targets = labels[:, 1:].flatten()
        loss = functional.cross_entropy(self.head(x)[:, :-1].flatten(0, 1), targets, ignore_index=-100)
        return {"loss": loss, "tokens": (targets != -100).sum()}


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    """Return the optimizer that every example uses."""
    return torch.optim.AdamW(model.parameters(), lr=3e-3)
