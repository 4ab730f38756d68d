"""What is sent to other processes: references to mapped lengths, and never a plan."""

from __future__ import annotations

import copy
import itertools
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from torch.utils.data import DataLoader, Dataset

import lengthwise as lw
from lengthwise.torch import BatchSampler

if TYPE_CHECKING:
    import numpy.typing as npt

LENGTHS = np.random.default_rng(7).integers(1, 60, 50_000).astype(np.uint16)
LAYOUT = lw.Padded(max_tokens=600, boundaries=[20, 40, 60])


def mapped(folder: Path, lengths: npt.NDArray[Any] = LENGTHS) -> Any:
    np.save(folder / "lengths.npy", lengths)
    return np.load(folder / "lengths.npy", mmap_mode="r")


def anonymous() -> int:
    """The bytes of this process that no file backs."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Private_Dirty:"))


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda sampler: pickle.loads(pickle.dumps(sampler))])  # noqa: S301
@pytest.mark.parametrize("part", [slice(None), slice(101, 40_000)])
def test_mapped_lengths_are_mapped_again(clone: Any, part: slice, tmp_path: Path) -> None:
    sampler = BatchSampler(lw.Planner(mapped(tmp_path)[part], LAYOUT))
    first = next(iter(sampler))
    assert len(pickle.dumps(sampler)) < 2000
    twin = clone(sampler)
    base = twin.planner.lengths
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    assert np.array_equal(twin.planner.lengths, LENGTHS[part])
    twin.set_epoch(0)
    assert list(twin) == list(sampler)[1:], "it goes on where the sampler stood"
    assert first == next(iter(sampler))


def test_lengths_that_were_read_and_kept_are_mapped_again(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", LENGTHS)
    for _ in range(2):
        lengths = lw.read_lengths(str(tmp_path / "rows.npy"), cache=str(tmp_path / "kept"))
    assert len(pickle.dumps(BatchSampler(lw.Planner(lengths, LAYOUT)))) < 2000


def test_lengths_in_memory_are_sent_once() -> None:
    assert len(pickle.dumps(BatchSampler(lw.Planner(LENGTHS, LAYOUT)))) < LENGTHS.nbytes + 2000


@pytest.mark.parametrize("mode", ["r+", "c"])
def test_a_map_that_may_be_written_is_sent_as_values(mode: Any, tmp_path: Path) -> None:
    mapped(tmp_path)
    lengths = np.load(tmp_path / "lengths.npy", mmap_mode=mode)
    assert len(pickle.dumps(lw.Planner(lengths, LAYOUT))) > LENGTHS.nbytes


def test_a_file_that_is_gone_or_has_changed_is_told(tmp_path: Path) -> None:
    sent = pickle.dumps(lw.Planner(mapped(tmp_path), LAYOUT))
    mapped(tmp_path, LENGTHS[::-1])
    with pytest.raises(lw.LengthwiseError, match=r"lengths\.npy holds other lengths than when the planner was pickled"):
        pickle.loads(sent)  # noqa: S301
    (tmp_path / "lengths.npy").unlink()
    with pytest.raises(lw.LengthwiseError, match=r"lengths\.npy, which cannot be mapped here"):
        pickle.loads(sent)  # noqa: S301


class Memory(Dataset[int]):
    """Batches that tell how much memory the process has that reads them."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return self.rows

    def __getitems__(self, indices: list[int]) -> list[int]:
        return [anonymous()]


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs the memory map of Linux")
@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_a_worker_does_not_grow_with_the_plan(method: str) -> None:
    """2 million lengths are 4 MB, their plan 8 MB and more. A worker gets the indices of one batch after another."""

    def used(rows: int) -> int:
        sampler = BatchSampler(lw.Planner(np.full(rows, 50, np.uint16), lw.Padded(max_tokens=1000, boundaries=[50])))
        len(sampler)  # plans before the worker is forked
        options: dict[str, Any] = {"num_workers": 1, "multiprocessing_context": method}
        loader: DataLoader[int] = DataLoader(Memory(rows), batch_sampler=sampler, collate_fn=max, **options)
        return max(int(used) for used in itertools.islice(loader, 20))

    assert used(2_000_000) - used(2000) < 2_000_000
