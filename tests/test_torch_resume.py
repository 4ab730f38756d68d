"""Exact resume, on any number of ranks: nothing lost and nothing twice; what does not fit is refused."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.torch import BatchSampler
from lengthwise.torch.deal import Deal, Position

LENGTHS = np.random.default_rng(7).integers(1, 60, 400).astype(np.uint16)


def planner(world_size: int = 1, **changes: Any) -> lw.Planner:
    return lw.Planner(LENGTHS, lw.Padded(max_tokens=300), world_size=world_size).replace(**changes)


def ranks(world_size: int, plan_for: lw.Planner | None = None, **options: Any) -> list[BatchSampler]:
    return [BatchSampler(plan_for or planner(world_size), rank, world_size, **options) for rank in range(world_size)]


def run(samplers: list[BatchSampler], steps: int | None = None) -> list[int]:
    """Train `steps` steps (or the rest of the epoch) on all ranks in lockstep; return the samples in order."""
    iterators = [iter(sampler) for sampler in samplers]
    seen: list[int] = []
    done = 0
    while done != steps:
        step = [next(iterator, None) for iterator in iterators]
        if None in step:
            assert step == [None] * len(samplers), "every rank must end at the same step"
            break
        seen += [index for batch in step for index in batch or ()]
        done += 1
    return seen


def flat(plan: lw.Plan) -> list[int]:
    return [index for batch in plan for index in batch.tolist()]


def test_eight_four_sixteen_three() -> None:
    """The ranks of a run change again and again; what was seen is always the beginning of one plan."""
    plan = planner(8).plan(0)
    state, seen = None, []
    for world_size, steps in ((8, 2), (4, 3), (16, 1), (3, None)):
        samplers = ranks(world_size)
        for sampler in samplers:
            if state is not None:
                sampler.load_state_dict(state)
        seen += run(samplers, steps)
        assert seen == flat(plan)[: len(seen)]
        states = [sampler.state_dict() for sampler in samplers]
        assert all(other == states[0] for other in states)
        state = json.loads(json.dumps(states[0]))
    assert sorted(seen) == list(range(len(LENGTHS)))
    assert state is not None
    assert (state["epoch"], state["batch"], state["world_size"]) == (1, 0, 3)


@given(
    lengths=st.lists(st.integers(1, 40), min_size=60, max_size=150),
    budget=st.integers(80, 400),
    runs=st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)), min_size=1, max_size=6),
    fixed=st.sampled_from([None, 3]),
)
@settings(deadline=None, max_examples=60)
def test_any_sequence_of_worlds_sees_every_sample_once(
    lengths: list[int], budget: int, runs: list[tuple[int, int]], fixed: int | None
) -> None:
    first = runs[0][0]
    plan = lw.Planner(lengths, lw.Padded(max_tokens=budget, order="shuffled"), world_size=first)
    seen: list[int] = []
    whole, state = flat(plan.plan(0)), None
    for world_size, steps in [*runs, (2, None)]:
        samplers = ranks(world_size, plan.replace(world_size=world_size), epochs=fixed)
        for sampler in samplers:
            if state is not None:
                sampler.load_state_dict(state)
        if samplers[0].epoch == 1:
            break
        assert len({sampler.remaining for sampler in samplers}) == 1
        seen += run(samplers, steps)
        state = samplers[0].state_dict()
        assert all(sampler.state_dict() == state for sampler in samplers)
        # Where fewer samples than ranks are left, some are repeated: these are counted, and the last of the epoch.
        assert len(seen) - len(whole) < world_size
        assert seen[: len(whole)] == whole[: len(seen)]
    assert seen[: len(whole)] == whole


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=30),
    world_size=st.integers(1, 8),
    start=st.integers(0, 29),
    target=st.integers(0, 60),
    multiple=st.sampled_from([1, 2, 4]),
)
@settings(deadline=None, max_examples=150)
def test_a_deal_is_even_complete_and_within_limits(
    sizes: list[int], world_size: int, start: int, target: int, multiple: int
) -> None:
    """Against the definition: pieces in the plan's order, as many for each rank, none larger than a batch was."""
    rows = [size if size < multiple else size - size % multiple for size in sizes]
    plan = _Plan(rows, multiple)
    at = Position(min(start, len(rows) - 1), 0, min(start, len(rows) - 1))
    deals = [Deal(plan, rank=rank, world_size=world_size, at=at, target=target) for rank in range(world_size)]  # type: ignore[arg-type]
    pieces = [dealt(deal) for deal in deals]
    assert {len(share) for share in pieces} == {len(deals[0])}
    assert at.dealt + len(deals[0]) * world_size >= target
    order = [i for step in zip(*pieces, strict=True) for a, b in step for i in range(a, b)]
    expected = list(range(sum(rows[: at.batch]), sum(rows)))
    assert order[: len(expected)] == expected
    assert len(order) - len(expected) == deals[0].repeated
    assert deals[0].repeated == max(0, len(deals[0]) * world_size - len(expected))
    lengths = [b - a for share in pieces for a, b in share]
    assert all(0 < length <= max(rows) and (length < multiple or length % multiple == 0) for length in lengths)
    for step in range(len(deals[0]) + 1):
        batch, sample, count = deals[0].position_after(step)
        done = sum(b - a for share in pieces for a, b in share[:step])
        assert sum(rows[:batch]) + sample == expected[0] + min(done, len(expected))
        assert count == at.dealt + step * world_size


