"""What nobody meant is asked about, by name: columns that are records, typos, odd samples, datasets of datasets."""

from __future__ import annotations

import array
import json
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

import datasets
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import lengthwise as lw

if TYPE_CHECKING:
    from pathlib import Path

CHAT = [[{"role": "user", "content": "hi"}] * turns for turns in (1, 2, 3)]
TABLE = pa.table({"input_ids": [[1, 2, 3], [], [4, 5]], "Length": [3, 0, 2]})


@pytest.mark.parametrize(
    "source",
    [
        pa.table({"messages": CHAT}),
        pa.table({"messages": CHAT, "id": [1, 2, 3]}),
        datasets.Dataset.from_dict({"messages": CHAT, "id": ["a", "b", "c"]}),
        pl.DataFrame({"messages": CHAT}).lazy(),
        pd.DataFrame({"messages": CHAT, "x": 1.5}),
        [{"messages": turns} for turns in CHAT],
        {"messages": CHAT},
        pa.table({"turns": [CHAT]}),
        pa.table({"words": [["a", "b"], ["c"]], "id": ["x", "y"]}),
    ],
)
def test_records_and_words_are_not_guessed_to_be_tokens(source: Any) -> None:
    with pytest.raises(lw.LengthwiseError, match=r"no column that is known to hold lengths; .*; name one with column="):
        lw.read_lengths(source)
    assert lw.inspect(source).column is None


def test_records_in_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text("".join(json.dumps({"messages": turns}) + "\n" for turns in CHAT))
    with pytest.raises(lw.LengthwiseError, match="name one with column"):
        lw.read_lengths(path)
    assert lw.read_lengths(path, "messages").tolist() == [1, 2, 3]
    assert lw.read_lengths(path, "messages.content", unit="bytes").tolist() == [2, 4, 6]


def test_words_are_tokens_where_that_is_said() -> None:
    words = [["a", "b"], ["c"]]
    for source in (words, pa.array(words), pa.table({"tokens": words, "id": [1, 2]}), pa.table({"words": words})):
        assert lw.read_lengths(source).tolist() == [2, 1]


