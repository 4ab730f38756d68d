"""Lengths from the sources of every day: saved and live datasets, Arrow, Parquet, numpy, lists."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lengthwise as lw

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = 2_500


def tokens(rows: int = ROWS, seed: int = 0) -> tuple[list[list[int]], list[int]]:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 30, rows)
    return [rng.integers(0, 50_000, length).tolist() for length in lengths], lengths.tolist()


@pytest.fixture(scope="module")
def samples() -> tuple[list[list[int]], list[int]]:
    return tokens()


@pytest.fixture(scope="module")
def dataset(samples: tuple[list[list[int]], list[int]]) -> datasets.Dataset:
    ids, lengths = samples
    return datasets.Dataset.from_dict({"input_ids": ids, "loss_mask": ids, "seq_len": lengths, "text": ["é"] * ROWS})


@pytest.fixture(scope="module")
def saved(dataset: datasets.Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "dataset"
    dataset.save_to_disk(folder, num_shards=3)
    return folder


@pytest.mark.parametrize("column", [None, "seq_len", "input_ids", "loss_mask"])
def test_saved_dataset(saved: Path, samples: tuple[list[list[int]], list[int]], column: str | None) -> None:
    lengths = lw.read_lengths(saved, column)
    assert lengths.tolist() == samples[1]
    assert lengths.column == (column or "seq_len")
    assert lengths.dtype == np.uint32
    assert not lengths.flags.writeable


def test_saved_dataset_follows_the_order_of_its_state_file(saved: Path, tmp_path: Path) -> None:
    state = json.loads((saved / "state.json").read_text())
    state["_data_files"].reverse()
    for file in saved.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "state.json").unlink()
    (tmp_path / "state.json").write_text(json.dumps(state))
    assert lw.read_lengths(tmp_path).tolist() == datasets.load_from_disk(str(tmp_path))["seq_len"][:]


def test_dataset_dict_names_its_splits(dataset: datasets.Dataset, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    datasets.DatasetDict(train=dataset).save_to_disk(one)
    datasets.DatasetDict(train=dataset, test=dataset.select(range(10))).save_to_disk(two)
    assert len(lw.read_lengths(one)) == ROWS
    assert len(lw.read_lengths(two / "test")) == 10
    with pytest.raises(lw.LengthwiseError, match=r"holds 2 splits; pass the folder of one: .*two/train, .*two/test"):
        lw.read_lengths(two)
    with pytest.raises(lw.LengthwiseError, match="pass one"):
        lw.read_lengths(datasets.load_from_disk(str(two)))


@pytest.mark.parametrize("column", ["seq_len", "input_ids"])
@pytest.mark.parametrize(
    "change",
    [
        lambda ds: ds,
        lambda ds: ds.shuffle(seed=3),
        lambda ds: ds.select([5, 5, 0, 2_400]),
        lambda ds: ds.select(range(700, 1_900)),
        lambda ds: ds.shard(4, 1),
        lambda ds: ds.train_test_split(0.2, seed=1)["test"],
        lambda ds: datasets.concatenate_datasets([ds.shuffle(seed=1), ds.select(range(100))]),
        lambda ds: ds.filter(lambda row: row["seq_len"] > 10),
        pytest.param(lambda ds: ds.sort("seq_len"), marks=pytest.mark.filterwarnings("ignore::FutureWarning")),
        lambda ds: ds.with_format("torch"),
        lambda ds: ds.with_format("numpy", columns=["text"]),
        lambda ds: ds.select([]),
    ],
)
def test_live_dataset(dataset: datasets.Dataset, change: Callable[[Any], Any], column: str) -> None:
    changed = change(dataset)
    expected = [len(row) for row in changed.with_format(None)["input_ids"]]
    assert lw.read_lengths(changed, column).tolist() == expected


def test_reading_needs_no_datasets_library(saved: Path, tmp_path: Path) -> None:
    import subprocess
    import sys

    code = f"""
