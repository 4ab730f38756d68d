"""The report in three sentences: what is lost now, what would be gained, what to choose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lengthwise.report import words

if TYPE_CHECKING:
    from lengthwise.report.model import Report, Strategy


def headline(report: Report) -> tuple[str, ...]:
    """Return the sentences, the most important first."""
    baseline, best = report.strategies[0], report.strategy(report.recommended)
    return (_loss(baseline), _gain(baseline, best), *_packed(report, baseline))


def _loss(baseline: Strategy) -> str:
    wasted = 1 - 1 / baseline.padded_ratio if baseline.padded_ratio else 0.0
    return f"{wasted:.0%} of the tokens in {baseline.name}, are padding."


def _gain(baseline: Strategy, best: Strategy) -> str:
    wasted = 1 - 1 / best.padded_ratio if best.padded_ratio else 0.0
    gain = best.speed / baseline.speed if baseline.speed else 1.0
    sentence = f"{len(best.boundaries)} optimal buckets leave {words.percent(wasted)}"
    if gain < 1:
        # Batches of one sample have no padding, and no company either.
        return f"{sentence}, in {best.batches:,} batches instead of {baseline.batches:,}."
    sentence = f"{sentence}: {gain:.2f} times the speed"
    if baseline.seconds is not None and best.seconds is not None:
        before, after = words.duration(baseline.seconds), words.duration(best.seconds)
        return f"{sentence}, {after} an epoch instead of {before}."
    return f"{sentence}, with fresh batches every epoch."


def _packed(report: Report, baseline: Strategy) -> tuple[str, ...]:
    packed = [strategy for strategy in report.strategies if strategy.group == "packed" and not strategy.bound]
    if not packed:
        return ()
    best = min(packed, key=lambda strategy: strategy.padded_ratio)
    gain = best.speed / baseline.speed if baseline.speed else 1.0
    wasted = 1 - 1 / best.padded_ratio if best.padded_ratio else 0.0
    sentence = f"Packed into rows of {report.settings.capacity:,} tokens: {words.percent(wasted)} padding"
    return (f"{sentence}, {gain:.2f} times the speed.",)
