"""Lengths that look wrong are said, once, at the line of the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import datasets
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lengthwise as lw

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [[0] * (row * 7 % 23) for row in range(1_000)]
LENGTHS = [len(row) for row in ROWS]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"input_ids": [[1] * 512] * 100}, r"all 100 lengths in 'input_ids' are 512; were the samples padded"),
        ({"input_ids": [[1], []] * 100}, r"all 200 lengths in 'input_ids' are 0 or 1; is it a flag or a mask\?"),
        ({"length": [3] * 100, "a": [0] * 100, "b": [0] * 100}, r"are 3, the number of columns; are they lengths of"),
        (
            {"input_ids": ROWS, "seq_len": [length + 1 for length in LENGTHS]},
            r"disagrees with the sizes of 'input_ids' in 192 of 192 rows compared \(row 0 says 1, but has 0\)",
        ),
    ],
)
def test_suspicious_lengths_are_said(table: dict[str, Any], message: str) -> None:
    with pytest.warns(lw.LengthwiseWarning, match=message) as caught:
        lw.read_lengths(pa.table(table))
    assert caught[0].filename == __file__
    lw.read_lengths(pa.table(table), check="none")


def test_lists_that_cannot_be_read_are_not_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"length": 3, "input_ids": [1]}\n' * 80 + '{"length": 4, "input_ids": 5}\n')
    for source in (tmp_path / "a.jsonl", {"length": [3] * 80 + [4], "input_ids": [[1, 2, 3]] * 80 + [5]}):
        assert lw.read_lengths(source)[-2:].tolist() == [3, 4]
        with pytest.raises(lw.LengthwiseError):
            lw.read_lengths(source, check="all")


def test_parts_are_compared_as_their_sum() -> None:
    half = [length // 2 for length in LENGTHS]
    rest = [length - part for length, part in zip(LENGTHS, half, strict=True)]
    table = {"input_ids": ROWS, "prompt_len": half, "answer_len": rest, "end": [1] * 1_000}
    assert lw.read_lengths(table, ["prompt_len", "answer_len"]).tolist() == LENGTHS
    assert lw.read_lengths(table, ["prompt_len", "answer_len"], combine="stack").tolist() == [
        *map(list, zip(half, rest, strict=True))
    ]
    with pytest.warns(lw.LengthwiseWarning, match=r"'prompt_len \+ answer_len \+ end' disagrees .* in 192 of 192 rows"):
        lw.read_lengths(pa.table(table), ["prompt_len", "answer_len", "end"])
    with pytest.warns(lw.LengthwiseWarning, match=r"all 1000 lengths in 'end' are 0 or 1"):
        lw.read_lengths(table, ["prompt_len", "end"], combine="stack")


def test_a_stream_that_was_cut_between_batches_is_noticed(tmp_path: Path) -> None:
    datasets.Dataset(pa.table({"input_ids": ROWS})).save_to_disk(tmp_path / "saved", num_shards=2)
    first, _ = sorted((tmp_path / "saved").glob("*.arrow"))
    whole = pa.ipc.open_stream(first).read_all()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, whole.schema) as stream:
        stream.write_table(whole, 100)
        place = sink.tell()
        stream.write_table(whole, 100)
    first.write_bytes(sink.getvalue().to_pybytes()[:place])
    with pytest.warns(
        lw.LengthwiseWarning, match=rf"{first.name} ends without an end mark; was its writer interrupted"
    ):
        assert lw.read_lengths(tmp_path / "saved").tolist() == LENGTHS
    assert lw.read_lengths(tmp_path / "saved", check="none").tolist() == LENGTHS


def test_functions_that_plan_warn_where_they_are_called(tmp_path: Path) -> None:
    table = pa.table({"input_ids": ROWS, "seq_len": [length + 1 for length in LENGTHS]})
    pq.write_table(table, tmp_path / "a.parquet")
    for source in (table, tmp_path / "a.parquet"):
        for plan in (lambda lengths: lw.optimal_boundaries(lengths, 3), lambda lengths: lw.pack(lengths, 64)):
            with pytest.warns(lw.LengthwiseWarning, match="disagrees with the sizes of 'input_ids'") as caught:
                plan(source)
            assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize("kind", ["dict", "rows", "pandas", "pandas of Arrow", "polars", "JSON lines", "live", "Arrow"])
def test_stored_lengths_are_compared_wherever_lists_are_beside_them(tmp_path: Path, kind: str) -> None:
    table = {"input_ids": ROWS, "length": [length + 1 for length in LENGTHS]}
    frame = pd.DataFrame(table)
    sources: dict[str, Any] = {
        "dict": table,
        "rows": [{"input_ids": row, "length": len(row) + 1} for row in ROWS],
        "pandas": frame,
        "pandas of Arrow": frame.astype({"input_ids": pd.ArrowDtype(pa.list_(pa.int64()))}),
        "polars": pl.DataFrame(table),
        "JSON lines": tmp_path / "a.jsonl",
        "live": datasets.Dataset.from_dict(table),
        "Arrow": pa.table(table),
    }
    datasets.Dataset.from_dict(table).to_json(tmp_path / "a.jsonl")
    with pytest.warns(lw.LengthwiseWarning, match=r"'length' disagrees with the sizes of 'input_ids' in (192|1000) of"):
        lw.read_lengths(sources[kind])
    with pytest.warns(lw.LengthwiseWarning, match=r"in 1000 of 1000 rows"):
        lw.read_lengths(sources[kind], check="all")


@pytest.mark.parametrize("kind", ["arrow", "parquet", "saved"])
def test_stored_lengths_are_compared_on_a_sample_or_whole(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "data"
    stored = [*LENGTHS[:-300], *(length + 1 for length in LENGTHS[-300:-299]), *LENGTHS[-299:]]
    table = pa.table({"input_ids": ROWS, "num_tokens": stored})
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "arrow":
        with pa.ipc.new_file(path, table.schema) as sink:
            sink.write_table(table, 100)
    else:
        datasets.Dataset(table).save_to_disk(path)
    assert lw.read_lengths(path).tolist() == stored
    with pytest.warns(lw.LengthwiseWarning, match="in 1 of 1000 rows compared"):
        lw.read_lengths(path, check="all")


@pytest.mark.parametrize("kind", ["parquet", "saved"])
def test_lengths_that_are_wrong_in_the_last_file_only_are_noticed(tmp_path: Path, kind: str) -> None:
    stored = [*LENGTHS[:800], *(length + 1 for length in LENGTHS[800:])]
    table = pa.table({"input_ids": ROWS, "num_tokens": stored})
    if kind == "parquet":
        for start in range(0, 1_000, 100):
            pq.write_table(table.slice(start, 100), tmp_path / f"{start:04d}.parquet")
    else:
        datasets.Dataset(table).save_to_disk(tmp_path, num_shards=5)
    with pytest.warns(lw.LengthwiseWarning, match=r"\(row [89]00 says"):
        assert lw.read_lengths(tmp_path).tolist() == stored


def test_few_equal_lengths_are_no_surprise() -> None:
    assert lw.read_lengths([[1, 2]] * 31).tolist() == [2] * 31
