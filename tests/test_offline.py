"""Packs on disk: against a naive twin, through interruption and damage, and in the libraries that read them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lengthwise import LengthwiseError
from lengthwise.offline import files, read_manifest, verify_packed, write_packed

if TYPE_CHECKING:
    from pathlib import Path

CAPACITY = 64


def samples(count: int = 300, longest: int = CAPACITY, seed: int = 0) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 30_000, size).tolist() for size in rng.integers(0, longest + 1, count)]


def table(rows: list[list[int]], kind: Any = None) -> pa.Table:
    return pa.table({"input_ids": pa.array(rows, kind or pa.list_(pa.int32()))})


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [row for path in sorted(folder.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def check_rows(rows: list[dict[str, Any]], origin: list[list[int]], masks: list[list[Any]] | None = None) -> None:
    """The naive twin: every pack rebuilt sample by sample from its own account of it."""
    seen: dict[int, int] = {}
    for row in rows:
        ids: list[int] = []
        positions: list[int] = []
        documents: list[int] = []
        labels: list[int] = []
        parts = zip(row["sample_ids"], row["sample_starts"], row["seq_lengths"], strict=True)
        for number, (sample, start, length) in enumerate(parts):
            piece = origin[sample][start : start + length]
            assert len(piece) == length
            seen[sample] = seen.get(sample, 0) + length
            ids += piece
            positions += range(length)
            documents += [number] * length
            mask = masks[sample][start : start + length] if masks else [1] * length
            target = [token if kept else -100 for token, kept in zip(piece, mask, strict=True)]
            labels += [-100, *target[1:]] if target else []
        assert row["input_ids"] == ids
        assert row["position_ids"] == positions
        assert row["document_ids"] == documents
        assert row["labels"] == labels
        assert row["loss_mask"] == [int(label != -100) for label in labels]
        assert len(ids) <= CAPACITY
    assert seen == {index: len(sample) for index, sample in enumerate(origin)}


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.large_list(pa.int64()), pa.list_(pa.uint16())])
def test_every_token_is_where_its_row_says(tmp_path: Path, kind: Any) -> None:
    origin = samples()
    manifest = write_packed(table(origin, kind), tmp_path / "packs", CAPACITY)
    rows = rows_of(tmp_path / "packs")
    assert len(rows) == manifest.packs
    assert sum(len(row["input_ids"]) for row in rows) == manifest.tokens == sum(map(len, origin))
    check_rows(rows, origin)
    assert verify_packed(tmp_path / "packs", table(origin, kind)) == ()


@pytest.mark.parametrize("kind", [pa.bool_(), pa.uint8(), pa.int64()])
def test_loss_masks_decide_labels(tmp_path: Path, kind: Any) -> None:
    origin = samples()
    rng = np.random.default_rng(1)
    masks = [[bool(bit) for bit in rng.integers(0, 2, len(row))] for row in origin]
    stored = pa.array([[kind.to_pandas_dtype()(bit) for bit in row] for row in masks], pa.list_(kind))
    source = table(origin).append_column("loss_mask", stored)
    # Chunked and sliced, so that bits and offsets begin inside of buffers.
    source = pa.concat_tables([source.slice(0, 7), source.slice(7, 100), source.slice(107)])
    write_packed(source, tmp_path / "packs", CAPACITY)
    check_rows(rows_of(tmp_path / "packs"), origin, masks)
    assert verify_packed(tmp_path / "packs", source) == ()


def test_labels_of_the_source_are_kept(tmp_path: Path) -> None:
    origin = samples(50)
    labels = [[-100 if token % 3 else token + 1 for token in row] for row in origin]
    source = table(origin).append_column("labels", pa.array(labels, pa.list_(pa.int64())))
    write_packed(source, tmp_path / "packs", CAPACITY)
    for row in rows_of(tmp_path / "packs"):
        expected: list[int] = []
        for sample, length in zip(row["sample_ids"], row["seq_lengths"], strict=True):
            expected += [-100, *labels[sample][1:length]] if length else []
        assert row["labels"] == expected


def test_long_samples_are_split_without_losing_a_token(tmp_path: Path) -> None:
    origin = samples(100, longest=300)
    manifest = write_packed(table(origin), tmp_path / "packs", CAPACITY, overlong="split")
    assert manifest.split > 0
    check_rows(rows_of(tmp_path / "packs"), origin)
    assert verify_packed(tmp_path / "packs", table(origin)) == ()


@pytest.mark.parametrize("overlong", ["drop", "truncate"])
def test_what_is_lost_is_counted(tmp_path: Path, overlong: Any) -> None:
    origin = samples(100, longest=300)
    manifest = write_packed(table(origin), tmp_path / "packs", CAPACITY, overlong=overlong)
    long = sum(len(row) > CAPACITY for row in origin)
    assert (manifest.dropped, manifest.truncated) == ((long, 0) if overlong == "drop" else (0, long))
    assert verify_packed(tmp_path / "packs", table(origin)) == ()
    with pytest.raises(LengthwiseError, match="capacity"):
        write_packed(table(origin), tmp_path / "other", CAPACITY)


def test_an_interrupted_run_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_FILE_TOKENS", 10 * CAPACITY)
    origin = table(samples())
    whole = tmp_path / "whole"
    manifest = write_packed(origin, whole, CAPACITY)
    assert manifest.files > 5

    class Stop(Exception):  # noqa: N818 (not an error)
        pass

    def stop(done: int, _: int) -> None:
        if done >= 3 * 10:
            raise Stop

    halved = tmp_path / "halved"
    with pytest.raises(Stop):
        write_packed(origin, halved, CAPACITY, progress=stop)
    (halved / "packs-00003.parquet.unfinished-1").write_bytes(b"half")
    kept = {path.name: path.stat().st_mtime_ns for path in halved.glob("*.parquet")}
    assert 0 < len(kept) < manifest.files
    problems = verify_packed(halved, origin)
    assert len(problems) == manifest.files - len(kept)
    assert "pack again to complete it" in problems[0]
    write_packed(origin, halved, CAPACITY)
    assert {name: (halved / name).stat().st_mtime_ns for name in kept} == kept
    assert [pq.read_table(path) for path in sorted(halved.glob("*.parquet"))] == [
        pq.read_table(path) for path in sorted(whole.glob("*.parquet"))
    ]
    assert verify_packed(halved, origin) == ()


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    origin = table(samples(20))
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(LengthwiseError, match="not empty, and not a folder of packs"):
        write_packed(origin, tmp_path, CAPACITY)
    write_packed(origin, tmp_path / "packs", CAPACITY)
    with pytest.raises(LengthwiseError, match="holds other packs: capacity is 64 there, but 128 now"):
        write_packed(origin, tmp_path / "packs", 128)
    with pytest.raises(LengthwiseError, match="holds other packs: fingerprint"):
        write_packed(table(samples(20, seed=5)), tmp_path / "packs", CAPACITY)
    with pytest.raises(LengthwiseError, match="not a folder of packs"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("column", ["input_ids", "position_ids", "document_ids", "labels", "loss_mask", "sample_ids"])
def test_one_changed_number_is_found(tmp_path: Path, column: str) -> None:
    origin = table(samples())
    write_packed(origin, tmp_path / "packs", CAPACITY)
    path = next((tmp_path / "packs").glob("*.parquet"))
    stored = pq.read_table(path)
    changed = stored.column(column).to_pylist()
    changed[7][0] += 1
    at = stored.schema.get_field_index(column)
    pq.write_table(stored.set_column(at, column, pa.array(changed, stored.schema.field(column).type)), path)
    problems = verify_packed(tmp_path / "packs", origin)
    assert len(problems) == 1


def test_other_tokens_of_the_same_lengths_are_found(tmp_path: Path) -> None:
    origin = samples()
    write_packed(table(origin), tmp_path / "packs", CAPACITY)
    origin[17][2] += 1
    (problem,) = verify_packed(tmp_path / "packs", table(origin))
    assert "input_ids of token" in problem


def test_parquet_files_are_a_source(tmp_path: Path) -> None:
    origin = samples()
    whole = table(origin).append_column(
        "loss_mask", pa.array([[True] * len(row) for row in origin], pa.list_(pa.bool_()))
    )
    (tmp_path / "source").mkdir()
    pq.write_table(whole.slice(0, 120), tmp_path / "source" / "a-0.parquet", row_group_size=50)
    pq.write_table(whole.slice(120), tmp_path / "source" / "a-1.parquet")
    write_packed(tmp_path / "source", tmp_path / "packs", CAPACITY)
    check_rows(rows_of(tmp_path / "packs"), origin)
    assert verify_packed(tmp_path / "packs", tmp_path / "source") == ()


def test_datasets_opens_the_arrow_format(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    origin = samples()
    source = tmp_path / "source"
    datasets.Dataset.from_dict({"input_ids": origin, "loss_mask": [[1] * len(row) for row in origin]}).save_to_disk(
        source
    )
    manifest = write_packed(source, tmp_path / "packs", CAPACITY, format="arrow")
    opened = datasets.load_from_disk(str(tmp_path / "packs"))
    assert opened.num_rows == manifest.packs
    check_rows(list(opened), origin)
    assert verify_packed(tmp_path / "packs", source) == ()


def test_trl_takes_the_rows(tmp_path: Path) -> None:
    """TRL's padding-free collator builds the same positions from `seq_lengths`."""
    pytest.importorskip("torch")
    trainer = pytest.importorskip("trl.trainer.sft_trainer")
    origin = [row for row in samples() if row]
    write_packed(table(origin), tmp_path / "packs", CAPACITY)
    rows = rows_of(tmp_path / "packs")[:3]
    kept = [{name: row[name] for name in ("input_ids", "labels", "seq_lengths")} for row in rows]
    batch = trainer.DataCollatorForLanguageModeling(pad_token_id=0, padding_free=True)(kept)
    assert batch["input_ids"][0].tolist() == [token for row in rows for token in row["input_ids"]]
    assert batch["position_ids"][0].tolist() == [position for row in rows for position in row["position_ids"]]
    assert batch["labels"][0].tolist() == [label for row in rows for label in row["labels"]]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (pa.table({"length": [1, 2]}), "no list column of tokens"),
        (pa.table({"input_ids": [[1], None]}), "nulls in 'input_ids'"),
        (pa.table({"input_ids": [[1, None]]}), "nulls in 'input_ids'"),
        (pa.table({"input_ids": [["a"]]}), "tokens must be numbers"),
        (
            pa.table({"input_ids": [[1, 2]], "loss_mask": [[1]]}),
            "1 values of 'loss_mask' in row 0, but 2 of 'input_ids'",
        ),
        (np.array([3, 4]), "no list column of tokens"),
    ],
)
def test_sources_without_tokens_are_refused(tmp_path: Path, source: Any, message: str) -> None:
    with pytest.raises(LengthwiseError, match=message):
        write_packed(source, tmp_path / "packs", CAPACITY)


def test_the_manifest_is_plain(tmp_path: Path) -> None:
    manifest = write_packed(table(samples(30)), tmp_path / "packs", CAPACITY, seed=4)
    stored = json.loads((tmp_path / "packs" / "packs.json").read_text())
    assert stored["seed"] == 4
    assert read_manifest(tmp_path / "packs") == manifest
