"""The batch sampler in real loaders: what torch, torchdata and the ranks require of it."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, Dataset, SequentialSampler
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.stateful import Stateful

import lengthwise as lw
from lengthwise.torch import BatchSampler, PackedCollator, PaddedCollator, Segmented

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

LENGTHS: npt.NDArray[np.uint16] = np.random.default_rng(7).integers(1, 60, 400).astype(np.uint16)


class Rows(Dataset[int]):
    """A dataset whose row is its own index."""

    def __init__(self, size: int = len(LENGTHS)) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> int:
        assert type(index) is int
        return index


def planner(
    world_size: int = 1, lengths: npt.ArrayLike = LENGTHS, *, max_tokens: int = 300, seed: int = 0
) -> lw.Planner:
    return lw.Planner(lengths, lw.Padded(max_tokens=max_tokens), seed=seed, world_size=world_size)


def uneven(world_size: int = 1) -> lw.Planner:
    """A planner whose epochs differ in their number of batches."""
    return lw.Planner(LENGTHS, lw.Padded(max_tokens=300, order="shuffled"), world_size=world_size)


def batches(sampler: Iterable[list[int]]) -> list[list[int]]:
    return list(sampler)


def loaded(loader: Iterable[list[int]]) -> list[list[int]]:
    return [[int(index) for index in batch] for batch in loader]


def load(sampler: BatchSampler, dataset: Dataset[Any] | None = None, **options: Any) -> DataLoader[Any]:
    return DataLoader(Rows() if dataset is None else dataset, batch_sampler=sampler, collate_fn=list, **options)


@given(
    st.lists(st.integers(1, 40), min_size=50, max_size=200),
    st.integers(1, 9),
    st.integers(80, 200),
    st.integers(0, 3),
)
@settings(deadline=None, max_examples=60)
def test_ranks_share_every_epoch_evenly_and_exactly(lengths: list[int], world: int, budget: int, epoch: int) -> None:
    samplers = [BatchSampler(planner(world, lengths, max_tokens=budget), rank=rank) for rank in range(world)]
    for sampler in samplers:
        sampler.set_epoch(epoch)
    shares = [batches(sampler) for sampler in samplers]
    assert {len(share) for share in shares} == {len(samplers[0])} == {len(sampler) for sampler in samplers}
    assert all(batch and max(lengths[i] for i in batch) * len(batch) <= budget for share in shares for batch in share)
    assert sorted(i for share in shares for batch in share for i in batch) == list(range(len(lengths)))
    assert all(type(i) is int for i in shares[0][0])
    assert type(shares[0][0]) is list


@pytest.mark.parametrize("remainder", ["split", "repeat", "drop"])
@pytest.mark.parametrize("world", [3, 7])
def test_ranks_are_even_whatever_happens_to_the_remainder(remainder: Any, world: int) -> None:
    """The contract D2: every sample, or more or fewer by exactly what the plan says."""
    dealer = lw.Planner(LENGTHS, lw.Padded(max_tokens=300), world_size=world, remainder=remainder)
    shares = [batches(BatchSampler(dealer, rank=rank)) for rank in range(world)]
    assert len({len(share) for share in shares}) == 1
    seen = Counter(i for share in shares for batch in share for i in batch)
    summary = dealer.plan(0).summary
    assert len(seen) == len(LENGTHS) - summary.dropped
    assert seen.total() - len(seen) == summary.repeated
    assert (summary.dropped > 0) <= (remainder == "drop")
    assert (summary.repeated > 0) <= (remainder == "repeat")


def test_the_ranks_deal_the_plan_in_turn() -> None:
    plan = planner(4).plan(2)
    for rank in range(4):
        sampler = BatchSampler(planner(4), rank=rank)
        sampler.set_epoch(2)
        assert batches(sampler) == [plan[i].tolist() for i in range(rank, len(plan), 4)]


def test_the_order_is_of_seed_and_epoch_alone() -> None:
    sampler = BatchSampler(planner())
    first = batches(sampler)
    torch.manual_seed(99)
    np.random.seed(99)  # noqa: NPY002 (the global state is the point)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # type: ignore[index] # noqa: NPY002
    assert batches(sampler) == first == batches(BatchSampler(planner()))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # type: ignore[index] # noqa: NPY002
    sampler.set_epoch(1)
    assert batches(sampler) != first
    assert batches(BatchSampler(planner(seed=1))) not in (first, batches(sampler))


def test_a_loader_takes_it_as_batch_sampler() -> None:
    sampler = BatchSampler(planner())
    loader = load(sampler)
    assert loader.batch_sampler is sampler
    assert loader.batch_size is None
    assert loader.drop_last is False
    assert isinstance(loader.sampler, SequentialSampler)
    assert len(loader) == len(sampler) == len(loaded(loader))
    assert loaded(loader) == batches(sampler)


@pytest.mark.parametrize(
    ("method", "workers", "epochs"),
    [
        ("fork", 2, 1),
        ("fork", 2, 3),
        pytest.param("forkserver", 1, 1, marks=pytest.mark.slow),
        pytest.param("spawn", 1, 1, marks=pytest.mark.slow),
    ],
)
def test_workers_see_the_same_batches(method: str, workers: int, epochs: int) -> None:
    options: dict[str, Any] = {"num_workers": workers, "persistent_workers": epochs > 1}
    sampler = _Unsendable(planner())
    loader = load(sampler, multiprocessing_context=method, **options)
    plain = BatchSampler(planner())
    for epoch in range(epochs):
        plain.set_epoch(epoch)
        sampler.set_epoch(epoch)
        assert loaded(loader) == batches(plain)


class _Unsendable(BatchSampler):
    """Fails where a loader sends its sampler to a worker, which would grow with the plan."""

    def __reduce__(self) -> Any:
        raise AssertionError("the sampler was sent to a worker")


def test_prefetching_draws_ahead_of_training() -> None:
    sampler = BatchSampler(planner())
    iterator = iter(load(sampler, num_workers=2))
    next(iterator)
    assert sampler.state_dict()["batch"] == 5


@pytest.mark.parametrize(("workers", "calls"), [(0, 1), (2, 2)])
def test_loaders_make_iterators_that_they_throw_away(workers: int, calls: int) -> None:
    """The contract T6: why an iterator is lazy and has no side effects."""
    made = []

    class Counting(BatchSampler):
        def __iter__(self) -> Any:
            made.append(self.epoch)
            return super().__iter__()

    sampler = Counting(planner())
    assert loaded(load(sampler, num_workers=workers)) == batches(BatchSampler(planner()))
    assert len(made) == calls


@pytest.mark.parametrize("overlong", ["error", "split"])
def test_packs_are_dealt_like_batches(overlong: Any) -> None:
    capacity = 100 if overlong == "error" else 25
    rows = [{"input_ids": np.full(length, row)} for row, length in enumerate(LENGTHS)]
    tokens: Counter[int] = Counter()
    counts = set()
    for rank in range(3):
        packer = lw.Planner(LENGTHS, lw.Packed(capacity), world_size=3, overlong=overlong)
        sampler = BatchSampler(packer, rank)
        dataset: Any = Segmented(rows) if overlong == "split" else rows
        loader: DataLoader[Any] = DataLoader(dataset, batch_sampler=sampler, collate_fn=PackedCollator())
        counts.add(len(loader))
        for batch in loader:
            assert batch["input_ids"].numel() <= capacity
            tokens.update(batch["input_ids"].flatten().tolist())
    assert len(counts) == 1
    assert tokens == {row: int(length) for row, length in enumerate(LENGTHS)}


@pytest.mark.timeout(60)
def test_threads_of_the_parent_do_not_hang_forked_workers() -> None:
    """The contract T14."""
    threaded = planner().replace(threads=2)
    rows = [{"input_ids": np.full(length, row)} for row, length in enumerate(LENGTHS)]
    assert len(threaded.plan(0)) == len(threaded.replace(threads=1).plan(0))
    loader: DataLoader[Any] = DataLoader(
        rows,  # type: ignore[arg-type]
        batch_sampler=BatchSampler(threaded),
        collate_fn=PaddedCollator(),
        num_workers=2,
        multiprocessing_context="fork",
    )
    assert sorted(row for batch in loader for row in batch["input_ids"][:, 0].tolist()) == list(range(len(LENGTHS)))


def test_an_epoch_is_walked_in_constant_memory() -> None:
    """The contract D4: no list of all indices, and nothing that grows with the batches."""
    sampler = BatchSampler(lw.Planner(np.full(100_000, 7, np.uint16), lw.Padded(max_tokens=14)))
    len(sampler)  # plans
    tracemalloc.start()
    count = sum(1 for _ in sampler)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 50_000
    assert peak < 1_000_000


@pytest.mark.parametrize("overlong", ["error", "split"])
def test_samples_of_a_batch_in_ascending_order(overlong: Any) -> None:
    cutter = lw.Planner(LENGTHS, lw.Padded(max_tokens=120 if overlong == "error" else 50), overlong=overlong)
    ascending = BatchSampler(cutter, sort_within_batch=True)
    assert batches(ascending) == [sorted(batch) for batch in BatchSampler(cutter)]
    assert batches(ascending) != batches(BatchSampler(cutter))


def test_a_smaller_budget_after_memory_ran_out() -> None:
    sampler = BatchSampler(planner())
    sampler.set_epoch(2)
    iterator = iter(sampler)
    next(iterator)
    sampler.scale_budget(0.5)
    smaller = planner(max_tokens=150)
    assert batches(sampler) == [batch.tolist() for batch in smaller.plan(2)]
    assert sampler.state_dict() == BatchSampler(smaller).state_dict() | {"epoch": 3}
    for factor in (0, -1, float("nan")):
        with pytest.raises(lw.LengthwiseError, match="factor is"):
            sampler.scale_budget(factor)
    with pytest.raises(lw.LengthwiseError, match="max_tokens"):
        sampler.scale_budget(0.1)
    assert len(sampler) == len(smaller.plan(2))
    packs = BatchSampler(lw.Planner(LENGTHS, lw.Packed(200)))
    packs.scale_budget(0.5)
    assert packs.planner.layout == lw.Packed(100)


def test_only_what_frameworks_expect_is_there() -> None:
    sampler = BatchSampler(planner())
    assert sampler.sampler is sampler
    for attribute in ("batch_size", "batch_sampler", "generator"):
        assert not hasattr(sampler, attribute)
    assert isinstance(sampler, Stateful)
    assert not isinstance(iter(sampler), Stateful), "state on both would be loaded twice"


def test_setting_the_epoch_is_idempotent_and_late() -> None:
    sampler = BatchSampler(planner())
    iterator = iter(sampler)
    sampler.set_epoch(3)
    sampler.set_epoch(3)
    assert list(iterator) == batches(sampler) == [batch.tolist() for batch in planner().plan(3)]


def test_two_plans_are_kept_at_most() -> None:
    sampler = BatchSampler(planner())
    for epoch in (0, 1, 2, 0, 5):
        sampler.set_epoch(epoch)
        assert len(sampler) == len(batches(sampler))
        assert len(sampler._plans) <= 2


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda sampler: pickle.loads(pickle.dumps(sampler))])  # noqa: S301
def test_a_copy_is_small_and_goes_on_where_the_sampler_stands(clone: Any) -> None:
    sampler = BatchSampler(planner())
    sampler.set_epoch(1)
    iterator = iter(sampler)
    for _ in range(5):
        next(iterator)
    twin = clone(sampler)
    assert len(pickle.dumps(twin)) < 2_000 + 2 * LENGTHS.nbytes
    assert batches(twin) == list(iterator)


def test_epochs_of_one_length_for_schedulers() -> None:
    counts = {epoch: len(uneven(3).plan(epoch)) for epoch in range(8)}
    assert len(set(counts.values())) > 1, "the epochs must differ for this to show anything"
    samplers = [BatchSampler(uneven(3), rank=rank, epochs=8) for rank in range(3)]
    for epoch in range(8):
        for sampler in samplers:
            sampler.set_epoch(epoch)
        shares = [batches(sampler) for sampler in samplers]
        assert {len(share) for share in shares} == {len(sampler) for sampler in samplers} == {max(counts.values()) // 3}
        assert sorted(i for share in shares for batch in share for i in batch) == list(range(len(LENGTHS)))


def test_an_epoch_beyond_the_fixed_ones_that_does_not_fit_is_refused() -> None:
    counts = [len(uneven().plan(epoch)) for epoch in range(30)]
    larger = next(epoch for epoch in range(30) if counts[epoch] > counts[0])
    sampler = BatchSampler(uneven(), epochs=1)
    sampler.set_epoch(larger)
    with pytest.raises(lw.LengthwiseError, match=rf"epoch {larger} has {counts[larger]} batches.*epochs={larger + 1}"):
        next(iter(sampler))


stateful_loader = pytest.mark.filterwarnings(
    "ignore:'set_vital' is deprecated"
)  # torchdata 0.11 asks torch 2.15 for it


@stateful_loader
@pytest.mark.parametrize("workers", [0, 2])
def test_three_resumes_are_one_run(workers: int) -> None:
    expected = [batch for epoch in range(3) for batch in planned(epoch)]
    count = len(planned(0))
    stops = [0, 1, count // 2, count, count + 3]
    seen: list[list[int]] = []
    state, start = None, 0
    for stop in [*stops, len(expected)]:
        part, state = train(state, stop - start, workers, epochs=3)
        seen += part
        start = stop
    assert seen == expected


@stateful_loader
@pytest.mark.parametrize("workers", [0, 2])
def test_a_finished_epoch_is_followed_by_a_whole_one(workers: int) -> None:
    loader = stateful(workers)
    assert loaded(loader) == planned(0)
    state = loader.state_dict()
    again = stateful(workers)
    again.load_state_dict(state)
    assert loaded(again) == planned(1)


def stateful(workers: int) -> StatefulDataLoader[Any]:
    return StatefulDataLoader(Rows(), batch_sampler=BatchSampler(planner()), collate_fn=list, num_workers=workers)


def planned(epoch: int) -> list[list[int]]:
    return [batch.tolist() for batch in planner().plan(epoch)]


def train(state: Any, steps: int, workers: int, epochs: int) -> tuple[list[list[int]], Any]:
    """Train `steps` batches from `state` in a new process's place; return them and the state."""
    loader = stateful(workers)
    sampler: Any = loader.batch_sampler
    if state is not None:
        loader.load_state_dict(state)
        loader.state_dict()  # loads: until it is iterated or asked, the loader only keeps the state
    seen: list[list[int]] = []
    if steps == 0:
        return seen, loader.state_dict()
    for epoch in range(sampler.epoch, epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            seen.append(list(batch))
            if len(seen) == steps:
                return seen, loader.state_dict()
    raise AssertionError("the run ended early")


def test_the_state_is_a_snapshot() -> None:
    sampler = BatchSampler(planner())
    iterator = iter(sampler)
    before = sampler.state_dict()
    kept = copy.deepcopy(before)
    next(iterator)
    assert before == kept != sampler.state_dict()
