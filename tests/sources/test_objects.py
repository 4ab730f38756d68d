"""Objects of other libraries: whatever speaks the Arrow C interface, frames, tensors, iterables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import datasets
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pad
import pyarrow.parquet as pq
import pytest
import torch

import lengthwise as lw

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IDS = [[1, 2, 3], [], [4, 5]]
LENGTHS = [3, 0, 2]
TABLE = pa.table({"input_ids": IDS, "text": ["a", "b", "c"]})


def test_polars() -> None:
    frame = pl.DataFrame(TABLE)
    assert lw.read_lengths(frame).tolist() == LENGTHS
    assert lw.read_lengths(frame["input_ids"]).tolist() == LENGTHS
    assert lw.read_lengths(pl.Series([3, 0, 2])).tolist() == LENGTHS
    assert lw.read_lengths(frame.lazy().filter(pl.col("text") != "b")).tolist() == [3, 2]
    assert lw.read_lengths(frame.with_columns(pl.Series("n", LENGTHS, pl.UInt16)), "n").dtype == np.uint16


def test_duckdb() -> None:
    samples = TABLE  # noqa: F841 - DuckDB finds it by its name
    relation = duckdb.sql('select input_ids, error(\'this column is not to be computed\') as "a ""b" from samples')
    lengths = lw.read_lengths(relation)
    assert lengths.tolist() == LENGTHS
    assert lengths.column == "input_ids"
    assert lw.read_lengths(duckdb.sql("select len(input_ids) as length from samples")).tolist() == LENGTHS


@pytest.mark.parametrize("type_", [pl.List(pl.Int32), pl.List(pl.String), pl.Array(pl.Int32, 2)], ids=str)
def test_queries_count_their_lists(type_: Any) -> None:
    text = type_ == pl.List(pl.String)
    rows: list[list[Any] | None] = [["a", "b"] if text else [1, 2], None, ["c", "d"] if text else [3, 4]]
    name = 'input "ids"'
    frame = pl.DataFrame({"row": [0, 1, 2], name: pl.Series(rows, dtype=type_)})
    relation = duckdb.from_arrow(frame.to_arrow())
    for query, some in (
        (frame.lazy(), frame.lazy().filter(pl.col("row") != 1)),
        (relation, relation.filter("row <> 1")),
    ):
        lengths = lw.read_lengths(query, name, nulls="zero")
        assert lengths.tolist() == [2, 0, 2]
        assert lengths.dtype == np.uint32
        assert lengths.info is not None
        assert lengths.info.nulls.tolist() == [1]
        assert "list" in lengths.info.types[0]
        with pytest.raises(lw.LengthwiseError, match=r"is null in 1 rows \(1\)"):
            lw.read_lengths(query, name)
        assert lw.Histogram.of(some, name).counts.tolist() == [2]


def test_pandas() -> None:
    frame = pd.DataFrame({"input_ids": IDS, "text": ["a", "b", "c"], "n": LENGTHS})
    assert lw.read_lengths(frame).tolist() == LENGTHS
    assert lw.read_lengths(frame, "n").tolist() == LENGTHS
    assert lw.read_lengths(frame["input_ids"]).tolist() == LENGTHS
    assert lw.read_lengths(frame["n"]).tolist() == LENGTHS
    assert lw.read_lengths(frame, unit="bytes").tolist() == [1, 1, 1]
    arrow = pd.DataFrame({"tokens": pd.Series(IDS, dtype=pd.ArrowDtype(pa.list_(pa.int32()))), "other": 1.5})
    assert lw.read_lengths(arrow).tolist() == LENGTHS
    assert lw.read_lengths(pd.DataFrame({"input_ids": [[1], None]}), nulls="zero").tolist() == [1, 0]
    for missing in (None, np.nan, pd.NA):
        for rows in ([[1], missing], [missing, [1]]):
            frame = pd.DataFrame({"input_ids": rows})
            assert lw.read_lengths(frame, nulls="drop").tolist() == [1]
            assert frame["input_ids"].isna().sum() == 1
    with pytest.raises(lw.LengthwiseError, match="known to hold lengths"):
        lw.read_lengths(pd.DataFrame({"x": [1.5, None]}))


def test_nanoarrow() -> None:
    nanoarrow = pytest.importorskip("nanoarrow")
    assert lw.read_lengths(nanoarrow.Array(LENGTHS, nanoarrow.int32())).tolist() == LENGTHS
    assert lw.read_lengths(nanoarrow.Array(TABLE)).tolist() == LENGTHS
    assert lw.read_lengths(nanoarrow.c_array(TABLE["input_ids"].chunk(0))).tolist() == LENGTHS


def test_arro3() -> None:
    arro3 = pytest.importorskip("arro3.core")
    assert lw.read_lengths(arro3.Table.from_arrow(TABLE)).tolist() == LENGTHS
    assert lw.read_lengths(arro3.Array.from_arrow(TABLE["input_ids"].chunk(0))).tolist() == LENGTHS
    assert lw.read_lengths(arro3.RecordBatch.from_arrow(TABLE.to_batches()[0])).tolist() == LENGTHS


def test_readers_are_read_once_batch_by_batch() -> None:
    batches = [batch for _ in range(3) for batch in TABLE.to_batches()]
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, iter(batches))
    assert lw.read_lengths(reader).tolist() == LENGTHS * 3
    with pytest.raises(lw.LengthwiseError, match="only once"):
        lw.read_lengths(pa.RecordBatchReader.from_batches(TABLE.schema, batches), ["input_ids", "text"])


def test_pyarrow_datasets_prune_by_their_filter(tmp_path: Path) -> None:
    table = pa.table({"day": np.repeat([1, 2], 50), "input_ids": [[0] * (row % 7) for row in range(100)]})
    pq.write_table(table, tmp_path / "data.parquet", row_group_size=50)
    dataset = pad.dataset(tmp_path)
    assert lw.read_lengths(dataset).tolist() == [row % 7 for row in range(100)]
    assert lw.read_lengths(dataset.filter(pad.field("day") == 2)).tolist() == [row % 7 for row in range(50, 100)]
    assert lw.read_lengths(dataset.scanner(columns=["input_ids"])).tolist() == [row % 7 for row in range(100)]


def test_torch() -> None:
    assert lw.read_lengths(torch.tensor(LENGTHS)).tolist() == LENGTHS
    assert lw.read_lengths([torch.arange(n) for n in LENGTHS]).tolist() == LENGTHS
    jagged = torch.nested.nested_tensor([torch.arange(n) for n in LENGTHS], layout=torch.jagged)
    assert lw.read_lengths(jagged).tolist() == LENGTHS
    with pytest.raises(lw.LengthwiseError, match=r"attention_mask.sum\(1\)"):
        lw.read_lengths(torch.zeros(3, 4, dtype=torch.int64))


def test_map_style_datasets_and_iterables() -> None:
    class Samples(torch.utils.data.Dataset[dict[str, Any]]):
        def __len__(self) -> int:
            return 2_500

        def __getitem__(self, index: int) -> dict[str, Any]:
            return {"input_ids": torch.arange(index % 7), "labels": 0}

    expected = [index % 7 for index in range(2_500)]
    samples = Samples()
    assert lw.read_lengths(samples).tolist() == expected
    assert lw.read_lengths(samples[index] for index in range(2_500)).tolist() == expected
    assert lw.read_lengths((samples[index]["input_ids"], 1) for index in range(9)).tolist() == expected[:9]
    assert lw.read_lengths(iter([])).tolist() == []


def test_iterable_datasets() -> None:
    def rows() -> Iterator[dict[str, Any]]:
        yield from ({"input_ids": [0] * (index % 7), "text": "x"} for index in range(2_500))

    expected = [index % 7 for index in range(2_500)]
    dataset = datasets.IterableDataset.from_generator(rows)
    assert lw.read_lengths(dataset).tolist() == expected
    assert lw.read_lengths(dataset.take(10), "input_ids").tolist() == expected[:10]


def test_a_users_format_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    from lengthwise import sources
    from lengthwise.sources.base import Field, Source

    class Mine(Source):
        format, where, fields = "mine", "Thing", (Field("length", "integer", "int"),)

        def read(self, field: Field, skip: int = 0) -> Iterator[Any]:
            assert (field.path, skip) == ("length", 0)
            yield np.array([1, 2])
            yield np.array([3])

    class Thing:
        @staticmethod
        def open(source: Any) -> Source | None:
            return Mine() if isinstance(source, Thing) else None

    class Entry(EntryPoint):
        def load(self) -> Any:
            return Thing

    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [Entry("mine", "x", "y")])
    sources._added.cache_clear()
    try:
        assert lw.read_lengths(Thing()).tolist() == [1, 2, 3]
    finally:
        sources._added.cache_clear()
