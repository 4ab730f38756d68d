"""Fields inside of lists of structs and of lists, by their path, against Python's loops."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import datasets
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lengthwise as lw

if TYPE_CHECKING:
    from pathlib import Path

RNG = np.random.default_rng(7)
ROWS: list[list[dict[str, Any]]] = [
    [
        {"role": "user", "content": "é" * int(RNG.integers(9)), "ids": [1] * int(RNG.integers(9)), "n": int(size)}
        for size in RNG.integers(0, 50, messages)
    ]
    for messages in RNG.integers(0, 6, 500)
]
TURNS = [[message["ids"] for message in row] for row in ROWS]
EXPECTED = {
    "messages": [len(row) for row in ROWS],
    "messages.ids": [sum(len(message["ids"]) for message in row) for row in ROWS],
    "messages.n": [sum(message["n"] for message in row) for row in ROWS],
}
TEXT = [sum(len(message["content"].encode()) for message in row) for row in ROWS]
COLUMNS = {"id": list(range(len(ROWS))), "messages": ROWS}


def check(source: Any) -> None:
    for path, expected in EXPECTED.items():
        lengths = lw.read_lengths(source, path)
        assert lengths.tolist() == expected
        assert lengths.column == path
        assert lengths.dtype == np.uint32
    assert lw.read_lengths(source, "messages.content", unit="bytes").tolist() == TEXT


def test_a_live_and_a_saved_dataset(tmp_path: Path) -> None:
    dataset = datasets.Dataset.from_dict(COLUMNS)
    check(dataset)
    dataset.save_to_disk(tmp_path / "saved", num_shards=2)
    check(tmp_path / "saved")
    order = dataset.shuffle(seed=1)
    assert lw.read_lengths(order, "messages.ids").tolist() == [EXPECTED["messages.ids"][row] for row in order["id"]]
    assert lw.read_lengths(dataset.to_iterable_dataset(), "messages.ids").tolist() == EXPECTED["messages.ids"]


def test_arrow_and_polars() -> None:
    table = pa.table(COLUMNS)
    check(table)
    check(pa.concat_tables([table.slice(0, 7), table.slice(7, 0), table.slice(7)]))
    check(pl.DataFrame(table))
    check(pl.DataFrame(table).lazy())
    assert lw.read_lengths(table.slice(100, 50), "messages.ids").tolist() == EXPECTED["messages.ids"][100:150]
    # How many messages there are is nobody's length: the user is asked.
    assert lw.inspect(table).column is None
    assert lw.read_lengths(table, "messages").tolist() == EXPECTED["messages"]
    assert "  messages.ids" in str(lw.inspect(table))


@pytest.mark.parametrize("options", [{}, {"data_page_version": "2.0"}, {"compression": "zstd"}], ids=str)
def test_parquet(tmp_path: Path, options: dict[str, Any]) -> None:
    pq.write_table(pa.table(COLUMNS), tmp_path / "arrow.parquet", row_group_size=90, **options)
    check(tmp_path / "arrow.parquet")
    pl.DataFrame(pa.table(COLUMNS)).write_parquet(tmp_path / "polars.parquet", row_group_size=90)
    check(tmp_path / "polars.parquet")


def test_of_parquet_only_the_one_stored_column_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table(COLUMNS), path)
    asked: list[Any] = []
    original = pq.ParquetFile.iter_batches

    def spy(self: Any, *args: Any, columns: Any, **options: Any) -> Any:
        asked.append(columns)
        return original(self, *args, columns=columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    assert lw.read_lengths(path, "messages.n", check="none").tolist() == EXPECTED["messages.n"]
    assert asked == [["messages.list.element.n"]]
    asked.clear()
    for column in ("messages", "messages.ids"):
        assert lw.read_lengths(path, column, check="none").tolist() == EXPECTED[column]
    assert not asked


def test_json_lines(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text("".join(json.dumps({"messages": row}) + "\n" for row in ROWS))
    check(tmp_path / "data.jsonl")


@pytest.mark.parametrize(
    "type_",
    [
        pa.list_(pa.list_(pa.int32())),
        pa.large_list(pa.large_list(pa.int8())),
        pa.list_view(pa.list_(pa.int32())),
        pa.list_(pa.list_view(pa.int32())),
    ],
    ids=str,
)
def test_lists_of_lists(type_: pa.DataType) -> None:
    array = pa.array(TURNS, type_)
    table = pa.table({"turns": array})
    assert lw.read_lengths(table).tolist() == EXPECTED["messages"]
    path = f"turns.{type_.value_field.name}"
    assert lw.read_lengths(table, path).tolist() == EXPECTED["messages.ids"]
    assert lw.read_lengths(table.slice(40, 5), path).tolist() == EXPECTED["messages.ids"][40:45]


def test_fixed_numbers_of_lists() -> None:
    pairs = [[[1], [2, 3]], None, [[], [4]], [None, [5, 6]]]
    table = pa.table({"pair": pa.array(pairs, pa.list_(pa.list_(pa.int32()), 2))})
    assert lw.read_lengths(table, "pair.item", nulls="zero").tolist() == [3, 0, 1, 2]
    assert lw.read_lengths(table.slice(2), "pair.item").tolist() == [1, 2]


message = st.one_of(st.none(), st.fixed_dictionaries({"ids": st.one_of(st.none(), st.lists(st.just(1), max_size=4))}))


@given(
    rows=st.lists(st.one_of(st.none(), st.lists(message, max_size=4)), max_size=12),
    start=st.integers(0, 5),
    parquet=st.booleans(),
)
def test_any_rows(rows: list[Any], start: int, *, parquet: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    type_ = pa.list_(pa.struct([("ids", pa.list_(pa.int32()))]))
    source: Any = pa.table({"messages": pa.chunked_array([pa.array(rows[:3], type_), pa.array(rows[3:], type_)])})
    source = source.slice(start)
    kept = rows[start:]
    if parquet:
        path = tmp_path_factory.mktemp("nested") / "data.parquet"
        pq.write_table(source, path, row_group_size=4)
        source = path
    for column, size in (("messages", len), ("messages.ids", tokens)):
        lengths = lw.read_lengths(source, column, nulls="zero", check="none")
        assert lengths.tolist() == [size(row or []) for row in kept]
        assert lengths.info is not None
        assert lengths.info.nulls.tolist() == [index for index, row in enumerate(kept) if row is None]


def tokens(row: list[Any]) -> int:
    return sum(len((message or {}).get("ids") or []) for message in row)


def test_what_is_not_there() -> None:
    with pytest.raises(
        lw.LengthwiseError, match=r"no column 'messages.x'; it has .*messages.ids \(list<item: int64>\)"
    ):
        lw.read_lengths(pa.table(COLUMNS), "messages.x")
    falling = pa.py_buffer(np.array([0, 2, 1, 2], np.int32))
    array = pa.Array.from_buffers(pa.list_(pa.list_(pa.int32())), 3, [None, falling], children=[pa.array([[1], [2]])])
    with pytest.raises(lw.LengthwiseError, match="has length -1"):
        lw.read_lengths(pa.table({"turns": array}), "turns.item")
