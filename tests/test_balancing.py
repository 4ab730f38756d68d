"""`lw.balance`: never worse than Karmarkar-Karp as it is published, limits kept, bad input named."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw


class State:
    """A division of some items into k sets, largest first, in the dense form."""

    def __init__(self, sets: list[tuple[int, list[int]]]) -> None:
        self.sets = sorted(sets, key=lambda entry: (entry[0], len(entry[1]), entry[1]), reverse=True)

    def __lt__(self, other: State) -> bool:
        mine, theirs = self.sets[0][0] - self.sets[-1][0], other.sets[0][0] - other.sets[-1][0]
        return mine > theirs if mine != theirs else self.sets[0] > other.sets[0]


def karmarkar_karp(costs: list[int], parts: int, *, equal_count: bool) -> int:
    """The largest sum of the differencing scheme in common use, with its order of ties; n must fill the tuples."""
    order = sorted((cost, index) for index, cost in enumerate(costs))
    size = parts if equal_count else 1
    heap: list[State] = []
    for start in range(0, len(order), size):
        sets = [(cost, [index]) for cost, index in order[start : start + size]]
        heapq.heappush(heap, State(sets + [(0, [])] * (parts - len(sets))))
    while len(heap) > 1:
        a, b = heapq.heappop(heap), heapq.heappop(heap)
        pairs = zip(a.sets, reversed(b.sets), strict=True)
        heapq.heappush(heap, State([(x + y, items + others) for (x, items), (y, others) in pairs]))
    return heap[0].sets[0][0] if heap else 0


costs_of_many_kinds = st.one_of(
    st.lists(st.integers(0, 5), max_size=30),
    st.lists(st.integers(0, 10_000), max_size=60),
    st.lists(st.integers(0, 40).map(lambda bits: 2**bits), max_size=30),
)


@settings(max_examples=400, deadline=None)
@given(costs=costs_of_many_kinds, parts=st.integers(1, 12), equal_count=st.booleans())
def test_never_worse_than_karmarkar_karp(costs: list[int], parts: int, *, equal_count: bool) -> None:
    if equal_count:
        costs = costs[: len(costs) // parts * parts]
    found = lw.balance(costs, parts, equal_count=equal_count)
    assert sorted(found.indices.tolist()) == list(range(len(costs)))
    assert found.sums.tolist() == [sum(costs[i] for i in part) for part in found]
    assert int(found.sums.max()) <= karmarkar_karp(costs, parts, equal_count=equal_count)
    assert int(found.sums.max()) >= found.lower_bound
    if equal_count:
        assert {len(part) for part in found} == {len(costs) // parts}


def lognormal(n: int, seed: int) -> npt.NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    lengths = np.minimum(np.exp(rng.normal(np.log(1600), 1.0, n)), 32_768).astype(np.int64) + 1
    return 24_576 * lengths + lengths * lengths


@pytest.mark.parametrize("seed", range(5))
def test_skewed_costs_over_many_equal_counts_are_even(seed: int) -> None:
    costs = lognormal(2048, seed)
    found = lw.balance(costs, 64, equal_count=True)
    assert float(found.sums.max()) <= 1.0002 * max(costs.max(), costs.sum() / 64)
    assert np.diff(found.offsets).tolist() == [32] * 64


def test_counts_that_do_not_divide_differ_by_one() -> None:
    counts = np.diff(lw.balance(lognormal(1003, 1), 10, equal_count=True).offsets)
    assert sorted(counts) == [100] * 7 + [101] * 3


@settings(max_examples=100, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 100), min_size=1, max_size=60),
    parts=st.integers(1, 8),
    slack=st.integers(0, 100),
    equal_count=st.booleans(),
)
def test_a_capacity_in_tokens_is_kept(lengths: list[int], parts: int, slack: int, *, equal_count: bool) -> None:
    sizes = np.array(lengths)
    capacity = max(-(-sum(lengths) // parts), *lengths) + slack
    try:
        found = lw.balance(sizes**2, parts, equal_count=equal_count, capacity=(sizes, capacity))
    except lw.LengthwiseError as error:
        assert "no division into" in str(error)  # noqa: PT017
        assert equal_count or slack < max(lengths)
    else:
        assert max(int(sizes[part].sum()) for part in found) <= capacity


def test_a_capacity_in_the_unit_of_the_costs() -> None:
    assert lw.balance([5.5, 4.5, 4.0, 6.0], 2, capacity=10.0).sums.tolist() == [10.0, 10.0]
    with pytest.raises(lw.LengthwiseError, match="need at least 3 parts of capacity=9"):
        lw.balance([5, 5, 4, 6], 2, capacity=9)


def test_fractions_balance_like_whole_numbers() -> None:
    costs = lognormal(500, 3)
    whole, fractions = lw.balance(costs, 16), lw.balance(costs / 1024.5, 16)
    np.testing.assert_allclose(fractions.sums.max() * 1024.5, float(whole.sums.max()), rtol=1e-4)
    assert fractions.sums.dtype == np.float64
    assert fractions.lower_bound <= fractions.sums.max() * (1 + 1e-12)
    assert lw.balance([1e-300, 0.0, 2e-300], 2).sums.max() == 2e-300


def test_more_parts_than_items_and_no_items() -> None:
    assert sorted(map(len, lw.balance([3, 1], 4))) == [0, 0, 1, 1]
    empty = lw.balance([], 3, equal_count=True)
    assert (len(empty), empty.indices.size, empty.imbalance) == (3, 0, 0.0)


def test_the_parts_are_a_sequence() -> None:
    found = lw.balance([4, 3, 2, 1], 2)
    assert len(found) == 2
    assert found.tolist() == [part.tolist() for part in found]
    assert found[-1].tolist() == found[1].tolist()
    assert found.imbalance == 0.0
    with pytest.raises(IndexError):
        found[2]


BAD: list[tuple[Any, Any, dict[str, Any], str]] = [
    ([1], 0, {}, "parts is 0"),
    ([1], 1.5, {}, "parts is 1.5"),
    ([1], True, {}, "parts is True"),
    ([1], 2**40, {}, "parts is 1099511627776, but must be at most 16777216"),
    ([1, -2], 1, {}, r"costs\[1\] is -2"),
    ([1.0, float("nan")], 1, {}, r"costs\[1\] is nan"),
    ([1.0, float("inf")], 1, {}, r"costs\[1\] is inf"),
    ([1e308, 1e308], 1, {}, "more than a float64 holds"),
    ([[1, 2]], 1, {}, r"shape \(1, 2\)"),
    (["a"], 1, {}, "must be a flat array of numbers"),
    ([2**62, 2**62], 1, {}, r"more than 2\^63"),
    ([1, 2], 1, {"capacity": -1}, "capacity is -1"),
    ([1, 2], 1, {"capacity": float("nan")}, "capacity is nan"),
    ([1, 9], 1, {"capacity": 8}, r"sizes\[1\] is 9, but a part holds capacity=8"),
    ([1, 9], 1, {"capacity": ([1], 8)}, "sizes has 1 items, but costs has 2"),
]


@pytest.mark.parametrize(("costs", "parts", "options", "message"), BAD)
def test_bad_input_is_named(costs: Any, parts: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(lw.LengthwiseError, match=message), np.errstate(over="ignore"):
        lw.balance(costs, parts, **options)
