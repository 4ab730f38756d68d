"""Uses that would lose data or hang: each is refused with what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch.distributed as dist
from accelerate.data_loader import BatchSamplerShard, prepare_data_loader, skip_first_batches
from torch.distributed.device_mesh import init_device_mesh
from torch.utils.data import DataLoader, Dataset, IterableDataset
from torchdata.stateful_dataloader import StatefulDataLoader

import lengthwise as lw
from lengthwise.torch import BatchSampler, Resumable, Segmented, StreamBatches

if TYPE_CHECKING:
    from collections.abc import Iterator

LENGTHS = [3, 5, 4, 9, 7, 2, 8, 6]


def planner(world_size: int = 1, **options: Any) -> lw.Planner:
    return lw.Planner(LENGTHS, lw.Padded(max_tokens=18), world_size=world_size, **options)


class Rows(Dataset[list[int]]):
    """Rows of the given lengths."""

    def __init__(self, lengths: list[int] | None = None) -> None:
        self.rows = [[0] * length for length in lengths or LENGTHS]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]


@pytest.mark.parametrize("rank", [-1, 2, 9])
def test_a_rank_outside_the_world(rank: int) -> None:
    with pytest.raises(lw.LengthwiseError, match=rf"rank is {rank} .*from 0 to 1 for world_size=2"):
        BatchSampler(planner(2), rank=rank)


@pytest.mark.parametrize("rank", [0.0, "0", True])
def test_a_rank_that_is_no_number(rank: Any) -> None:
    with pytest.raises(lw.LengthwiseError, match=r"rank is .* whole number"):
        BatchSampler(planner(), rank=rank)


def test_no_world() -> None:
    with pytest.raises(lw.LengthwiseError, match="world_size is 0"):
        BatchSampler(planner(), rank=0, world_size=0)


def test_a_world_that_changed_unannounced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(lw.LengthwiseError, match=r"world_size is 8 in the planner, but 4 ranks run; write Planner"):
        BatchSampler(planner(8))
    with pytest.raises(lw.LengthwiseError, match="world_size is 1 in the planner, but 4 ranks run"):
        BatchSampler(planner())
    announced = BatchSampler(planner(8), rank=3, world_size=4)
    assert (announced.rank, announced.world_size) == (3, 4)


def test_the_environment_of_a_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    sampler = BatchSampler(planner(4))
    assert (sampler.rank, sampler.world_size) == (3, 4)
    assert BatchSampler(planner(4), rank=1).rank == 1, "the argument wins"
    monkeypatch.setenv("RANK", "three")
    with pytest.raises(lw.LengthwiseError, match="RANK is 'three' in the environment"):
        BatchSampler(planner(4))
    monkeypatch.delenv("RANK")
    with pytest.raises(lw.LengthwiseError, match="RANK is None in the environment"):
        BatchSampler(planner(4))


def test_a_process_group_and_a_mesh(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        assert BatchSampler(planner()).world_size == 1, "the process group wins over the environment"
        mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
        assert BatchSampler(planner(), mesh=mesh["dp"]).rank == 0
        with pytest.raises(lw.LengthwiseError, match=r'mesh has 2 dimensions.*mesh\["dp"\]'):
            BatchSampler(planner(), mesh=mesh)
    finally:
        dist.destroy_process_group()


def test_more_batches_a_step_than_samples() -> None:
    with pytest.raises(lw.LengthwiseError, match=r"world_size is 3 and accumulate is 4, but .* fewer ranks"):
        next(iter(BatchSampler(planner(3, accumulate=4), rank=0)))


@pytest.mark.parametrize("layout", [lw.Padded(8), lw.Packed(8)])
def test_a_step_of_more_batches_than_there_are(layout: Any) -> None:
    short = lw.Planner([8] * 5, layout, world_size=2, accumulate=3, remainder="drop")
    with pytest.raises(lw.LengthwiseError, match=r"world_size is 2 and accumulate is 3, but .* only 5 batches"):
        short.plan()


def test_more_ranks_than_samples() -> None:
    with pytest.raises(lw.LengthwiseError, match=r"world_size is 9.*fewer ranks"):
        next(iter(BatchSampler(planner(9), rank=0)))


def test_more_ranks_than_batches() -> None:
    few = lw.Planner(LENGTHS, lw.Padded(max_tokens=72, order="sorted"), world_size=7)
    samplers = [BatchSampler(few, rank=rank) for rank in range(7)]
    assert {len(list(sampler)) for sampler in samplers} == {1}


@pytest.mark.parametrize("epoch", [-1, 1.0, None, True])
def test_epochs_are_counted_from_0(epoch: Any) -> None:
    with pytest.raises(lw.LengthwiseError, match="epoch is"):
        BatchSampler(planner()).set_epoch(epoch)


def test_no_epochs() -> None:
    with pytest.raises(lw.LengthwiseError, match="epochs is 0"):
        BatchSampler(planner(), epochs=0)


def test_given_as_sampler() -> None:
    loader = DataLoader(Rows(), sampler=BatchSampler(planner()), batch_size=2)
    with pytest.raises(lw.LengthwiseError, match="batch_sampler=sampler"):
        next(iter(loader))


def test_given_as_sampler_without_a_batch_size_is_torchs_way_to_load_in_bulk() -> None:
    class Bulk(Rows):
        def __getitem__(self, index: Any) -> Any:
            return [self.rows[i] for i in index]

    loader = DataLoader(Bulk(), sampler=BatchSampler(planner()), batch_size=None, collate_fn=len)
    assert sum(loader) == len(LENGTHS)


@pytest.mark.parametrize("option", [{"batch_size": 2}, {"shuffle": True}, {"drop_last": True}])
def test_beside_what_it_replaces(option: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="batch_sampler option is mutually exclusive"):
        DataLoader(Rows(), batch_sampler=BatchSampler(planner()), **option)


def test_an_iterable_dataset() -> None:
    class Stream(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(LENGTHS)

    with pytest.raises(ValueError, match="batch_sampler"):
        DataLoader(Stream(), batch_sampler=BatchSampler(planner()))


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("make", [DataLoader, StatefulDataLoader])
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("rows", [7, 9])
def test_a_dataset_of_another_size(make: Any, workers: int, rows: int) -> None:
    loader = make(Rows([1] * rows), batch_sampler=BatchSampler(planner()), collate_fn=list, num_workers=workers)
    with pytest.raises(lw.LengthwiseError, match=rf"the dataset has {rows} rows, .* given 8 lengths"):
        next(iter(loader))


@pytest.mark.parametrize("processes", [1, 2])
def test_a_dataset_of_another_size_behind_the_wrappers_of_accelerate(processes: int) -> None:
    loader = DataLoader(Rows([1] * 7), batch_sampler=BatchSampler(planner()), collate_fn=list)
    prepared = prepare_data_loader(loader, num_processes=processes, process_index=0, put_on_device=False)
    for wrapped in (prepared, skip_first_batches(prepared, 1)):
        with pytest.raises(lw.LengthwiseError, match=r"the dataset has 7 rows, .* given 8 lengths"):
            next(iter(wrapped))


def test_a_share_dispatched_to_all() -> None:
    """Accelerate's own `dispatch_batches`: one rank reads, so that the shares of the others would never be seen."""
    share = DataLoader(Rows(), batch_sampler=BatchSampler(planner(2), rank=0), collate_fn=list)
    dispatched = prepare_data_loader(share, num_processes=2, process_index=0, dispatch_batches=True, put_on_device=True)
    with pytest.raises(lw.LengthwiseError, match=r"one of world_size=2 ranks to all.*leave dispatch_batches out"):
        next(iter(dispatched))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_stream_prepared_by_accelerate(workers: int) -> None:
    """Dispatching is what it does with iterable datasets unless told otherwise."""
    stream = StreamBatches(Rows().rows, lw.Packed(18), rank=0, world_size=2)
    options: dict[str, Any] = {"num_workers": workers, "multiprocessing_context": "fork" if workers else None}
    loader = DataLoader(stream, batch_size=None, collate_fn=list, **options)
    prepared = prepare_data_loader(loader, num_processes=2, process_index=0, put_on_device=True)
    with pytest.raises(lw.LengthwiseError, match=r"one of world_size=2 ranks to all.* without accelerator\.prepare"):
        next(iter(prepared))
    with pytest.raises(lw.LengthwiseError, match=r"the loader reads a stream.*iterate it as it is"):
        Resumable(loader)