import sys
sys.modules["datasets"] = None
import lengthwise as lw
assert "pyarrow" not in sys.modules and "torch" not in sys.modules
assert len(lw.read_lengths({str(saved)!r})) == {ROWS}
lw.read_lengths([[1, 2]]), lw.read_lengths([1, 2])
assert not {{"pandas", "torch", "polars", "duckdb", "fsspec", "lance"}} & set(sys.modules)
"""
    subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code], check=True, cwd=tmp_path
    )


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("writer", [pa.ipc.new_file, pa.ipc.new_stream])
def test_arrow_files(
    tmp_path: Path, samples: tuple[list[list[int]], list[int]], writer: Any, compression: str | None
) -> None:
    path = tmp_path / "data.arrow"
    table = pa.table({"tokens": samples[0], "n": samples[1]})
    with writer(path, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as sink:
        sink.write_table(table, max_chunksize=1000)
    assert lw.read_lengths(path).tolist() == samples[1]
    assert lw.read_lengths(str(path), "n").tolist() == samples[1]


@pytest.mark.parametrize("type_", [pa.int32(), pa.int64(), pa.uint16()])
def test_one_chunk_is_a_view_of_the_map(tmp_path: Path, type_: pa.DataType) -> None:
    path = tmp_path / "data.arrow"
    table = pa.table({"input_ids": [[1, 2, 3], [4], [5, 6]], "length": pa.array([3, 1, 2], type_)})
    with pa.ipc.new_stream(path, table.schema) as sink:
        sink.write_table(table)
    lengths = lw.read_lengths(path)
    assert lengths.tolist() == [3, 1, 2]
    address = lengths.__array_interface__["data"][0]
    assert any(low <= address < high for low, high in mappings(path))


def mappings(path: Path) -> list[tuple[int, int]]:
    """The address ranges at which a file is mapped into this process."""
    with open("/proc/self/maps") as maps:  # noqa: PTH123
        lines = [line.split()[0].split("-") for line in maps if line.rstrip().endswith(str(path))]
    return [(int(low, 16), int(high, 16)) for low, high in lines]


def test_memory_of_a_view_is_alive_as_long_as_the_view() -> None:
    values = np.arange(1_000, dtype=np.int64)
    lengths = lw.read_lengths(pa.table({"length": values}))
    del values
    assert lengths.sum() == 499_500


@pytest.mark.parametrize("column", [None, "n", "nested.ids"])
def test_parquet(tmp_path: Path, samples: tuple[list[list[int]], list[int]], column: str | None) -> None:
    ids, lengths = samples
    table = pa.table({"input_ids": ids, "n": lengths, "nested": [{"ids": row, "other": 1} for row in ids]})
    pq.write_table(table, tmp_path / "b.parquet", row_group_size=600)
    assert lw.read_lengths(tmp_path / "b.parquet", column).tolist() == lengths
    pq.write_table(table.slice(0, 7), tmp_path / "a.parquet")
    assert lw.read_lengths(tmp_path, column).tolist() == lengths[:7] + lengths


@pytest.mark.parametrize(
    "source",
    [
        [3, 0, 2],
        (3, 0, 2),
        np.array([3, 0, 2]),
        np.array([3, 0, 2], np.uint8),
        np.array([3, 0, 2], ">i4"),
        np.array([3, 9, 0, 9, 2, 9], np.int16)[::2],
        [[1, 2, 3], [], [4, 5]],
        [np.arange(3), np.arange(0), np.arange(2)],
        [{"input_ids": [1, 2, 3]}, {"input_ids": []}, {"input_ids": [1, 2]}],
        {"input_ids": [[1, 2, 3], [], [4, 5]], "text": ["a", "b", "c"]},
        pa.array([3, 0, 2]),
        pa.array([[1, 2, 3], [], [4, 5]]),
        pa.array([[0], [1, 2, 3], [], [4, 5]]).slice(1),
        pa.chunked_array([[[1, 2, 3]], [[], [4, 5]]]),
        pa.table({"anything": [3, 0, 2]}),
        pa.record_batch({"x": [[1, 2, 3], [], [4, 5]]}),
    ],
)
def test_in_memory(source: Any) -> None:
    assert lw.read_lengths(source).tolist() == [3, 0, 2]


@pytest.mark.parametrize("source", [[], (), np.array([], np.int64), pa.array([], pa.int32()), {"input_ids": []}])
def test_nothing_has_no_lengths(source: Any) -> None:
    assert lw.read_lengths(source).tolist() == []


def test_empty_datasets(tmp_path: Path) -> None:
    for name, column in {"typed": pa.array([], pa.list_(pa.int32())), "untyped": pa.array([])}.items():
        empty = datasets.Dataset(pa.table({"input_ids": column}))
        empty.save_to_disk(tmp_path / name)
        assert lw.read_lengths(tmp_path / name).tolist() == []
        assert lw.read_lengths(empty).tolist() == []
        pq.write_table(empty.data.table, tmp_path / f"{name}.parquet")
        assert lw.read_lengths(tmp_path / f"{name}.parquet").tolist() == []
        assert lw.inspect(tmp_path / name, percentiles=True).description.samples == 0
    assert lw.read_lengths(pa.table({"input_ids": pa.array([None, None])}), nulls="zero").tolist() == [0, 0]


def test_nulls_are_an_error_dropped_or_zero() -> None:
    table = pa.table({"input_ids": pa.chunked_array([[[1], None], [[1, 2], None, []]])})
    with pytest.raises(lw.LengthwiseError, match=r"'input_ids' of pyarrow.Table is null in 2 rows \(1, 3\)"):
        lw.read_lengths(table)
    assert lw.read_lengths(table, nulls="drop").tolist() == [1, 2, 0]
    assert lw.read_lengths(table, nulls="zero").tolist() == [1, 0, 2, 0, 0]


def test_text_is_measured_only_on_request(saved: Path) -> None:
    with pytest.raises(lw.LengthwiseError, match=r'holds string, not tokens; tokenise it first, or pass unit="bytes"'):
        lw.read_lengths(saved, "text")
    lengths = lw.read_lengths(saved, unit="bytes")
    assert set(lengths.tolist()) == {2}
    assert lengths.column == "text"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (pa.table({"a": [1], "b": [2]}), r"known to hold lengths; it has a \(int64\), b \(int64\); name one"),
        ({"length": [1, -2]}, r"row 1 of dict has length -2; lengths cannot be negative"),
        (pa.table({"length": [1, 2**31]}), r"row 1 of pyarrow.Table has length 2147483648, more than"),
        (np.array([0, 2**31], ">u4"), r"row 1 of numpy.ndarray has length 2147483648, more than"),
        (np.array(3), r"must be one-dimensional, got the single value 3; pass an array"),
        (np.array(None), r"must be one-dimensional, got the single value None"),
        (np.array([3, 1.5]), r"must be integers .* got dtype float64; numpy.ndarray\[1\] is 1.5"),
        (np.array([3, np.nan]), r"must be integers .* got dtype float64; numpy.ndarray\[1\] is nan"),
        (np.array([3.0]), r"must be integers .* got dtype float64; convert with .astype"),
        (np.array([True]), r"must be integers .* got dtype bool"),
        (np.zeros((2, 2), int), r"got shape \(2, 2\)"),
        ([1.5], r"list\[0\] is 1.5; a length is an integer"),
        ([1, None], r"list is null in 1 rows \(1\)"),
        ([[1], 2], r"list\[1\] is 2, which has no length"),
        (object(), r"cannot be read from builtins.object"),
        ("no/such/path", r"no/such/path does not exist"),
    ],
)
def test_bad_input(source: Any, message: str) -> None:
    with pytest.raises(lw.LengthwiseError, match=message):
        lw.read_lengths(source)


def test_no_such_column(saved: Path) -> None:
    with pytest.raises(lw.LengthwiseError, match=r"no column 'ids'; it has input_ids .*seq_len"):
        lw.read_lengths(saved, "ids")


@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
@pytest.mark.parametrize("keep", [0, 3, 20, 0.5, 0.99])
def test_truncated_files_are_named(tmp_path: Path, saved: Path, suffix: str, keep: float) -> None:
    whole = next(saved.glob("*.arrow")).read_bytes()
    if suffix == "parquet":
        pq.write_table(pa.table({"input_ids": [[1, 2]] * 1000}), tmp_path / "whole.parquet")
        whole = (tmp_path / "whole.parquet").read_bytes()
    path = tmp_path / f"cut.{suffix}"
    path.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    with pytest.raises(lw.LengthwiseError, match=f"cut.{suffix}"):
        lw.read_lengths(path)
