"""Plans of samples with two lengths: against pure Python in time, and against buckets of one length in padding.

Run `pytest benches/bench_pairs.py --benchmark-enable` for the times, `python benches/bench_pairs.py` for the table of
padding in the guide on plans.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import lengthwise as lw

if TYPE_CHECKING:
    import numpy.typing as npt

    Pairs = npt.NDArray[np.uint32]

MAX_TOKENS = 65_536
SAMPLES = 300_000


def speech(samples: int) -> Pairs:
    """Frames of 10 ms, 0.5 to 40 s, and the tokens spoken in them, 3 a second and 40 % more or less."""
    rng = np.random.default_rng(5)
    frames = np.clip(rng.gamma(6, 250, samples), 50, 4000)
    return np.stack([frames, np.clip(frames * 0.03 * rng.lognormal(0, 0.4, samples), 1, 400)], axis=1).astype(np.uint32)


def translation(samples: int) -> Pairs:
    """Sentences of 1 to 500 tokens, and their translations, 25 % longer or shorter."""
    rng = np.random.default_rng(5)
    source = np.clip(rng.lognormal(3.3, 0.7, samples), 1, 500)
    target = np.clip(source * rng.lognormal(0, 0.25, samples) + 1, 1, 500)
    return np.stack([source, target], axis=1).astype(np.uint32)


def longer_of_both(pairs: Pairs, k: int) -> Any:
    """Cells that bucket by the longer length alone, with the optimal bounds for it."""
    bounds = lw.optimal_boundaries(pairs.max(axis=1), k)
    return np.stack([bounds, bounds], axis=1)


def stripes(pairs: Pairs, k: int, weights: tuple[int, int]) -> Any:
    """The best stripes along the first length."""
    cost = lambda x, y: weights[0] * x + weights[1] * y  # noqa: E731
    return lw.optimal_stripes(pairs[:, 0], pairs[:, 1], k, cost=cost)


def python_twin(pairs: list[list[int]], cells: list[list[int]], seed: int) -> list[list[int]]:
    """Shuffle inside cells, fill to the budget, shuffle the batches: as one would write it."""
    rng = random.Random(seed)  # noqa: S311 (a twin of a shuffle)
    groups: list[list[int]] = [[] for _ in cells]
    for sample, (first, second) in enumerate(pairs):
        groups[next(i for i, (x, y) in enumerate(cells) if first <= x and second <= y)].append(sample)
    batches = []
    for group in groups:
        rng.shuffle(group)
        batch: list[int] = []
        most = (0, 0)
        for sample in group:
            first, second = pairs[sample]
            longer = (max(most[0], first), max(most[1], second))
            if batch and sum(longer) * (len(batch) + 1) > MAX_TOKENS:
                batches.append(batch)
                batch, longer = [], (first, second)
            batch.append(sample)
            most = longer
        if batch:
            batches.append(batch)
    rng.shuffle(batches)
    return batches


@pytest.mark.parametrize("who", ["lengthwise", "python"])
def test_longest(benchmark: Any, who: str) -> None:
    benchmark.group = f"two lengths, pad to longest, {SAMPLES:,} samples"
    pairs = speech(SAMPLES)
    planner = lw.Planner(pairs, lw.PaddedPairs(MAX_TOKENS), steps="shuffled")
    assert planner.boundaries is not None
    plain, cells = pairs.tolist(), planner.boundaries.tolist()
    twin = python_twin(plain, cells, 0)
    padded = sum(int(pairs[batch].max(axis=0).sum()) * len(batch) for batch in twin)
    assert np.array_equal(np.sort(np.concatenate(twin)), np.arange(SAMPLES))
    assert padded == pytest.approx(float(planner.plan().padded_tokens.sum()), rel=0.01)
    if who == "lengthwise":
        benchmark(planner.plan)
    else:
        benchmark.pedantic(python_twin, (plain, cells, 0), rounds=3)


def test_boundary(benchmark: Any) -> None:
    benchmark.group = f"two lengths, fixed shapes, {SAMPLES:,} samples"
    benchmark(lw.Planner(speech(SAMPLES), lw.PaddedPairs(MAX_TOKENS, pad_to="boundary"), steps="shuffled").plan)


@pytest.mark.parametrize("make", [speech, translation])
def test_choosing_cells(benchmark: Any, make: Any) -> None:
    benchmark.group = f"a planner that chooses 32 cells, {SAMPLES:,} samples"
    pairs = make(SAMPLES)
    benchmark.pedantic(lw.Planner, (pairs, lw.PaddedPairs(MAX_TOKENS)), rounds=5)


def padding(pairs: Pairs, cells: Any, weights: tuple[int, int]) -> str:
    """Padding of a plan, padded to the longest and to the bounds of cells."""
    found = []
    for pad_to in ("longest", "boundary"):
        layout = lw.PaddedPairs(MAX_TOKENS, cells=cells, weights=weights, pad_to=pad_to)  # type: ignore[arg-type]
        plan = lw.Planner(pairs, layout).plan()
        found.append(f"{int(plan.padded_tokens.sum()) / int(plan.real_tokens.sum()) - 1:.1%}")
    return " / ".join(found)


def main() -> None:
    """Print the table of the guide."""
    print("| lengths | cells | by the longer of both | by stripes | by chosen cells |")  # noqa: T201
    print("|---|---|---|---|---|")  # noqa: T201
    for name, make, weights in (("speech", speech, (1, 8)), ("translation", translation, (1, 1))):
        pairs = make(SAMPLES)
        for k in (8, 16, 32, 64):
            choices = (longer_of_both(pairs, k), stripes(pairs, k, weights), k)
            cells = " | ".join(padding(pairs, choice, weights) for choice in choices)
            print(f"| {name} | {k} | {cells} |")  # noqa: T201


if __name__ == "__main__":
    main()
