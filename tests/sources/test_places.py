"""Where things are: nulls in later parts, reads that go on in later files, columns that are alike only at first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lengthwise as lw
from lengthwise.sources import jsonlines

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [None if row % 97 == 5 else [0] * (row * 7 % 23) for row in range(1_000)]
LENGTHS = [len(row or ()) for row in ROWS]
NULLS = [row for row in range(1_000) if ROWS[row] is None]


def test_nulls_are_where_they_are(tmp_path: Path) -> None:
    table = pa.table({"input_ids": ROWS})
    dataset = datasets.Dataset(table)
    dataset.save_to_disk(tmp_path / "saved", num_shards=3)
    dataset.to_json(tmp_path / "a.jsonl")
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=130)
    chunked = pa.table({"input_ids": pa.chunked_array([pa.array(ROWS[at : at + 300]) for at in range(0, 1_000, 300)])})
    for source in (table, chunked, dataset, tmp_path / "saved", tmp_path / "a.jsonl", tmp_path / "a.parquet", ROWS):
        lengths = lw.read_lengths(source, nulls="zero")
        assert lengths.info is not None
        assert lengths.info.nulls.tolist() == NULLS
        assert lengths.tolist() == LENGTHS
        assert lw.read_lengths(source, nulls="drop").tolist() == [len(row) for row in ROWS if row is not None]
    with pytest.raises(lw.LengthwiseError, match=r"is null in 11 rows \(5, 102, 199, 296, 393, ...\)"):
        lw.read_lengths(tmp_path / "saved")


def test_nulls_move_with_the_rows() -> None:
    dataset = datasets.Dataset(pa.table({"input_ids": ROWS, "row": range(1_000)})).shuffle(seed=1).select(range(500))
    lengths = lw.read_lengths(dataset, "input_ids", nulls="zero")
    assert lengths.info is not None
    assert lengths.info.nulls.tolist() == [at for at, row in enumerate(dataset["row"]) if ROWS[row] is None]
    assert lengths.tolist() == [LENGTHS[row] for row in dataset["row"]]


@pytest.mark.parametrize("kind", ["parquet", "arrow", "jsonl"])
def test_an_interrupted_read_goes_on_in_a_later_file(tmp_path: Path, kind: str) -> None:
    for file in range(3):
        part = datasets.Dataset(pa.table({"input_ids": ROWS[file * 300 : (file + 1) * 300]}))
        path = tmp_path / f"{file}.{kind}"
        if kind == "parquet":
            pq.write_table(part.data.table, path, row_group_size=100)
        elif kind == "arrow":
            with pa.ipc.new_file(path, part.data.table.schema) as sink:
                sink.write_table(part.data.table)
        else:
            part.to_json(path)

    def interrupt(done: int, _: int | None) -> None:
        if done >= 500:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lw.read_lengths(tmp_path, nulls="zero", cache=True, progress=interrupt)
    seen: list[int] = []
    lengths = lw.read_lengths(tmp_path, nulls="zero", cache=True, progress=lambda done, _: seen.append(done))
    assert lengths.tolist() == LENGTHS[:900]
    assert seen[0] == (500 if kind == "parquet" else 600)
    assert lengths.info is not None
    assert lengths.info.nulls.tolist() == [row for row in NULLS if row < 900]


def test_what_was_written_of_a_part_that_is_not_done(tmp_path: Path) -> None:
    pq.write_table(pa.table({"input_ids": ROWS}), tmp_path / "a.parquet", row_group_size=100)

    def interrupt(done: int, _: int | None) -> None:
        if done >= 500:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lw.read_lengths(tmp_path, nulls="zero", cache=True, progress=interrupt)
    (part,) = (tmp_path / ".lengthwise").glob("*.part")
    part.write_bytes(part.read_bytes() + b"1234567890")
    for _ in range(2):
        assert lw.read_lengths(tmp_path, nulls="zero", cache=True).tolist() == LENGTHS


def test_columns_that_are_alike_only_at_first(tmp_path: Path) -> None:
    sizes = [row * 7 % 23 + 1 for row in range(1_000)]
    ids = [list(range(size)) for size in sizes]
    for middle in (500, 999):
        mask = [[True] * (size + (row == middle)) for row, size in enumerate(sizes)]
        for group in (100, 1_000):
            table = pa.table({"input_ids": ids, "attention_mask": mask})
            pq.write_table(table, tmp_path / "a.parquet", row_group_size=group)
            assert lw.read_lengths(tmp_path / "a.parquet").tolist() == sizes


def test_a_line_that_goes_on_past_what_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonlines, "BLOCK", 1_000)
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"input_ids": row or []}) + "\n" for row in ROWS))
    assert lw.read_lengths(path).tolist() == LENGTHS


def test_as_many_as_there_are_columns() -> None:
    for size in (2, 3):
        with pytest.warns(
            lw.LengthwiseWarning, match=rf"are {size}, the number of columns; are they lengths of dicts\?"
        ):
            lw.read_lengths(pa.table({"length": [size] * 100, "a": ["x"] * 100, "b": ["y"] * 100}))


def test_of_compressed_arrow_only_the_column_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    table = pa.table({"input_ids": np.random.default_rng(0).integers(0, 1 << 40, (1_000, 20)).tolist(), "n": LENGTHS})
    with pa.ipc.new_file(path, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as sink:
        sink.write_table(table)
    content = bytearray(path.read_bytes())
    content[len(content) // 4 : len(content) // 2] = bytes(len(content) // 2 - len(content) // 4)
    path.write_bytes(content)
    assert lw.read_lengths(path, "n", check="none").tolist() == LENGTHS
    with pytest.raises(lw.LengthwiseError, match=r"a.arrow cannot be read"):
        lw.read_lengths(path, "input_ids")


def test_indices_that_are_out_of_bounds() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int32()), pa.array([1, 2]), safe=False)
    with pytest.raises(lw.LengthwiseError, match=r"pyarrow.DictionaryArray cannot be read: .*; it may be damaged"):
        lw.read_lengths(array)
