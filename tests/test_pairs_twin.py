"""Plans of samples with two lengths are those of a naive twin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.verification import verify_plan

if TYPE_CHECKING:
    import numpy.typing as npt

Shape = tuple[int, int]


class Twin:
    """The whole plan of one epoch, step by step, from the words of the documentation."""

    def __init__(self, pairs: npt.NDArray[Any], layout: lw.PaddedPairs, planner: lw.Planner) -> None:
        self.layout, self.pairs, self.planner = layout, pairs.astype(int), planner
        self.cells = [tuple(cell) for cell in planner.boundaries.tolist()]  # type: ignore[union-attr]

    def padded(self, first: int, second: int) -> Shape:
        """What a sample of these longest lengths is padded to."""
        one, two = self.layout.multiples
        return -(-max(first, 1) // one) * one, -(-max(second, 1) // two) * two

    def tokens(self, shape: Shape) -> int:
        """What a sample of a shape counts."""
        return self.layout.weights[0] * shape[0] + self.layout.weights[1] * shape[1]

    def rows(self, tokens: int) -> int:
        """How many samples of so many tokens a full batch holds."""
        most = self.layout.max_tokens // tokens
        return self.whole(min(most, self.layout.max_samples or most))

    def whole(self, samples: int) -> int:
        """So many, or the multiple below."""
        multiple = self.layout.samples_multiple_of
        return samples if samples < multiple else samples - samples % multiple

    def cell(self, first: int, second: int) -> int:
        """The cheapest that holds the sample; the number of cells for an over-long one."""
        holds = [i for i, (x, y) in enumerate(self.cells) if first <= x and second <= y]
        fits = self.tokens(self.padded(first, second)) <= self.layout.max_tokens
        key = {i: (self.tokens(self.padded(*self.cells[i])), self.cells[i]) for i in holds}
        return min(holds, key=key.__getitem__) if fits and holds else len(self.cells)

    def shape(self, samples: list[int], cell: int) -> Shape:
        """What these samples of a cell are padded to in one batch."""
        if self.layout.pad_to == "boundary" and cell < len(self.cells):
            return self.padded(*self.cells[cell])
        return self.padded(*(int(longest) for longest in self.pairs[samples].max(axis=0)))

    def cut(self, samples: list[int], cell: int) -> tuple[list[list[int]], int]:
        """Batches of one cell, and how many samples of short ones are left out."""
        batches: list[list[int]] = []
        while samples:
            full, size = False, 1
            while True:
                full = size == self.rows(self.tokens(self.shape(samples[:size], cell)))
                if full or size == len(samples):
                    break
                if self.rows(self.tokens(self.shape(samples[: size + 1], cell))) < size + 1:
                    full = True
                    break
                size += 1
            if not full and self.layout.last_batch == "drop":
                return batches, len(samples)
            size = self.whole(size)
            batches.append(samples[:size])
            samples = samples[size:]
        return batches, 0

    def plan(self, epoch: int) -> tuple[list[tuple[list[int], Shape]], dict[str, int]]:
        """Batches and their shapes in running order, and the accounts."""
        planner, cells = self.planner, len(self.cells)
        of = np.array([self.cell(*pair) for pair in self.pairs.tolist()])
        fixed: dict[str, Any] = {"pad_to": "boundary", "longest_first": False}
        like = lw.Padded(2**40, boundaries=np.arange(1, cells + 2), **fixed)
        order = lw.Planner(of + 1, like, seed=planner.seed).plan(epoch).indices
        batches: list[tuple[list[int], int]] = []
        accounts = dict.fromkeys(("dropped", "truncated", "split", "alone", "repeated", "cut_batches"), 0)
        for cell in range(cells):
            made, dropped = self.cut(order[of[order] == cell].tolist(), cell)
            batches += [(batch, cell) for batch in made]
            accounts["dropped"] += dropped
        overlong = order[of[order] == cells].tolist()
        if planner.overlong == "alone":
            batches += [([sample], cells) for sample in overlong]
            accounts["alone"] = len(overlong)
        else:
            accounts["dropped"] += len(overlong)
        step = planner.world_size * planner.accumulate
        while planner.remainder == "split" and len(batches) % step:
            largest = max(range(len(batches)), key=lambda i: (len(batches[i][0]), -i))
            samples, cell = batches[largest]
            kept = self.whole(-(-len(samples) // 2))
            batches[largest] = (samples[:kept], cell)
            batches.append((samples[kept:], cell))
            accounts["cut_batches"] += 1
        if batches:
            ones = lw.Planner(np.ones(len(batches), int), lw.Padded(1, boundaries=[1], **fixed), seed=planner.seed)
            batches = [batches[i] for i in ones.plan(epoch).starts]
        if planner.remainder == "repeat" and batches:
            again = [batches[i % len(batches)] for i in range(-len(batches) % step)]
            accounts["repeated"] += sum(len(samples) for samples, _ in again)
            batches += again
        if planner.remainder == "drop":
            kept = len(batches) - len(batches) % step
            accounts["dropped"] += sum(len(samples) for samples, _ in batches[kept:])
            batches = batches[:kept]
        shaped = [(samples, self.shape(samples, cell)) for samples, cell in batches]
        if self.layout.longest_first and shaped:
            longest = max(range(len(shaped)), key=lambda i: (self.tokens(shaped[i][1]), len(shaped[i][0]), -i))
            first = longest // step * step
            shaped[:step], shaped[first : first + step] = shaped[first : first + step], shaped[:step]
        return shaped, accounts


@st.composite
def cases(draw: st.DrawFn) -> tuple[npt.NDArray[Any], dict[str, Any], dict[str, Any]]:
    """Pairs, arguments of the layout and of the planner."""
    side = st.integers(0, 40) if draw(st.booleans()) else st.integers(0, 400)
    pairs = draw(st.lists(st.tuples(side, side), min_size=1, max_size=70))
    scale = draw(st.sampled_from([1, 1, 1000]))  # large lengths do not travel packed into one integer
    weights = draw(st.sampled_from([(1, 1), (1, 3), (5, 2)]))
    multiple_of = draw(st.sampled_from([1, 4, (8, 1), (3, 5)]))
    cell = st.tuples(st.integers(1, 60), st.integers(1, 60)) | st.tuples(st.integers(1, 400), st.integers(1, 400))
    cells = draw(st.none() | st.integers(1, 9) | st.lists(cell, min_size=1, max_size=9, unique=True))
    layout = {
        "max_tokens": scale * draw(st.integers(200, 3000)),
        "cells": [(scale * x, scale * y) for x, y in cells] if isinstance(cells, list) else cells,
        "weights": weights,
        "multiple_of": multiple_of,
        "max_samples": draw(st.none() | st.integers(4, 20)),
        "samples_multiple_of": draw(st.sampled_from([1, 1, 4])),
        "pad_to": draw(st.sampled_from(["longest", "boundary"])),
        "last_batch": draw(st.sampled_from(["keep", "drop"])),
        "longest_first": draw(st.booleans()),
    }
    planner = {
        "seed": draw(st.integers(0, 2**64 - 1)),
        "world_size": draw(st.integers(1, 4)),
        "accumulate": draw(st.sampled_from([1, 1, 2])),
        "overlong": draw(st.sampled_from(["error", "drop", "alone"])),
        "remainder": draw(st.sampled_from(["split", "repeat", "drop"])),
    }
    dtype = draw(st.sampled_from([np.uint16, np.uint32, np.int32, np.int64][scale > 1 :]))
    return np.array(pairs, dtype) * dtype(scale), layout, planner


#: What random cases may be refused for.
EXCUSES = ("lengths[", "no full batch", "lengths all", "leaves none", "cells", "too few samples", "no sample fits")


@settings(max_examples=250, deadline=None)
@given(case=cases(), epoch=st.integers(0, 5), steps=st.sampled_from(["shuffled", "stratified", "windowed"]))
def test_plans_are_those_of_the_twin(case: tuple[Any, ...], epoch: int, steps: Any) -> None:
    pairs, arguments, options = case
    try:
        layout = lw.PaddedPairs(**arguments)
        planner = lw.Planner(pairs, layout, **options, steps="shuffled")
        plan = planner.plan(epoch)
    except lw.LengthwiseError as error:
        assert any(excuse in str(error) for excuse in EXCUSES), error  # noqa: PT017 (others would be mistakes)
        return
    expected, accounts = Twin(pairs, layout, planner).plan(epoch)
    if planner.accumulate == 1:
        made = [(batch.tolist(), tuple(shape)) for batch, shape in zip(plan, plan.padded_lengths.tolist(), strict=True)]
        assert made == expected
    assert plan.accounts == accounts
    assert len(plan) % (planner.world_size * planner.accumulate) == 0
    arranged = planner.replace(steps=steps, threads=3).plan(epoch)

    def batches(plan: lw.Plan) -> list[Any]:
        shapes = plan.padded_lengths.tolist()
        return sorted([*shape, *batch.tolist()] for batch, shape in zip(plan, shapes, strict=True))

    assert batches(arranged) == sorted([*shape, *batch] for batch, shape in expected)
    assert [check for check in verify_plan(arranged) if not check.passed] == []
    total = sum(int(planner.sample_tokens[batch].sum()) for batch in plan)
    assert plan.summary.real_tokens == total == int(plan.real_tokens.sum())
    assert plan.summary.shapes == len({(len(batch), *shape) for batch, shape in expected})