@given(
    sizes=st.lists(st.integers(1, 9), min_size=6, max_size=30),
    world_size=st.integers(1, 6),
    target=st.integers(0, 60),
    done=st.integers(0, 30),
)
@settings(deadline=None, max_examples=150)
def test_as_many_ranks_deal_on_as_if_nothing_had_happened(
    sizes: list[int], world_size: int, target: int, done: int
) -> None:
    plan: Any = _Plan(sizes, 1)
    for rank in range(world_size):
        whole = Deal(plan, rank=rank, world_size=world_size, at=Position(), target=target)
        at = whole.position_after(min(done, len(whole)))
        rest = Deal.resumed(plan, rank=rank, world_size=world_size, at=at, target=target)
        assert dealt(rest) == dealt(whole)[done:]
        assert len(rest) == max(0, len(whole) - done)
        assert rest.position_after(2) == whole.position_after(done + 2) or len(rest) < 2


def dealt(deal: Deal) -> list[tuple[int, int]]:
    return [batch for block in deal.blocks() for batch in zip(*block, strict=True)]


class _Plan:
    """The part of a plan that a deal reads."""

    def __init__(self, sizes: list[int], multiple: int) -> None:
        self.sizes = np.array(sizes, dtype=np.uint32)
        self.starts = np.cumsum(self.sizes, dtype=np.int64) - self.sizes
        self.planner = planner(layout=lw.Padded(max_tokens=10**6, samples_multiple_of=multiple))

    def __len__(self) -> int:
        return len(self.sizes)


def test_fewer_samples_than_ranks_are_left() -> None:
    small = planner(lengths=[5, 5, 5], layout=lw.Padded(max_tokens=5), world_size=1)
    one = BatchSampler(small)
    next(iter(one))
    samplers = ranks(4, planner(4, lengths=[5, 5, 5, 5], layout=lw.Padded(max_tokens=5)))
    state = one.state_dict() | {"samples": 4, "fingerprint": samplers[0].state_dict()["fingerprint"], "batch": 2}
    for sampler in samplers:
        sampler.load_state_dict(state)
    assert [sampler.remaining for sampler in samplers] == [1, 1, 1, 1]
    assert len(set(run(samplers))) == 2, "two samples for four ranks: each is seen twice, and nobody hangs"


def test_the_epoch_after_is_planned_for_the_ranks_there_are() -> None:
    sampler = BatchSampler(planner(8), rank=0)
    iterator = iter(sampler)
    next(iterator)
    other = BatchSampler(planner(3), rank=1)
    other.load_state_dict(sampler.state_dict())
    other.set_epoch(0)
    assert other.state_dict()["world_size"] == 8
    list(other)
    other.set_epoch(1)
    assert list(other) == [batch.tolist() for batch in planner(3).plan(1).rank(1)]


def test_a_position_is_kept_by_its_own_epoch_alone() -> None:
    sampler = BatchSampler(planner())
    iterator = iter(sampler)
    next(iterator)
    state = sampler.state_dict()
    again = BatchSampler(planner())
    again.load_state_dict(state)
    again.set_epoch(0)
    assert next(iter(again)) == next(iterator)
    again.load_state_dict(state)
    again.set_epoch(1)
    assert again.state_dict()["batch"] == 0


