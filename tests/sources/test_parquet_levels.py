"""Lengths from the levels of Parquet pages, against pyarrow's lists, for every writer and every shape of column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.sources import parquet_file
from lengthwise.sources.pages import UnusualPageError, read_chunk

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

RNG = np.random.default_rng(5)
ROWS: list[list[int]] = [RNG.integers(0, 50_000, max(0, int(n))).tolist() for n in RNG.integers(-3, 40, 6_000)]
COMPRESSIONS = ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The row groups that were decoded by pyarrow, as they are."""
    groups: list[int] = []
    original = parquet_file.ParquetFile._decode

    def spy(self: parquet_file.ParquetFile, file: Any, group: int, path: str) -> Any:
        groups.append(group)
        return original(self, file, group, path)

    monkeypatch.setattr(parquet_file.ParquetFile, "_decode", spy)
    return groups


def check(path: Path, rows: list[Any], column: str = "input_ids") -> None:
    assert lw.read_lengths(path, column, nulls="zero").tolist() == [len(row or ()) for row in rows]


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pyarrow(tmp_path: Path, decoded: list[int], compression: str, version: str) -> None:
    path = tmp_path / "data.parquet"
    options: dict[str, Any] = {"compression": compression, "data_page_version": version, "data_page_size": 4_096}
    pq.write_table(pa.table({"input_ids": ROWS}), path, row_group_size=2_500, **options)
    check(path, ROWS)
    assert not decoded


@pytest.mark.parametrize(
    "type_",
    [
        pa.list_(pa.int32()),
        pa.list_(pa.field("item", pa.int64(), nullable=False)),
        pa.large_list(pa.uint16()),
        pa.list_(pa.string()),
        pa.list_(pa.bool_()),
    ],
    ids=str,
)
@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("nested", [True, False])
def test_shapes(tmp_path: Path, decoded: list[int], type_: pa.DataType, *, nullable: bool, nested: bool) -> None:
    rows: list[Any] = [None if nullable and index % 13 == 0 else row for index, row in enumerate(ROWS)]
    if pa.types.is_string(type_.value_type):
        rows = [row and [str(token) for token in row] for row in rows]
    elif pa.types.is_boolean(type_.value_type):
        rows = [row and [bool(token % 2) for token in row] for row in rows]
    elif type_.value_type == pa.int32():
        rows = [row and [None, *row[1:]] for row in rows]
    field = pa.field("input_ids", type_, nullable=nullable)
    array = pa.array(rows, type_)
    if nested:
        mask = pa.array([index % 17 == 0 for index in range(len(rows))])
        struct = pa.StructArray.from_arrays([array], fields=[field], mask=mask)
        table, column = pa.table({"outer": struct}), "outer.input_ids"
        rows = [None if index % 17 == 0 else row for index, row in enumerate(rows)]
    else:
        table, column = pa.table([array], schema=pa.schema([field])), "input_ids"
    path = tmp_path / "data.parquet"
    pq.write_table(table, path, row_group_size=2_500)
    check(path, rows, column)
    assert not decoded


def test_polars_and_duckdb(tmp_path: Path, decoded: list[int]) -> None:
    frame = pl.DataFrame({"input_ids": ROWS})
    frame.write_parquet(tmp_path / "polars.parquet", row_group_size=2_500)
    check(tmp_path / "polars.parquet", ROWS)
    duckdb.sql(f"copy frame to '{tmp_path / 'duckdb.parquet'}' (format parquet, row_group_size 2048)")
    check(tmp_path / "duckdb.parquet", ROWS)
    assert not decoded


@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_lists_in_lists(tmp_path: Path, decoded: list[int], compression: str, version: str) -> None:
    rows = [[row[at : at + 3] for at in range(0, len(row), 4)] for row in ROWS]
    path = tmp_path / "data.parquet"
    options: dict[str, Any] = {"compression": compression, "data_page_version": version, "data_page_size": 4_096}
    for table in (pa.table({"x": range(len(rows)), "input_ids": rows}), pl.DataFrame({"input_ids": rows}).to_arrow()):
        pq.write_table(table, path, row_group_size=2_500, **options)
        check(path, rows)
        assert lw.read_lengths(path, "input_ids.element").tolist() == [sum(map(len, row)) for row in rows]
        assert "tokens by the footers" not in str(lw.inspect(path))
    assert not decoded


