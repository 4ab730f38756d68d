"""Reading lengths: ours against the libraries that hold the data, in the same run, on warm files.

The saved dataset has the story's 902,087 rows and more than 2 GB of tokens; the Parquet file has 10 million lists.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import datasets
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import lengthwise as lw
from lengthwise.story import story_lengths

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy.typing as npt

MILLION = 1_000_000
#: Rows that the comprehension is timed on; it takes minutes for all of them.
SOME = 10_000


def lists(lengths: npt.NDArray[Any], type_: Any = np.uint16) -> pa.ListArray:
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.zeros(offsets[-1], type_)))


@pytest.fixture(scope="module")
def lengths() -> npt.NDArray[np.int64]:
    return np.random.default_rng(0).permutation(story_lengths().astype(np.int64) * 3 // 5)


@pytest.fixture(scope="module")
def saved(lengths: npt.NDArray[np.int64], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench") / "saved"
    table = pa.table({"input_ids": lists(lengths), "seq_len": lengths})
    datasets.Dataset(table).save_to_disk(folder, num_shards=1)
    return folder


def stream(folder: Path) -> pa.Table:
    return pa.ipc.open_stream(pa.memory_map(str(next(folder.glob("*.arrow"))))).read_all()


@pytest.mark.parametrize("reader", ["lengthwise", "pyarrow"])
@pytest.mark.parametrize("column", ["seq_len", "input_ids"])
@pytest.mark.benchmark(group="saved dataset, 902,087 rows")
def test_saved(benchmark: Any, saved: Path, lengths: npt.NDArray[np.int64], column: str, reader: str) -> None:
    def peer() -> npt.NDArray[Any]:
        found = stream(saved)[column]
        return (found if column == "seq_len" else pc.list_value_length(found)).to_numpy()

    read: Callable[[], Any] = peer if reader == "pyarrow" else lambda: lw.read_lengths(saved, column)
    assert np.array_equal(read(), lengths)
    benchmark(read)


@pytest.mark.benchmark(group=f"saved dataset, the comprehension, {SOME:,} rows")
def test_comprehension(benchmark: Any, saved: Path) -> None:
    dataset = datasets.load_from_disk(str(saved)).select(range(SOME))
    benchmark.pedantic(lambda: [len(row) for row in dataset["input_ids"]], rounds=1)


def test_memory(benchmark: Any, saved: Path) -> None:
    code = f"""
