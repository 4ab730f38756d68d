"""Rows of packs: which tokens stand where, and what goes with each of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from lengthwise.offline.tokens import TokenColumn, Tokens
    from lengthwise.plan import Plan

    Int64 = npt.NDArray[np.int64]

#: The label that losses ignore.
IGNORED: Final = -100


@dataclass(frozen=True)
class Pieces:
    """The samples of some packs, or pieces of them, one after another.

    Attributes:
        samples: int64[m], rows of the source.
        starts: int64[m], the first token of each that is used.
        stops: int64[m], one past the last.
        offsets: int64[p + 1], where each pack begins among the pieces.
    """

    samples: Int64
    starts: Int64
    stops: Int64
    offsets: Int64

    @classmethod
    def of(cls, plan: Plan, tokens: TokenColumn, first: int, stop: int) -> Pieces:
        """Return what the packs from `first` to `stop` of a plan hold."""
        sizes = plan.sizes[first:stop].astype(np.int64)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        at = np.repeat(plan.starts[first:stop] - offsets[:-1], sizes) + np.arange(offsets[-1])
        samples = plan.indices[at].astype(np.int64)
        if plan.segments is None:
            return cls(samples, np.zeros(len(samples), np.int64), tokens.lengths[samples], offsets)
        segments = plan.segments[at].astype(np.int64)
        return cls(samples, segments[:, 0], segments[:, 1], offsets)

    @cached_property
    def lengths(self) -> Int64:
        """int64[m]: tokens of each piece."""
        return self.stops - self.starts

    @cached_property
    def places(self) -> Int64:
        """int64[m + 1]: where each piece begins among the tokens."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.lengths)])

    @property
    def firsts(self) -> Int64:
        """The places of first tokens; pieces without tokens have none."""
        return self.places[:-1][self.lengths > 0]

    @property
    def positions(self) -> npt.NDArray[np.int32]:
        """int32[t]: the position of every token in its piece."""
        return (np.arange(self.places[-1]) - np.repeat(self.places[:-1], self.lengths)).astype(np.int32)

    @property
    def documents(self) -> npt.NDArray[np.int32]:
        """int32[t]: for every token the number of its piece in the pack."""
        sizes = np.diff(self.offsets)
        numbers = np.arange(self.offsets[-1]) - np.repeat(self.offsets[:-1], sizes)
        return np.repeat(numbers, self.lengths).astype(np.int32)


def table(tokens: Tokens, pieces: Pieces) -> pa.Table:
    """Return packs as rows: lists over tokens, and lists over samples."""
    import pyarrow as pa

    at_tokens, at_samples = pieces.places[pieces.offsets], pieces.offsets
    columns = {name: _lists(at_tokens, values) for name, values in per_token(tokens, pieces).items()}
    per_sample: dict[str, npt.NDArray[Any]] = {
        "seq_lengths": pieces.lengths.astype(np.int32),
        "sample_ids": pieces.samples,
        "sample_starts": pieces.starts.astype(np.int32),
    }
    columns |= {name: _lists(at_samples, values) for name, values in per_sample.items()}
    return pa.table(columns)


def per_token(tokens: Tokens, pieces: Pieces) -> dict[str, npt.NDArray[Any]]:
    """Return the columns that have one value a token."""
    ids = tokens.ids.take(pieces)
    labels = _labels(tokens, pieces, ids)
    return {
        "input_ids": ids,
        "position_ids": pieces.positions,
        "document_ids": pieces.documents,
        "labels": labels,
        "loss_mask": (labels != IGNORED).astype(np.uint8),
    }


def _labels(tokens: Tokens, pieces: Pieces, ids: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if tokens.labels is not None:
        labels = tokens.labels.take(pieces).astype(np.int64)
    elif tokens.loss_mask is not None:
        labels = np.where(tokens.loss_mask.take(pieces) != 0, ids.astype(np.int64), IGNORED)
    else:
        labels = ids.astype(np.int64)
    # What stands before a sample is another sample, so nothing may learn to follow from it.
    labels[pieces.firsts] = IGNORED
    return labels.astype(np.int32) if ids.dtype.itemsize <= 2 or ids.dtype == np.int32 else labels


def _lists(offsets: Int64, values: npt.NDArray[Any]) -> pa.Array:
    import pyarrow as pa

    # Parts are a few million tokens: 32-bit offsets, which every reader takes, always hold them.
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values))
