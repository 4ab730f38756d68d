"""The lengths of the story: every figure of the published table, and the histogram that was made from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lengthwise.story import PERCENTILES, RANGES, SAMPLES, story_lengths

if TYPE_CHECKING:
    from pathlib import Path


def test_the_published_percentiles_come_back() -> None:
    lengths = story_lengths()
    for percentile, expected in PERCENTILES.items():
        assert int(np.percentile(lengths, percentile)) == expected, percentile


def test_the_published_ranges_come_back() -> None:
    lengths = story_lengths()
    edges = [first for first, _ in RANGES] + [8192]
    counts, _ = np.histogram(lengths, bins=edges)
    assert counts.tolist() == [count for _, count in RANGES]
    assert lengths.size == SAMPLES == counts.sum()


def test_the_total_is_pinned() -> None:
    lengths = story_lengths()
    assert lengths.dtype == np.uint16
    assert int(lengths.sum(dtype=np.int64)) == 1_896_425_587
    assert np.unique(lengths).size == 8_127


def test_the_measured_histogram_is_the_same(measured: Path) -> None:
    expected = np.loadtxt(measured / "seed_902087.csv", delimiter=",", skiprows=1, dtype=np.int64)
    lengths, counts = np.unique(story_lengths(), return_counts=True)
    assert np.array_equal(np.column_stack([lengths, counts]), expected)
