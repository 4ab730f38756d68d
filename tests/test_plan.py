"""Plans as objects and as files."""

from __future__ import annotations

import os
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


def test_slices_are_batches_without_copies() -> None:
    plan = make()
    some = plan[3:11:2]
    assert [batch.tolist() for batch in some] == [plan[batch].tolist() for batch in range(3, 11, 2)]
    assert np.shares_memory(some.starts, plan.starts)
    assert some.padded_lengths.tolist() == plan.padded_lengths[3:11:2].tolist()
    assert repr(some) == f"<4 batches of {sum(map(len, some))} samples>"
    assert len(plan[len(plan) :]) == 0
    assert plan[np.int64(2)].tolist() == plan[2].tolist()
    for batch in (1.0, None, "a"):
        with pytest.raises(TypeError):
            plan[batch]  # type: ignore[call-overload]


def test_values_that_are_not_one_a_batch_are_refused() -> None:
    plan = make()
    with pytest.raises(lw.LengthwiseError, match=r"values has shape \(3,\), but must be one for each of"):
        plan.per_rank([1, 2, 3])


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
    # Over-long ones too: that is not what is wrong with them.
    for lengths in (other, LENGTHS[:-1], LENGTHS + 600):
        with pytest.raises(lw.LengthwiseError, match=r"lengths have fingerprint .* plan again for these lengths"):
            lw.read_plan(path, lengths)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_files_have_the_mode_of_any_file(tmp_path: Path) -> None:
    make().write(tmp_path / "plan.arrow")
    (tmp_path / "other").write_bytes(b"")
    assert (tmp_path / "plan.arrow").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("overlong", ["drop", "split"])
def test_no_damaged_bit_changes_a_plan(tmp_path: Path, overlong: Any) -> None:
    planner = lw.Planner(LENGTHS[:200], lw.Padded(400, boundaries=8), world_size=2, overlong=overlong)
    path = tmp_path / "plan.arrow"
    planner.plan(7).write(path)
    whole = path.read_bytes()

    def content() -> tuple[Any, ...]:
        plan = lw.read_plan(path)
        segments = None if plan.segments is None else plan.segments.tolist()
        batches = [batch.tolist() for batch in plan]
        return batches, plan.padded_lengths.tolist(), segments, plan.config, plan.epoch, plan.accounts, plan.fingerprint

    expected, refused = content(), 0
    for bit in np.random.default_rng(0).integers(0, 8 * len(whole), 500).tolist():
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            assert content() == expected
        except lw.LengthwiseError:
            refused += 1
    assert refused > 250


@pytest.mark.parametrize(
    "change",
    [
        lambda batch: batch.set_column(0, "step", pa.array([0] * batch.num_rows, pa.int64())),
        lambda batch: batch.drop_columns(["indices"]),
        lambda batch: batch.set_column(2, "padded_length", pa.array([None] * batch.num_rows, pa.uint32())),
        lambda batch: batch.set_column(3, "indices", batch["padded_length"]),
        lambda batch: batch.slice(2),
        lambda batch: batch.replace_schema_metadata({b"lengthwise.plan": b'{"version": 1}'}),
    ],
)
def test_changed_plans_are_refused(tmp_path: Path, change: Any) -> None:
    path = tmp_path / "plan.arrow"
    make().write(path)
    changed = change(pa.ipc.open_file(path).get_batch(0))
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, changed.schema) as writer:
        writer.write_batch(changed)
    with pytest.raises(lw.LengthwiseError, match="damaged or changed"):
        lw.read_plan(path, LENGTHS)


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
    path.write_bytes(b"")
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema):
        pass
    with pytest.raises(lw.LengthwiseError, match="cannot be read"):
        lw.read_plan(path)
    for nowhere in (tmp_path / "no" / "such" / "folder", tmp_path, ""):
        with pytest.raises(lw.LengthwiseError, match="cannot be written"):
            make().write(nowhere)
    assert list(tmp_path.iterdir()) == [path]
