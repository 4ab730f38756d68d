"""Batches of one length are those of a naive twin: what fills them, and what becomes of short ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw

#: Samples of a batch, and what each is padded to.
Batch = tuple[list[int], int]


class Twin:
    """`Padded`, by its definition, for an epoch whose samples have been put in order."""

    def __init__(self, lengths: list[int], layout: lw.Padded, bounds: list[int]) -> None:
        self.lengths = lengths
        self.layout = layout
        limit = min(layout.max_tokens // layout.multiple_of * layout.multiple_of, bounds[-1])
        together = layout.order == "shuffled" or (layout.order == "sorted" and layout.pad_to == "longest")
        self.bounds = [bound for bound in bounds if bound < limit and not together] + [limit]

    def bucket(self, sample: int) -> int:
        """The first whose bound is not below the length; one more for what is over-long."""
        return next((b for b, bound in enumerate(self.bounds) if bound >= self.lengths[sample]), len(self.bounds))

    def padded(self, samples: list[int], bound: int) -> int:
        """What each of a batch's samples is padded to."""
        longest = max(self.lengths[sample] for sample in samples)
        length = max(bound if self.layout.pad_to == "boundary" else longest, 1)
        return -(-length // self.layout.multiple_of) * self.layout.multiple_of

    def whole(self, size: int) -> int:
        """The size rounded down, unless it is too small for that."""
        unit = self.layout.samples_multiple_of
        return size if size < unit else size // unit * unit

    def rows(self, samples: list[int], bound: int) -> int:
        """How many samples fill the batch that begins with these."""
        return self.layout.batch_size(self.padded(samples, bound))

    def cut(self, samples: list[int], bound: int) -> tuple[list[list[int]], list[int]]:
        """Full batches, each closed by the first sample that would break a limit, and what is left."""
        batches = []
        while samples:
            size = 1
            while size < len(samples) and size < self.rows(samples[:size], bound):
                if self.rows(samples[: size + 1], bound) <= size:
                    break
                size += 1
            if size == len(samples) and size < self.rows(samples, bound):
                break
            size = self.whole(size)
            batches.append(samples[:size])
            samples = samples[size:]
        return batches, samples

    def plan(self, order: list[int]) -> tuple[list[Batch], int]:
        """Batches as they follow each other in `order`, and how many samples are left out."""
        batches: list[Batch] = []
        left: list[int] = []
        dropped = 0
        for bucket, bound in enumerate(self.bounds):
            members = left + [sample for sample in order if self.bucket(sample) == bucket]
            full, left = self.cut(members, bound)
            if self.layout.last_batch == "drop":
                dropped += len(left)
                left = []
            elif self.layout.last_batch == "keep" or bucket == len(self.bounds) - 1:
                while left:
                    size = self.whole(len(left))
                    full.append(left[:size])
                    left = left[size:]
            batches += [(samples, self.padded(samples, bound)) for samples in full]
        return batches, dropped + sum(self.bucket(sample) == len(self.bounds) for sample in order)


@settings(max_examples=400, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 60), min_size=1, max_size=80),
    bounds=st.lists(st.integers(1, 70), min_size=1, max_size=5, unique=True).map(sorted),
    layout=st.fixed_dictionaries(
        {
            "max_tokens": st.integers(72, 400),
            "max_samples": st.none() | st.integers(4, 9),
            "multiple_of": st.sampled_from([1, 1, 8]),
            "samples_multiple_of": st.sampled_from([1, 1, 4]),
            "order": st.sampled_from(["bucketed", "shuffled", "sorted"]),
            "pad_to": st.sampled_from(["longest", "boundary"]),
            "last_batch": st.sampled_from(["keep", "merge", "drop"]),
            "longest_first": st.booleans(),
        }
    ),
    threads=st.integers(1, 3),
)
def test_batches_are_those_of_the_twin(
    lengths: list[int], bounds: list[int], layout: dict[str, Any], threads: int
) -> None:
    padded = lw.Padded(boundaries=bounds, **layout)
    try:
        plan = lw.Planner(lengths, padded, overlong="drop", threads=threads).plan(5)
    except lw.LengthwiseError as error:
        assert any(excuse in str(error) for excuse in ("leaves none", "no full batch")), error  # noqa: PT017
        return
    twin = Twin(lengths, padded, bounds)
    order = plan.indices.tolist()
    buckets = [twin.bucket(sample) for sample in order]
    assert buckets == sorted(buckets)
    assert sorted(order) == list(range(len(lengths)))
    if padded.order == "sorted":
        fitting = [(twin.bucket(sample), -lengths[sample]) for sample in order if lengths[sample] <= twin.bounds[-1]]
        assert fitting == sorted(fitting)
    expected, dropped = twin.plan(order)
    made = [(plan[batch].tolist(), int(plan.padded_lengths[batch])) for batch in np.argsort(plan.starts)]
    assert made == expected
    assert plan.accounts["dropped"] == dropped
