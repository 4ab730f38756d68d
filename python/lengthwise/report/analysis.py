"""From lengths to a `Report`: every figure of every screen is computed here, once."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise._arrays import as_lengths
from lengthwise._core import LengthwiseError
from lengthwise.curve import padding_curve
from lengthwise.histogram import Histogram
from lengthwise.report import pictures
from lengthwise.report.figures import figures, truncations
from lengthwise.report.model import Curve, Dataset, Report, Settings, Speed, Strategy
from lengthwise.report.snippets import snippets
from lengthwise.report.strategies import planned
from lengthwise.speed import SpeedModel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from lengthwise.report.strategies import Planned

#: The budget where none is given, and how many of the longest sample it holds at least.
DEFAULT_MAX_TOKENS: Final = 65_536
DEFAULT_BATCH_SIZE: Final = 8

#: The buckets up to which padding is shown.
CURVE_BUCKETS: Final = 32


def analyse(
    lengths: Any,
    *,
    max_tokens: int | None = None,
    batch_size: int | None = None,
    capacity: int | None = None,
    world_size: int = 1,
    accumulate: int = 1,
    multiple_of: int = 1,
    speed: SpeedModel | None = None,
    dataset: Dataset | None = None,
) -> Report:
    """Compare the ways to batch samples of these lengths.

    Args:
        lengths: integers[n], in tokens, or what `read_lengths` reads.
        max_tokens: the budget, in padded tokens a batch; by default what `batch_size` of the longest take, or 65,536,
            or what 8 of the longest take if that is more.
        batch_size: samples of the baseline's batches; by default as many of the longest as the budget holds.
        capacity: tokens in a pack; the budget by default.
        world_size: ranks.
        accumulate: batches of a rank in a step.
        multiple_of: padded lengths are rounded up to a multiple of this.
        speed: what predicts seconds; by default time goes with the tokens computed, and only speeds are compared.
        dataset: where the lengths came from.

    Raises:
        LengthwiseError: no samples, lengths that are not, a setting below 1, a budget below one aligned token.

    Cost: about 0.5 s for a million samples.

    Example:
        >>> report = analyse([3, 9, 4, 8, 2] * 20, max_tokens=36)
        >>> report.strategies[0].name, report.strategy("best-fit").padded_ratio < 1.1
        ('batches of 4, shuffled', True)
    """
    started = perf_counter()
    given = as_lengths(lengths)
    if not given.size or not given.any():
        raise LengthwiseError("the data set has no tokens to report on: it has no samples, or all of length 0")
    whole = Histogram.of(given)
    settings = _settings(
        whole,
        max_tokens=max_tokens,
        batch_size=batch_size,
        capacity=capacity,
        world_size=world_size,
        accumulate=accumulate,
        multiple_of=multiple_of,
    )
    fitting, cut = _fitting(given, settings)
    found = Histogram.of(fitting) if cut else whole
    curve = padding_against_buckets(found, multiple_of)
    settings = replace(settings, buckets=curve.chosen)
    plans = list(planned(fitting, found, settings))
    strategies = tuple(_strategies(plans, settings, speed))
    optimal = next(strategy for strategy in strategies if strategy.key == "optimal")
    return Report(
        dataset=dataset or Dataset(source="lengths"),
        settings=settings,
        lengths=figures(given, whole, cut=cut, said=dataset.warnings if dataset else ()),
        truncations=truncations(whole),
        strategies=strategies,
        recommended=optimal.key,
        curve=curve,
        speed=_speed(speed),
        snippets=snippets(optimal.boundaries, settings, dataset),
        pictures=pictures.pictures(whole, plans, optimal.key, settings),
        seconds=perf_counter() - started,
    )


def padding_against_buckets(found: Histogram, multiple_of: int = 1) -> Curve:
    """Return padding with 1 to 32 optimal buckets, the knee of that curve, and the number that pays."""
    curve = padding_curve(found, CURVE_BUCKETS, multiple_of=multiple_of)
    return Curve(padded_ratios=tuple((1 + curve.padding).tolist()), knee=curve.knee, chosen=curve.auto())


def _settings(
    found: Histogram,
    *,
    max_tokens: int | None,
    batch_size: int | None,
    capacity: int | None,
    world_size: int,
    accumulate: int,
    multiple_of: int,
) -> Settings:
    for name, value in locals().items():
        if name != "found" and value is not None and value < 1:
            raise LengthwiseError(f"{name} is {value}, but must be at least 1")
    longest = -(-max(int(found.lengths[-1]), 1) // multiple_of) * multiple_of
    assumed = [
        name
        for name, value in (("max_tokens", max_tokens), ("batch_size", batch_size), ("capacity", capacity))
        if value is None
    ]
    if max_tokens is None:
        max_tokens = longest * batch_size if batch_size else max(DEFAULT_MAX_TOKENS, longest * DEFAULT_BATCH_SIZE)
    elif max_tokens < multiple_of:
        raise LengthwiseError(f"max_tokens is {max_tokens}, but one token already takes multiple_of={multiple_of}")
    return Settings(
        max_tokens=max_tokens,
        batch_size=batch_size or max(max_tokens // longest, 1),
        capacity=capacity or max_tokens,
        world_size=world_size,
        accumulate=accumulate,
        multiple_of=multiple_of,
        buckets=1,
        assumed=tuple(assumed),
    )


def _fitting(lengths: npt.NDArray[Any], settings: Settings) -> tuple[npt.NDArray[Any], int]:
    """Return the lengths cut to what every strategy can hold, and how many were cut."""
    limit = min(settings.max_tokens // settings.multiple_of * settings.multiple_of, settings.capacity)
    cut = int(np.count_nonzero(lengths > limit))
    return (np.minimum(lengths, lengths.dtype.type(limit)), cut) if cut else (lengths, 0)


def _strategies(plans: Sequence[Planned], settings: Settings, speed: SpeedModel | None) -> Iterator[Strategy]:
    model = speed or SpeedModel(per_token=1.0)
    ranks = settings.world_size, settings.accumulate
    baseline = _rate(plans[0], model, ranks)
    for plan in plans:
        measured = plan.measured
        yield Strategy(
            key=plan.key,
            name=plan.name,
            group=plan.group,
            boundaries=plan.boundaries,
            padded_ratio=measured.padded_ratio,
            batches=len(measured.padded),
            steps=-(-len(measured.padded) // (ranks[0] * ranks[1])),
            shapes=measured.shapes if plan.group != "packed" else 1,
            largest_batch=int(measured.padded.max()),
            imbalance=measured.imbalance(*ranks),
            mixing=measured.mixing(),
            speed=_rate(plan, model, ranks) / baseline,
            seconds=measured.seconds(speed, *ranks) if speed else None,
        )
    yield from _bound(plans[-1], settings, model, baseline)


def _rate(plan: Planned, model: SpeedModel, ranks: tuple[int, int]) -> float:
    """Real tokens a second of all ranks."""
    return int(plan.measured.real.sum()) / max(plan.measured.seconds(model, *ranks), 1e-12)


def _bound(plan: Planned, settings: Settings, model: SpeedModel, baseline: float) -> Iterator[Strategy]:
    if plan.bound is None:
        return
    padded, real = plan.bound * settings.capacity, int(plan.measured.real.sum())
    ranks = settings.world_size, settings.accumulate
    # The fewest packs, as evenly dealt as they can be: the packs that were made, sped up by their number.
    rate = _rate(plan, model, ranks) * len(plan.measured.padded) / max(plan.bound, 1)
    yield Strategy(
        key="bound",
        name="packed, proven limit",
        group="packed",
        bound=True,
        padded_ratio=padded / max(real, 1),
        batches=plan.bound,
        steps=-(-plan.bound // (ranks[0] * ranks[1])),
        speed=rate / baseline,
    )


def _speed(model: SpeedModel | None) -> Speed | None:
    if model is None:
        return None
    return Speed(
        source="timings" if model.rows else "rate",
        per_batch=model.per_batch,
        per_token=model.per_token,
        per_square=model.per_square,
        rows=model.rows,
        error=model.error,
    )