import numpy, pyarrow.compute, psutil
import lengthwise as lw
from lengthwise.sources import huggingface, ipc
lw.read_lengths([1]); lw.read_lengths(pyarrow.table({{"input_ids": [[1]]}}))
before = psutil.Process().memory_info().rss
lengths = lw.read_lengths({str(saved)!r})
print((psutil.Process().memory_info().rss - before) / len(lengths))
"""
    command = [sys.executable, "-c", code]
    run = partial(subprocess.run, command, check=True, capture_output=True, text=True)
    grown = float(run().stdout)
    assert grown < 8
    # The figure stands in the heading; the time is that of the whole process.
    benchmark.group = f"saved dataset, resident memory grows by {grown:.1f} bytes a row"
    benchmark.pedantic(run, rounds=1)


def chunked(column: pa.Array, chunks: int) -> pa.ChunkedArray:
    rows = len(column) // chunks
    return pa.chunked_array([column.slice(start, rows) for start in range(0, len(column), rows)])


def views(column: pa.ListArray) -> pa.ListViewArray:
    return pa.ListViewArray.from_arrays(column.offsets[:-1], pc.list_value_length(column), column.values)


def of_one_size(column: pa.ListArray) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(8 * len(column), np.uint8)), 8)


#: What holds the lists, made of a plain array of them, and how they are read; with `nulls`, some are null.
SHAPES: dict[str, tuple[Callable[[pa.ListArray], Any], dict[str, Any]]] = {
    "one chunk": (lambda column: column, {}),
    "10 chunks": (lambda column: chunked(column, 10), {}),
    "100 chunks": (lambda column: chunked(column, 100), {}),
    "1,000 chunks": (lambda column: chunked(column, 1_000), {}),
    "large lists": (lambda column: column.cast(pa.large_list(pa.uint8())), {}),
    "sliced": (lambda column: column.slice(len(column) // 10, len(column) // 10 * 8), {}),
    "nulls are zero": (lambda column: column, {"nulls": "zero"}),
    "nulls are dropped": (lambda column: column, {"nulls": "drop"}),
    "nulls, 1,000 chunks": (lambda column: chunked(column, 1_000), {"nulls": "zero"}),
    "table": (lambda column: pa.table({"input_ids": column}), {}),
    "table, column by name": (lambda column: pa.table({"row": column.offsets[1:], "x": column}), {"column": "x"}),
    "record batch": (lambda column: pa.record_batch({"input_ids": column}), {}),
    "list views": (views, {}),
    "list views, 10 chunks": (lambda column: chunked(views(column), 10), {}),
    "lists of one size": (of_one_size, {"check": "none"}),
    "lists of one size, 10 chunks": (lambda column: chunked(of_one_size(column), 10), {"check": "none"}),
    "lists of equal lengths": (lambda column: lists(np.full(len(column), 8), np.uint8), {"check": "none"}),
}


@pytest.mark.parametrize("reader", ["lengthwise", "pyarrow"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rows", [1_000, 100_000, MILLION, 10 * MILLION])
def test_in_memory(benchmark: Any, rows: int, shape: str, reader: str) -> None:
    """Each round starts with one of the other reader, so both find the caches and the memory as the other left them."""
    make, options = SHAPES[shape]
    nulls = options.get("nulls", "error")
    rng = np.random.default_rng(0)
    column = lists(rng.integers(1, 40, rows), np.uint8)
    if nulls != "error":
        column = pa.ListArray.from_arrays(column.offsets, column.values, mask=pa.array(rng.random(rows) < 0.01))
    data = make(column)

    def ours() -> Any:
        return lw.read_lengths(data, **options)

    def peer() -> Any:
        # Its lengths stay in Arrow; what makes a numpy array of them is not counted.
        tabular = isinstance(data, (pa.Table, pa.RecordBatch))
        found = pc.list_value_length(data[options.get("column", "input_ids")] if tabular else data)
        return {"error": lambda: found, "zero": lambda: pc.fill_null(found, 0), "drop": found.drop_null}[nulls]()

    in_turn(benchmark, f"in memory, {rows:,} lists, {shape}", rows, *order(reader, ours, peer))


def order(reader: str, ours: Callable[[], Any], peer: Callable[[], Any]) -> tuple[Callable[[], Any], Callable[[], Any]]:
    assert np.array_equal(ours(), np.asarray(peer()).ravel())
    return (ours, peer) if reader == "lengthwise" else (peer, ours)


def in_turn(benchmark: Any, group: str, rows: int, read: Callable[[], Any], other: Callable[[], Any]) -> None:
    def setup() -> None:
        other()

    benchmark.group = group
    benchmark.pedantic(read, setup=setup, rounds=min(1_000, 300 * MILLION // rows))


#: Objects of other libraries made of an Arrow table of lists, and how those measure them.
PRODUCERS: dict[str, tuple[Callable[[pa.Table], Any], Callable[[Any], Any]]] = {
    "polars.Series": (lambda table: pl.DataFrame(table)["x"], lambda series: series.list.len()),
    "polars.DataFrame": (pl.DataFrame, lambda frame: frame["x"].list.len()),
    "polars.LazyFrame": (
        lambda table: pl.DataFrame(table).lazy(),
        lambda frame: frame.select(pl.col("x").list.len()).collect().to_series(),
    ),
    "duckdb": (duckdb.from_arrow, lambda relation: relation.project("len(x) n").fetchnumpy()["n"]),
}


@pytest.mark.parametrize("reader", ["lengthwise", "itself"])
@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize("rows", [100_000, MILLION])
def test_producers(benchmark: Any, rows: int, producer: str, reader: str) -> None:
    make, measure = PRODUCERS[producer]
    data = make(pa.table({"x": lists(np.random.default_rng(0).integers(1, 40, rows), np.uint8)}))
    column = None if producer == "polars.Series" else "x"
    readers = order(reader, lambda: lw.read_lengths(data, column), lambda: measure(data))
    in_turn(benchmark, f"{producer}, {rows:,} lists", 10 * rows, *readers)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    path = tmp_path_factory.mktemp("bench") / "lists.parquet"
    rng = np.random.default_rng(0)
    total = 0
    with pq.ParquetWriter(path, pa.schema({"input_ids": pa.list_(pa.int32())})) as writer:
        for _ in range(10):
            lengths = rng.integers(1, 40, MILLION)
            total += int(lengths.sum())
            offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
            values = pa.array(rng.integers(0, 50_000, int(lengths.sum()), np.int32))
            writer.write_table(pa.table({"input_ids": pa.ListArray.from_arrays(offsets, values)}))
    return path, total


def by_pyarrow(path: Path) -> npt.NDArray[Any]:
    file = pq.ParquetFile(path)
    parts = (file.read_row_group(group, columns=["input_ids"]) for group in range(file.num_row_groups))
    return np.concatenate([pc.list_value_length(part["input_ids"]).to_numpy() for part in parts])


def by_polars(path: Path) -> npt.NDArray[Any]:
    return pl.scan_parquet(path).select(pl.col("input_ids").list.len()).collect()["input_ids"].to_numpy()


def by_duckdb(path: Path) -> npt.NDArray[Any]:
    found: npt.NDArray[Any] = duckdb.read_parquet(str(path)).project("len(input_ids) n").fetchnumpy()["n"]
    return found


@pytest.mark.parametrize("reader", [lw.read_lengths, by_pyarrow, by_polars, by_duckdb], ids=lambda f: f.__name__)
@pytest.mark.benchmark(group="Parquet, 10 million lists")
def test_parquet(benchmark: Any, parquet: tuple[Path, int], reader: Callable[[Any], npt.NDArray[Any]]) -> None:
    path, total = parquet
    assert int(reader(path).sum()) == total
    benchmark.pedantic(lambda: reader(path), rounds=3)


@pytest.fixture(scope="module")
def conversations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "conversations.parquet"
    rng = np.random.default_rng(0)
    turns = rng.integers(1, 6, 300_000)
    tokens = rng.integers(1, 60, int(turns.sum()))
    messages = pa.StructArray.from_arrays([lists(tokens, np.uint16)], ["input_ids"])
    offsets = pa.array(np.concatenate([[0], np.cumsum(turns)]).astype(np.int32))
    pq.write_table(pa.table({"messages": pa.ListArray.from_arrays(offsets, messages)}), path, row_group_size=100_000)
    return path


def nested_by_lengthwise(path: Path) -> npt.NDArray[Any]:
    return lw.read_lengths(path, "messages.input_ids")


def nested_by_pyarrow(path: Path) -> npt.NDArray[Any]:
    return lw.read_lengths(pq.read_table(path), "messages.input_ids")


def nested_by_polars(path: Path) -> npt.NDArray[Any]:
    each = pl.element().struct.field("input_ids").list.len()
    return pl.scan_parquet(path).select(pl.col("messages").list.eval(each).list.sum()).collect().to_series().to_numpy()


def nested_by_duckdb(path: Path) -> npt.NDArray[Any]:
    each = "list_sum(list_transform(messages, lambda message: len(message.input_ids))) n"
    found: npt.NDArray[Any] = duckdb.read_parquet(str(path)).project(each).fetchnumpy()["n"]
    return found


@pytest.mark.parametrize(
    "reader",
    [nested_by_lengthwise, nested_by_pyarrow, nested_by_polars, nested_by_duckdb],
    ids=lambda f: f.__name__.removeprefix("nested_"),
)
@pytest.mark.benchmark(group="Parquet, 300,000 conversations of 27 million tokens")
def test_conversations(benchmark: Any, conversations: Path, reader: Callable[[Path], npt.NDArray[Any]]) -> None:
    assert np.array_equal(reader(conversations), nested_by_lengthwise(conversations))
    benchmark.pedantic(lambda: reader(conversations), rounds=3)