def test_unusual_pages_are_decoded(tmp_path: Path, decoded: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def unusual(*_: Any, **__: Any) -> None:
        raise UnusualPageError

    monkeypatch.setattr(parquet_file, "read_chunk", unusual)
    pq.write_table(pa.table({"input_ids": ROWS}), tmp_path / "data.parquet", row_group_size=2_500)
    check(tmp_path / "data.parquet", ROWS)
    assert decoded == [0, 1, 2]


def test_the_cheapest_column_of_the_same_lengths_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    original = read_chunk

    def spy(file: Any, chunk: Any, *, enough: int | None = None) -> npt.NDArray[np.uint32]:
        if enough is None:
            read.append(chunk.size)
        return original(file, chunk, enough=enough)

    monkeypatch.setattr(parquet_file, "read_chunk", spy)
    mask = [[1] * len(row) for row in ROWS]
    # As many entries in all, but in other rows: not the same lengths.
    decoy = [[1] * len(row) for row in reversed(ROWS)]
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"input_ids": ROWS, "decoy": decoy, "mask": mask}), path, use_dictionary=["mask", "decoy"])
    check(path, ROWS)
    column = pq.read_metadata(path).row_group(0)
    assert read == [column.column(2).total_compressed_size]
    read.clear()
    check(path, decoy, "decoy")
    assert read == [column.column(1).total_compressed_size]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=30)), max_size=60),
    group=st.integers(1, 60),
    page=st.sampled_from([16, 64, 1 << 20]),
    version=st.sampled_from(["1.0", "2.0"]),
    dictionary=st.booleans(),
)
def test_any_rows(tmp_path: Path, rows: list[Any], group: int, page: int, version: str, *, dictionary: bool) -> None:
    path = tmp_path / "data.parquet"
    table = pa.table({"input_ids": pa.array(rows, pa.list_(pa.int32()))})
    pq.write_table(
        table, path, row_group_size=group, data_page_size=page, data_page_version=version, use_dictionary=dictionary
    )
    lengths = lw.read_lengths(path, nulls="zero", check="none")
    assert lengths.tolist() == [len(row or ()) for row in rows]
    assert lengths.info is not None
    assert lengths.info.nulls.tolist() == [index for index, row in enumerate(rows) if row is None]


turn = st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=5))
message = st.one_of(
    st.none(),
    st.fixed_dictionaries({"tags": st.just([("a", 1)]), "turns": st.one_of(st.none(), st.lists(turn, max_size=4))}),
)
DEEP = pa.list_(
    pa.struct(
        [("tags", pa.map_(pa.string(), pa.int8())), ("turns", pa.large_list(pa.field("element", pa.list_(pa.int32()))))]
    )
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.one_of(st.none(), st.fixed_dictionaries({"messages": st.one_of(st.none(), st.lists(message, max_size=4))})),
        max_size=30,
    ),
    group=st.integers(1, 30),
    page=st.sampled_from([16, 64, 1 << 20]),
    version=st.sampled_from(["1.0", "2.0"]),
)
def test_any_rows_of_lists_in_lists(tmp_path: Path, rows: list[Any], group: int, page: int, version: str) -> None:
    path = tmp_path / "data.parquet"
    table = pa.table({"chat": pa.array(rows, pa.struct([("messages", DEEP)]))})
    pq.write_table(table, path, row_group_size=group, data_page_size=page, data_page_version=version)
    messages = [(row or {}).get("messages") for row in rows]
    turns = [[turn for message in row or [] for turn in (message or {}).get("turns") or []] for row in messages]
    expected = {
        "chat.messages": [len(row or []) for row in messages],
        "chat.messages.turns": [len(row) for row in turns],
        "chat.messages.turns.element": [sum(len(turn or []) for turn in row) for row in turns],
    }
    for column, lengths in expected.items():
        found = lw.read_lengths(path, column, nulls="zero", check="none")
        assert found.tolist() == lengths == lw.read_lengths(table, column, nulls="zero", check="none").tolist()
        assert found.info is not None
        assert found.info.nulls.tolist() == [index for index, row in enumerate(messages) if row is None]
