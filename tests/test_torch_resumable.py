"""Resumable loaders: the state is what the loop has taken, whatever was drawn ahead of it."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from torch.distributed.checkpoint.state_dict_loader import load as load_checkpoint
from torch.distributed.checkpoint.state_dict_saver import save as save_checkpoint
from torch.distributed.checkpoint.stateful import Stateful
from torch.utils.data import DataLoader
from torchdata.nodes import SamplerWrapper

import lengthwise as lw
from lengthwise.torch import BatchSampler, Resumable

if TYPE_CHECKING:
    from pathlib import Path

LENGTHS = np.random.default_rng(7).integers(1, 60, 203).astype(np.uint16)
PLANNER = lw.Planner(LENGTHS, lw.Padded(max_tokens=300))


def load(workers: int = 0, **options: Any) -> Resumable:
    sampler = BatchSampler(PLANNER)
    dataset: Any = range(len(LENGTHS))
    return Resumable(DataLoader(dataset, batch_sampler=sampler, collate_fn=list, num_workers=workers, **options))


def planned(epoch: int) -> list[list[int]]:
    return [batch.tolist() for batch in PLANNER.plan(epoch)]


def test_it_stops_and_resumes_anywhere_with_any_number_of_workers() -> None:
    expected = [batch for epoch in range(3) for batch in planned(epoch)]
    count = len(planned(0))
    seen: list[list[int]] = []
    state = load().state_dict()
    for stop, workers in ((1, 2), (count // 2, 0), (count, 1), (count + 3, 2), (2 * count, 0), (len(expected), 1)):
        loader = load(workers)
        loader.load_state_dict(state)
        for epoch in range(loader.epoch, 3):
            loader.set_epoch(epoch)
            for batch in loader:
                seen.append(batch)
                if len(seen) == stop:
                    break
            if len(seen) == stop:
                break
        state = loader.state_dict()
    assert seen == expected


@pytest.mark.parametrize("persistent", [False, True])
def test_the_state_is_not_ahead_of_the_loop(persistent: bool) -> None:  # noqa: FBT001
    loader = load(2, persistent_workers=persistent)
    for epoch in range(2):
        loader.set_epoch(epoch)
        assert loader.state_dict() | {"dealt": 0} == BatchSampler(PLANNER).state_dict() | {"epoch": epoch}
        for taken, _ in enumerate(loader, 1):
            state = loader.state_dict()
            assert (state["epoch"], state["batch"]) == ((epoch, taken) if taken < len(loader) else (epoch + 1, 0))


def test_a_loop_that_counts_steps_never_ends() -> None:
    steps = iter(load().forever())
    expected = [batch for epoch in range(3) for batch in planned(epoch)]
    assert [next(steps) for _ in expected] == expected


def test_an_iterator_thrown_away_unread_changes_nothing() -> None:
    loader = load(2)
    iter(loader)
    assert list(loader) == planned(0)


def test_it_passes_for_the_loader() -> None:
    loader = load()
    assert len(loader) == len(planned(0))
    assert loader.dataset == range(len(LENGTHS))
    assert loader.batch_sampler.sampler is loader.batch_sampler
    assert pickle.loads(pickle.dumps(loader)).num_workers == 0  # noqa: S301
    with pytest.raises(AttributeError):
        _ = loader.nothing


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_distributed_checkpoints_save_it_as_stateful(tmp_path: Path) -> None:
    loader = load()
    assert isinstance(loader, Stateful)
    iterator = iter(loader)
    for _ in range(5):
        next(iterator)
    save_checkpoint({"data": loader}, checkpoint_id=str(tmp_path), no_dist=True)
    again = load(2)
    load_checkpoint({"data": again}, checkpoint_id=str(tmp_path), no_dist=True)
    assert list(again) == planned(0)[5:]


def test_torchdata_nodes_resume_in_the_epoch_of_the_state() -> None:
    """The contract S10: a node calls `set_epoch` only where there is no state."""
    node = SamplerWrapper(BatchSampler(PLANNER))
    assert list(node) == planned(0)
    node.reset()
    first = [next(node) for _ in range(3)]
    again = SamplerWrapper(BatchSampler(PLANNER))
    again.reset(node.state_dict())
    assert first + list(again) == planned(1)


def test_a_loader_out_of_order_is_refused() -> None:
    with pytest.raises(lw.LengthwiseError, match="in_order=False"):
        load(2, in_order=False)


def test_a_loader_of_another_sampler_is_refused() -> None:
    with pytest.raises(lw.LengthwiseError, match=r"batch_sampler=BatchSampler\(planner\)"):
        Resumable(DataLoader(range(3)))  # type: ignore[arg-type]
