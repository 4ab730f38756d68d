"""What a report says: plain values, computed once, from which every screen, file and picture is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: The version of the JSON form. A field that goes or changes its meaning raises it; a new field does not.
VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Where the lengths came from.

    Attributes:
        source: the path or the type of object.
        column: the column that was used, None for bare lengths.
        reason: why that one.
        read_seconds: time to read the lengths; 0.0 where they were in memory.
        warnings: what the reader found suspicious.
    """

    source: str
    column: str | None = None
    reason: str = ""
    read_seconds: float = 0.0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What was assumed.

    Attributes:
        max_tokens: the budget, in padded tokens a batch.
        batch_size: samples in the fixed-size batches of the baseline.
        capacity: tokens in a pack.
        world_size: ranks.
        accumulate: batches of a rank in a step.
        multiple_of: padded lengths are multiples of this.
        buckets: how many buckets each bucketed strategy has.
        assumed: which of these were not given, so that a screen can say so.
    """

    max_tokens: int
    batch_size: int
    capacity: int
    world_size: int
    accumulate: int
    multiple_of: int
    buckets: int
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthFigures:
    """The distribution of the lengths.

    Attributes:
        samples: how many.
        tokens: their sum.
        mean: tokens a sample.
        percentiles: (percent, length), ascending; 0 and 100 are the shortest and the longest.
        distinct: how many different lengths there are.
        empty: samples of 0 tokens.
        longest: (index, length) of the ten longest samples, the longest first.
        warnings: what looks like a mistake in the data, one sentence each, those of the reader first.
    """

    samples: int
    tokens: int
    mean: float
    percentiles: tuple[tuple[float, int], ...]
    distinct: int
    empty: int
    longest: tuple[tuple[int, int], ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """What a longest length would cut.

    Attributes:
        max_length: samples longer than this are cut to it, in tokens.
        samples: how many are cut.
        tokens: how many tokens are lost.
    """

    max_length: int
    samples: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One way to turn the samples into batches, and what it costs.

    Attributes:
        key: a name for programs, unique in the report.
        name: a name for people.
        group: "fixed", "budget", "buckets" or "packed".
        bound: whether this is a limit that no method beats, rather than a method.
        boundaries: inclusive upper bounds of its buckets, in tokens; empty without buckets.
        padded_ratio: padded tokens over real tokens.
        batches: batches (or packs) an epoch, all ranks.
        steps: optimiser steps an epoch, the same on every rank.
        shapes: different (rows, padded length) of its batches.
        largest_batch: most padded tokens in a batch.
        imbalance: what waiting costs: padded tokens of each step's busiest rank over the mean of all ranks, less 1.
        mixing: correlation between the mean lengths of neighbouring batches: 0.0 is well mixed, 1.0 is sorted.
        speed: predicted rate of real tokens over the baseline's.
        seconds: predicted seconds an epoch; None where no speed was given.
    """

    key: str
    name: str
    group: str
    bound: bool = False
    boundaries: tuple[int, ...] = ()
    padded_ratio: float
    batches: int
    steps: int
    shapes: int | None = None
    largest_batch: int | None = None
    imbalance: float | None = None
    mixing: float | None = None
    speed: float
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Padding against the number of optimal buckets.

    Attributes:
        padded_ratios: padded over real tokens with 1, 2, ... buckets, every sample padded to its bucket's bound.
        knee: the number of buckets at which the curve bends most.
        chosen: the number of buckets that pays, as `boundaries="auto"` chooses it: one more saves less than 0.5%.
    """

    padded_ratios: tuple[float, ...]
    knee: int
    chosen: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """The speed model that the predictions used.

    Attributes:
        source: "rate" or "timings".
        per_batch: seconds a batch.
        per_token: seconds a token, padding included.
        per_square: seconds a squared token of row length.
        rows: measured batches that it was fitted to.
        error: relative error of the fit.
    """

    source: str
    per_batch: float
    per_token: float
    per_square: float
    rows: int
    error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """Lines to paste.

    Attributes:
        tool: for which library.
        language: "python" or "yaml".
        code: the lines.
    """

    tool: str
    language: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bins:
    """A histogram over a logarithmic axis of lengths.

    Attributes:
        edges: ascending, in tokens; one more than bins.
        samples: samples in each bin; a length counts as spread over half a token to either side.
        tokens: tokens in each bin.
    """

    edges: tuple[float, ...]
    samples: tuple[float, ...]
    tokens: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One batch to draw.

    Attributes:
        strategy: the key of the strategy that it belongs to.
        position: which batch of the epoch it is.
        padded_length: what each row is padded to, in tokens.
        rows: for each row the lengths of the samples in it, in tokens: one where padded; several where packed, or at
            most 96 sums of neighbours.
    """

    strategy: str
    position: int
    padded_length: int
    rows: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """Batches over an epoch, a few hundred of them evenly spaced.

    Attributes:
        strategy: the key of the strategy.
        positions: which batches.
        real: real tokens in each.
        padded: padded tokens in each.
    """

    strategy: str
    positions: tuple[int, ...]
    real: tuple[int, ...]
    padded: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loads:
    """What each rank computes in an epoch, and how long it waits for the busiest rank of each step.

    Attributes:
        strategy: the key of the strategy.
        busy: for each rank, the padded tokens that it computes.
        waiting: for each rank, the padded tokens that the busiest ranks compute beyond its own, step by step.
    """

    strategy: str
    busy: tuple[int, ...]
    waiting: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fills:
    """How full packs are.

    Attributes:
        strategy: the key of the strategy.
        packs: packs in each twentieth of fill: up to 5%, up to 10%, ... up to full.
    """

    strategy: str
    packs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """What the charts draw beyond the tables.

    Attributes:
        bins: the distribution of lengths.
        batches: a few real batches of the baseline, of the best buckets and of the best packing.
        epochs: tokens a batch over the epoch.
        loads: what each rank computes and waits for.
        fills: how full packs are.
    """

    bins: Bins
    batches: tuple[Batch, ...] = ()
    epochs: tuple[Epoch, ...] = ()
    loads: tuple[Loads, ...] = ()
    fills: tuple[Fills, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What padding costs now, what would be gained, and what to paste.

    Attributes:
        dataset: where the lengths came from.
        settings: what was assumed.
        lengths: their distribution.
        truncations: what each longest length would cut.
        strategies: ways to batch, side by side; the first is the baseline.
        recommended: the key of the strategy to start with.
        curve: padding against the number of buckets.
        speed: the model behind seconds and speeds, None where only padding was compared.
        snippets: lines to paste.
        pictures: what the charts draw.
        seconds: time that the analysis took.
    """

    dataset: Dataset
    settings: Settings
    lengths: LengthFigures
    truncations: tuple[Truncation, ...]
    strategies: tuple[Strategy, ...]
    recommended: str
    curve: Curve
    speed: Speed | None
    snippets: tuple[Snippet, ...]
    pictures: Pictures
    seconds: float

    def strategy(self, key: str) -> Strategy:
        """Return the strategy of that key.

        Raises:
            KeyError: there is none.
        """
        for strategy in self.strategies:
            if strategy.key == key:
                return strategy
        raise KeyError(key)