@pytest.mark.parametrize(
    ("source", "column", "said"),
    [
        (TABLE, "input_id", r"no column 'input_id'; it has input_ids .* did you mean 'input_ids'\?"),
        (TABLE, "length", r"did you mean 'Length'\?"),
        (TABLE, "LENGHT", r"did you mean 'Length'\?"),
        (TABLE, "x", r"it has input_ids \(list<item: int64>\), Length \(int64\)$"),
        (pa.table({"messages": CHAT}), "message.content", r"did you mean 'messages.content'\?"),
        ([1, 2], "length", r"list has no column names, so no 'length'; leave column out"),
        (TABLE, 3, r"column is 3, but must be a name or several; .* has input_ids"),
        (TABLE, b"length", r"column is b'length', but must be a name"),
        (TABLE, ["input_ids", 3], r"column is \['input_ids', 3\], but must be a name"),
        (TABLE, ["Length", "Length"], r"column names one twice: Length, Length"),
        (TABLE, [], r"column names no column"),
        (pa.table([[1], [2]], names=["length", "length"]), None, r"has 2 columns called 'length'; rename them"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), None, r"pandas.DataFrame has several columns of one name"),
    ],
)
def test_columns_that_are_not_there(source: Any, column: Any, said: str) -> None:
    with pytest.raises(lw.LengthwiseError, match=said):
        lw.read_lengths(source, column)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (np.ma.MaskedArray([3, 9, 2], mask=[False, True, False]), [3, 0, 2]),
        ([torch.tensor(3), torch.tensor(2)], [3, 2]),
        ([np.array(3), None, np.int32(2)], [3, 0, 2]),
        (deque([3, 2]), [3, 2]),
        (deque([[1, 2], None]), [2, 0]),
        ({"length": deque([3, 2])}, [3, 2]),
        (array.array("i", [3, 2]), [3, 2]),
        (memoryview(bytes([0, 1, 2])), [0, 1, 2]),
        (range(3), [0, 1, 2]),
        (iter([3, 2]), [3, 2]),
        ({"a": [1], "b": [1, 2]}.values(), [1, 2]),
        (pd.Series([3, 2], index=[7, 9]), [3, 2]),
        (pd.Series([3, None], dtype="Int64"), [3, 0]),
        (pd.Series([3, 2, 3], dtype="category"), [3, 2, 3]),
        (pd.Index([3, 2]), [3, 2]),
        (pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int32, 2)), [2, 2]),
        (torch.arange(10)[::4], [0, 4, 8]),
        (datasets.Dataset.from_dict({"n": [3, 2]})["n"], [3, 2]),
    ],
)
def test_odd_containers(source: Any, expected: list[int]) -> None:
    assert lw.read_lengths(source, nulls="zero").tolist() == expected


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (["a", "bb"], r'list holds list of str, not tokens; tokenise it first, or pass unit="bytes"'),
        ({"text": ["a"]}, r'it has text \(list of str\); tokenise it first, or pass unit="bytes"'),
        (pd.Series(["a"]), r"pandas.Series holds .*string.*, not tokens; tokenise it first"),
        (pl.Series([True]), r"polars.Series holds bool; lengths are integers or the sizes of lists"),
        (pa.table({"length": [1.5]}), r"it has length \(double\); lengths are integers or the sizes of lists"),
        (CHAT, r"list holds list of list of dict, records rather than tokens"),
        ([{"input_ids": [1]}, [1]], r"row 1 has no 'input_ids', which row 0 has"),
        ([[1], np.array(3)], r"list\[1\] is array\(3\), which has no length"),
        ([True, False], r"list\[0\] is True; a length is an integer"),
        ([torch.tensor(1.5)], r"list\[0\] is 1.5; a length is an integer"),
        (np.ma.MaskedArray([3], mask=[True]), r"numpy.MaskedArray is null in 1 rows \(0\)"),
        (torch.zeros(3, dtype=torch.bfloat16), r"torch.Tensor cannot be read: .*; pass a dense tensor of integers"),
        ({"input_ids": torch.zeros(3, 4)}, r"it has input_ids \(float32\[3, 4\], padded\)"),
        ([TABLE, TABLE], r"list\[0\] is pyarrow.Table, a dataset of its own; read one by one"),
        ([pd.DataFrame({"n": [1]})] * 2, r"a dataset of its own; read one by one"),
        ((datasets.Dataset(TABLE),), r"tuple\[0\] is Dataset\({, a dataset of its own"),
        (iter(TABLE.to_batches()), r"list_iterator\[0\] is pyarrow.RecordBatch, a dataset of its own"),
        (
            torch.utils.data.DataLoader(datasets.Dataset(TABLE)),
            r"torch.DataLoader yields batches, not samples; pass its dataset",
        ),
        (datasets.DatasetDict(), r"DatasetDict holds the splits \[\]$"),
        (pa.scalar([1, 2]), r"ListScalar\[0\] is <pyarrow.Int64Scalar: 1>; a length is an integer"),
        (Counter([1, 1]), r"Counter has no column"),
        (list, r"cannot be read from builtins.type"),
        (duckdb.connect(), r"DuckDBPyConnection is a connection; pass what its sql\(query\)"),
    ],
)
def test_what_is_no_list_of_lengths(source: Any, said: str) -> None:
    with pytest.raises(lw.LengthwiseError, match=said):
        lw.read_lengths(source)


def test_a_lazy_frame_gives_the_column_of_that_name() -> None:
    frame = pl.DataFrame({"^x.*$": [[1], [1, 2]], "*": [[], [1]], "xy": [[1], [1]]}).lazy()
    assert lw.read_lengths(frame, "^x.*$").tolist() == [1, 2]
    assert lw.read_lengths(frame, "*").tolist() == [0, 1]


def test_names_with_dots(tmp_path: Path) -> None:
    table = pa.table({"a": ["x"], "a.b": [{"c": [1, 2], "d.e": [1]}], "f.g": [[1, 2, 3]]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as sink:
        sink.write_table(table)
    dataset = datasets.Dataset(table)
    for source in (table, tmp_path / "a.parquet", tmp_path / "a.arrow", dataset, dataset.to_iterable_dataset()):
        for column, length in (("a.b.c", 2), ("a.b.d.e", 1), ("f.g", 3)):
            assert lw.read_lengths(source, column).tolist() == [length]


def test_caches_are_kept_in_folders(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", [1, 2])
    with pytest.raises(lw.LengthwiseError, match="cache is 1, but must be True, False or a folder"):
        lw.read_lengths(tmp_path / "a.npy", cache=1)  # type: ignore[arg-type]
    with pytest.raises(lw.LengthwiseError, match=r"a.npy cannot be read: File exists; pass cache= a folder"):
        lw.read_lengths(tmp_path / "a.npy", cache=tmp_path / "a.npy")
