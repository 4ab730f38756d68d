"""Files of each format, written by its own library wherever that installs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import lengthwise as lw

DATA = Path(__file__).parent / "data"
IDS = [[0] * (row * 7 % 23) for row in range(3_000)]
LENGTHS = [len(row) for row in IDS]
TABLE = pa.table({"input_ids": IDS, "text": ["x"] * len(IDS)})


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_json_lines(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"data.jsonl{suffix}"
    lines = [{"text": "{é}", "input_ids": row, "n": len(row), "mixed": row or None} for row in IDS]
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    if suffix == ".gz":
        path.write_bytes(gzip.compress(text))
    else:
        path.write_bytes(pa.Codec("zstd").compress(text, asbytes=True) if suffix else text)
    assert lw.read_lengths(path).tolist() == LENGTHS
    assert lw.read_lengths(path, "n").tolist() == LENGTHS
    assert lw.read_lengths(tmp_path).tolist() == LENGTHS


def test_json_lines_of_a_dataset(tmp_path: Path) -> None:
    datasets.Dataset(TABLE).to_json(tmp_path / "data.jsonl")
    assert lw.read_lengths(tmp_path / "data.jsonl").tolist() == LENGTHS


def test_json_lines_with_columns_of_no_type(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    odd = [[1, "b"], 1 << 70, {"a": [1, {}]}, float("nan"), "text", None]
    lines = [
        {"meta": odd[row % 6], "items": odd[0], "big": odd[1], "nan": odd[3], "ids": IDS[row]} for row in range(60)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert lw.read_lengths(path).tolist() == LENGTHS[:60]
    with pytest.raises(lw.LengthwiseError, match=r"column 'meta' of .*data.jsonl holds dict or float or int or list"):
        lw.read_lengths(path, "meta")
    with pytest.raises(lw.LengthwiseError, match=r"column 'items' of .*data.jsonl holds mixed list"):
        lw.read_lengths(path, "items")


def test_json_lines_that_are_none(tmp_path: Path) -> None:
    for name, text in {"a": "[1, 2]", "b": '{"x": [1, 2]}\n{"x": [1', "c": "hello", "d": ""}.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_text(text)
        with pytest.raises(lw.LengthwiseError, match=f"{name}.jsonl"):
            lw.read_lengths(path)


def test_megatron() -> None:
    for name in ("tokens", "tokens.idx"):
        lengths = lw.read_lengths(DATA / "megatron" / name)
        assert lengths.dtype == np.int32
        assert (len(lengths), int(lengths.sum()), lengths[:5].tolist()) == (60, 1_001, [255, 12, 10, 5, 6])


def test_megatron_live(tmp_path: Path) -> None:
    indexed = pytest.importorskip("megatron.core.datasets.indexed_dataset")
    builder = indexed.IndexedDatasetBuilder(str(tmp_path / "tokens.bin"), dtype=np.int32)
    for row in IDS:
        builder.add_document(torch.tensor(row, dtype=torch.int32), [len(row)])
    builder.finalize(str(tmp_path / "tokens.idx"))
    assert lw.read_lengths(tmp_path / "tokens").tolist() == LENGTHS


def test_megatron_damaged(tmp_path: Path) -> None:
    whole = (DATA / "megatron" / "tokens.idx").read_bytes()
    for name, content, message in (
        ("cut", whole[:-1], "60 sequences take 1002"),
        ("head", whole[:20], "ends within its header"),
        ("new", whole[:9] + b"\x02" + whole[10:], "version 2"),
    ):
        (tmp_path / f"{name}.idx").write_bytes(content)
        with pytest.raises(lw.LengthwiseError, match=message):
            lw.read_lengths(tmp_path / f"{name}.idx")


@pytest.mark.parametrize("name", ["plain", "zstd"])
def test_mds(name: str) -> None:
    folder = DATA / "mds" / name
    lengths = lw.read_lengths(folder)
    assert lengths.column == "tokens"
    assert (len(lengths), int(lengths.sum())) == (60, 1_031)
    for column in ("n", "k", "any"):
        assert lw.read_lengths(folder, column).tolist() == lengths.tolist()
    assert lw.read_lengths(folder, "raw", unit="bytes").tolist() == lengths.tolist()
    assert lw.read_lengths(folder, "text", unit="bytes").tolist() == [2 * (row % 5) for row in range(60)]
    assert set(lw.read_lengths(folder, "fixed", check="none").tolist()) == {4}


def test_mds_live(tmp_path: Path) -> None:
    streaming = pytest.importorskip("streaming")
    with streaming.MDSWriter(out=str(tmp_path), columns={"tokens": "ndarray:int32"}) as writer:
        for row in IDS[1:]:
            writer.write({"tokens": np.array(row or [1], np.int32)})
    assert lw.read_lengths(tmp_path).tolist() == [max(1, length) for length in LENGTHS[1:]]


def test_mds_damaged(tmp_path: Path) -> None:
    for file in (DATA / "mds" / "plain").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    shard = tmp_path / "shard.00001.mds"
    shard.write_bytes(shard.read_bytes()[:300])
    with pytest.raises(lw.LengthwiseError, match=r"shard.00001.mds cannot be read"):
        lw.read_lengths(tmp_path)
    shard.unlink()
    with pytest.raises(lw.LengthwiseError, match=r"shard.00001.mds does not exist"):
        lw.read_lengths(tmp_path)


def test_datatrove(tmp_path: Path) -> None:
    tokenizer = pytest.importorskip("datatrove.pipeline.tokens.tokenizer")
    file = tokenizer.TokenizedFile(str(tmp_path), "a.ds")
    for row in IDS[:50]:
        file.write(row, None)
    file.close()
    for path in (tmp_path, tmp_path / "a.ds", tmp_path / "a.ds.index"):
        assert lw.read_lengths(path).tolist() == LENGTHS[:50]


def test_lance(tmp_path: Path) -> None:
    lance = pytest.importorskip("lance")
    dataset = lance.write_dataset(TABLE, tmp_path / "data.lance", max_rows_per_file=1_000)
    assert lw.read_lengths(tmp_path / "data.lance").tolist() == LENGTHS
    assert lw.read_lengths(dataset).tolist() == LENGTHS
    assert lw.inspect(tmp_path / "data.lance").rows == len(LENGTHS)
    for cached in (False, True):
        lengths = lw.read_lengths(tmp_path / "data.lance", cache=True)
        assert lengths.info is not None
        assert lengths.info.cached == cached
    dataset.delete("text = 'x'")
    assert lw.read_lengths(tmp_path / "data.lance", cache=True).tolist() == []


def test_npy(tmp_path: Path) -> None:
    np.save(tmp_path / "lengths.npy", np.array(LENGTHS, np.uint16))
    lengths = lw.read_lengths(tmp_path / "lengths.npy")
    assert lengths.tolist() == LENGTHS
    assert lengths.dtype == np.uint16


def test_globs_lists_and_folders(tmp_path: Path) -> None:
    for index in range(3):
        pq.write_table(TABLE.slice(index * 1_000, 1_000), tmp_path / f"train-{index:05d}-of-00003.parquet")
    pattern = str(tmp_path / "train-*.parquet")
    assert lw.read_lengths(pattern).tolist() == LENGTHS
    assert lw.read_lengths(tmp_path).tolist() == LENGTHS
    assert lw.read_lengths(sorted(tmp_path.iterdir(), reverse=True)).tolist()[:3] == LENGTHS[2_000:2_003]
    with pytest.raises(lw.LengthwiseError, match="matches no file"):
        lw.read_lengths(str(tmp_path / "test-*.parquet"))
    pq.write_table(TABLE, tmp_path / "test-00000-of-00001.parquet")
    with pytest.raises(lw.LengthwiseError, match="several splits, test, train"):
        lw.read_lengths(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(lw.LengthwiseError, match="holds no file of a known format"):
        lw.read_lengths(tmp_path / "empty")


@pytest.mark.parametrize(
    "options",
    [{}, {"data_page_version": "2.0"}, {"compression": "zstd"}, {"compression": "none"}, {"use_dictionary": False}],
    ids=str,
)
def test_parquet_options(tmp_path: Path, options: dict[str, Any]) -> None:
    rows: list[Any] = [None if index % 11 == 0 else row for index, row in enumerate(IDS)]
    pq.write_table(pa.table({"ids": rows}), tmp_path / "data.parquet", row_group_size=700, **options)
    assert lw.read_lengths(tmp_path / "data.parquet", nulls="zero").tolist() == [len(row or ()) for row in rows]


def test_footers_bound_the_tokens(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "data.parquet", row_group_size=700)
    found = lw.inspect(tmp_path / "data.parquet")
    assert found.tokens is not None
    assert found.tokens[0] <= sum(LENGTHS) <= found.tokens[1] <= sum(LENGTHS) + LENGTHS.count(0)
    assert (found.rows, found.column, found.reads_values) == (3_000, "input_ids", False)