def test_batches_split_by_accelerate() -> None:
    whole = DataLoader(Rows(), batch_sampler=BatchSampler(planner()), collate_fn=list)
    with pytest.raises(ValueError, match="split_batches"):
        prepare_data_loader(whole, num_processes=2, process_index=0, split_batches=True)


def test_sharded_twice() -> None:
    shard = BatchSamplerShard(BatchSampler(planner(2), rank=1), num_processes=2, process_index=1)
    with pytest.raises(lw.LengthwiseError, match=r"share of one of world_size=2.*integrations\.accelerate\.prepare"):
        list(shard)


@pytest.mark.parametrize("overlong", ["truncate", "split"])
def test_rows_are_cut_as_planned(overlong: Any) -> None:
    cutter = lw.Planner([*LENGTHS, 40], lw.Padded(max_tokens=18), overlong=overlong)
    rows = [{"input_ids": list(range(100 * i, 100 * i + n)), "id": i} for i, n in enumerate([*LENGTHS, 40])]
    loader = DataLoader(Segmented(rows), batch_sampler=BatchSampler(cutter), collate_fn=list)
    seen = [(row["id"], token) for batch in loader for row in batch for token in row["input_ids"]]
    kept = 18 if overlong == "truncate" else 40
    assert sorted(seen) == [(i, 100 * i + token) for i, n in enumerate([*LENGTHS, kept]) for token in range(n)]
    assert all(max(len(row["input_ids"]) for row in batch) * len(batch) <= 18 for batch in loader)


def test_an_epoch_without_long_samples() -> None:
    loader = DataLoader(Segmented(Rows()), batch_sampler=BatchSampler(planner(overlong="split")), collate_fn=list)
    assert sorted(len(row) for batch in loader for row in batch) == sorted(LENGTHS)


def test_a_dataset_that_knows_no_pieces() -> None:
    loader = DataLoader(Rows(), batch_sampler=BatchSampler(planner(overlong="split")))
    with pytest.raises(lw.LengthwiseError, match=r'overlong="split".*Segmented\(dataset\)'):
        next(iter(loader))