def test_iterators_thrown_away_unread_change_nothing() -> None:
    sampler = BatchSampler(planner())
    whole = list(sampler)
    iterator = iter(sampler)
    for _ in range(4):
        next(iterator)
    again = BatchSampler(planner())
    again.load_state_dict(sampler.state_dict())
    for _ in range(3):
        iter(again)
        assert again.state_dict() == sampler.state_dict()
    assert list(again) == whole[4:]
    assert list(again) == whole, "the position is used once"


def test_the_state_is_small_plain_and_its_size_constant() -> None:
    sampler = BatchSampler(planner())
    sizes = set()
    for _ in sampler:
        state = sampler.state_dict()
        assert json.loads(json.dumps(state)) == state
        sizes.add(len(pickle.dumps(state)))
    assert max(sizes) - min(sizes) < 10
    assert max(sizes) < 600


def test_a_list_of_boundaries_does_not_grow_the_state() -> None:
    many = planner(layout=lw.Padded(max_tokens=300, boundaries=list(range(1, 61))))
    assert len(pickle.dumps(BatchSampler(many).state_dict())) < 1200


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (planner(lengths=LENGTHS[:-1]), r'state\["samples"\] is 400, but the planner has 399 lengths'),
        (planner(lengths=LENGTHS[::-1].copy()), r'state\["fingerprint"\] is .* in another order'),
        (planner(layout=lw.Padded(max_tokens=301)), r'state\["config"\]\["max_tokens"\] is 300, .* has 301'),
        (planner(seed=1), r'state\["config"\]\["seed"\] is 0, but the planner has 1'),
        (planner(overlong="drop"), r'state\["config"\]\["overlong"\] is .error., but the planner has .drop.'),
    ],
)
def test_a_state_of_other_lengths_or_configuration(other: lw.Planner, message: str) -> None:
    state = BatchSampler(planner()).state_dict()
    sampler = BatchSampler(other)
    with pytest.raises(lw.LengthwiseError, match=message):
        sampler.load_state_dict(state)
    sampler.load_state_dict(state, strict=False)


def test_a_state_of_a_newer_version() -> None:
    state = BatchSampler(planner()).state_dict() | {"version": 2}
    with pytest.raises(lw.LengthwiseError, match=r'state\["version"\] is 2, but this lengthwise reads up to 1'):
        BatchSampler(planner()).load_state_dict(state)
    BatchSampler(planner()).load_state_dict(state, strict=False)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"batch": -1}, r'state\["batch"\] is -1'),
        ({"batch": 1.5}, r'state\["batch"\] is 1\.5'),
        ({"batch": "7"}, r'state\["batch"\] is .7.'),
        ({"batch": 10**9}, r'state\["batch"\] is 1000000000.*has \d+ batches'),
        ({"sample": 10**9}, r"from sample 1000000000"),
        ({"epoch": None}, r'state\["epoch"\] is None'),
        ({"version": 0}, r'state\["version"\] is 0'),
        ({"world_size": 0}, r'state\["world_size"\] is 0'),
        ({"config": 3}, r'state\["config"\] is 3'),
    ],
)
def test_a_damaged_state(damage: dict[str, Any], message: str) -> None:
    sampler = BatchSampler(planner())
    before = sampler.state_dict()
    with pytest.raises(lw.LengthwiseError, match=message):
        sampler.load_state_dict(before | damage)
    assert sampler.state_dict() == before


@pytest.mark.parametrize("field", ["version", "epoch", "batch", "sample", "dealt", "world_size", "config"])
def test_a_state_where_a_field_is_missing(field: str) -> None:
    state = BatchSampler(planner()).state_dict()
    del state[field]
    for strict in (True, False):
        with pytest.raises(lw.LengthwiseError, match=rf'state\["{field}"\] is missing'):
            BatchSampler(planner()).load_state_dict(state, strict=strict)


@pytest.mark.parametrize("state", [{}, None, 3, "state", []])
def test_what_is_no_state(state: Any) -> None:
    with pytest.raises(lw.LengthwiseError, match="state"):
        BatchSampler(planner()).load_state_dict(state)
