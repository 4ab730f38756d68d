"""Plans as objects and as files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import lengthwise as lw

if TYPE_CHECKING:
    from pathlib import Path

LENGTHS = np.random.default_rng(5).integers(1, 600, 2000)


def make(**settings: object) -> lw.Plan:
    return lw.Planner(LENGTHS, lw.Padded(2000, boundaries=[200, 600]), seed=3, **settings).plan(4)  # type: ignore[arg-type]


def test_ranks_share_the_plan_without_copies() -> None:
    plan = make(world_size=3)
    shares = [plan.rank(rank) for rank in range(3)]
    assert [len(share) for share in shares] == [plan.steps] * 3
    assert all(np.shares_memory(share.starts, plan.starts) for share in shares)
    dealt = [share[step].tolist() for step in range(plan.steps) for share in shares]
    assert dealt == [batch.tolist() for batch in plan]
    for rank in (-1, 3, True, 0.5):
        with pytest.raises(lw.LengthwiseError, match="rank"):
            plan.rank(rank)  # type: ignore[arg-type]


def test_dtypes_and_tokens() -> None:
    plan = make()
    arrays = (plan.indices, plan.starts, plan.sizes, plan.padded_lengths, plan.real_tokens, plan.padded_tokens)
    assert [array.dtype for array in arrays] == ["uint32", "int64", "uint32", "uint32", "uint64", "uint64"]
    assert plan.real_tokens.tolist() == [int(LENGTHS[batch].sum()) for batch in plan]
    assert plan[-1].tolist() == plan[len(plan) - 1].tolist()
    with pytest.raises(IndexError):
        plan[len(plan)]


@pytest.mark.parametrize("overlong", ["split", "truncate", "drop", "alone"])
def test_files_hold_the_plan(tmp_path: Path, overlong: str) -> None:
    planner = lw.Planner(LENGTHS, lw.Padded(400, boundaries=8), world_size=2, overlong=overlong)  # type: ignore[arg-type]
    plan = planner.plan(7)
    path = tmp_path / "plan.arrow"
    plan.write(path)
    read = lw.read_plan(path, LENGTHS)
    assert [batch.tolist() for batch in read] == [batch.tolist() for batch in plan]
    assert read.padded_lengths.tolist() == plan.padded_lengths.tolist()
    assert (read.epoch, read.seed, read.world_size, read.config) == (7, 0, 2, plan.config)
    assert read.summary == plan.summary
    if plan.segments is not None and read.segments is not None:
        segments = [plan.segments[s : s + n].tolist() for s, n in zip(plan.starts, plan.sizes, strict=True)]
        assert [read.segments[s : s + n].tolist() for s, n in zip(read.starts, read.sizes, strict=True)] == segments
    assert list(tmp_path.iterdir()) == [path]
    before = pa.total_allocated_bytes()
    again = lw.read_plan(path)
    assert pa.total_allocated_bytes() - before < 10_000
    with pytest.raises(lw.LengthwiseError, match="without its lengths"):
        _ = again.summary


#: What a caller has who computed with numpy.
NUMBER: Any = np.int64


@pytest.mark.parametrize(
    "layout",
    [
        lw.Padded(NUMBER(2000), boundaries=NUMBER(4), max_samples=NUMBER(9), multiple_of=NUMBER(8)),
        lw.Packed(NUMBER(1024), max_samples=NUMBER(8), multiple_of=NUMBER(8)),
        lw.Packed(NUMBER(1024), limits={"images": (np.ones(2000, int), NUMBER(4))}),
        lw.PaddedPairs(NUMBER(4000), cells=NUMBER(4), weights=(NUMBER(1), NUMBER(2)), multiple_of=NUMBER(8)),
    ],
    ids=lambda layout: type(layout).__name__,
)
def test_numbers_of_numpy_are_written(tmp_path: Path, layout: Any) -> None:
    lengths = np.stack([LENGTHS, LENGTHS], axis=1) if isinstance(layout, lw.PaddedPairs) else LENGTHS
    two, half = NUMBER(2), NUMBER(3)
    steps: Any = ("windowed", two)
    planner = lw.Planner(lengths, layout, seed=two, world_size=two, steps=steps, cost=(1, half), rank_speed=[half, 1])
    plan = planner.plan(two)
    plan.write(tmp_path / "plan.arrow")
    assert [batch.tolist() for batch in lw.read_plan(tmp_path / "plan.arrow")] == [batch.tolist() for batch in plan]


def test_other_lengths_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.arrow"
    make().write(path)
    other = LENGTHS.copy()
    other[7] += 1
    with pytest.raises(lw.LengthwiseError, match="fingerprint"):
        lw.read_plan(path, other)


def test_damaged_and_foreign_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "plan.arrow"
    make().write(path)
    whole = path.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 3):
        path.write_bytes(whole[:length])
        with pytest.raises(lw.LengthwiseError, match="cannot be read"):
            lw.read_plan(path)
    with pytest.raises(lw.LengthwiseError, match="cannot be read"):
        lw.read_plan(tmp_path / "missing.arrow")
    table = pa.record_batch({"a": [1]})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_batch(table)
    with pytest.raises(lw.LengthwiseError, match="not a plan"):
        lw.read_plan(path)
    with pytest.raises(lw.LengthwiseError, match="cannot be written"):
        make().write(tmp_path / "no" / "such" / "folder")
