"""What a plan costs, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lengthwise.plan import Plan


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A plan in numbers; tokens are counted once for every time a sample is used.

    Attributes:
        samples: entries of all batches: samples, pieces of samples and repeats.
        real_tokens: tokens of those.
        padded_tokens: tokens of all batches, padding included.
        batches: batches of all ranks.
        steps: batches of each rank.
        shapes: distinct pairs of batch size and padded length.
        dropped: samples left out.
        truncated: samples cut to the limit.
        split: samples used in several pieces.
        alone: samples with a batch of their own beyond the budget.
        repeated: samples used again for equal ranks.
        cut_batches: batches cut in two for equal ranks.
    """

    samples: int
    real_tokens: int
    padded_tokens: int
    batches: int
    steps: int
    shapes: int
    dropped: int
    truncated: int
    split: int
    alone: int
    repeated: int
    cut_batches: int

    @property
    def ratio(self) -> float:
        """Padded tokens for each real token."""
        return self.padded_tokens / self.real_tokens if self.real_tokens else float("inf")

    @property
    def padding(self) -> float:
        """Padding tokens for each real token: ratio - 1."""
        return self.ratio - 1


def summarise(plan: Plan) -> Summary:
    """Count."""
    tokens = plan.planner.layout.batch_tokens(plan.sizes, plan.padded_lengths)
    if plan.segments is None:
        real = plan.planner.lengths[plan.indices].astype(np.uint64)
    else:
        real = (plan.segments[:, 1] - plan.segments[:, 0]).astype(np.uint64)
    before = np.concatenate([[0], np.cumsum(real, dtype=np.uint64)])
    stops = plan.starts + plan.sizes
    shapes = np.unique(np.stack([plan.sizes, plan.padded_lengths]), axis=1).shape[1]
    return Summary(
        samples=int(plan.sizes.sum(dtype=np.uint64)),
        real_tokens=int((before[stops] - before[plan.starts]).sum()),
        padded_tokens=int(tokens.sum()),
        batches=len(plan),
        steps=plan.steps,
        shapes=shapes,
        **plan.accounts,
    )
