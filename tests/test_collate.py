"""The padding collator: equal to a naive twin from every form of rows, and clear about bad ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise import LengthwiseError
from lengthwise.collate import PaddedCollator, read_rows

Rows = list[dict[str, Any]]


@st.composite
def rows_of_tokens(draw: st.DrawFn) -> Rows:
    lengths = draw(st.lists(st.integers(0, 12), min_size=1, max_size=9))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    return [
        {
            "input_ids": rng.integers(1, 50_000, n).tolist(),
            "loss_mask": rng.integers(0, 2, n).tolist(),
            "seq_len": n,
        }
        for n in lengths
    ]


def table_of(rows: Rows, *, large: bool = False) -> pa.Table:
    kind = pa.large_list(pa.int32()) if large else pa.list_(pa.int32())
    fields = {"input_ids": kind, "loss_mask": pa.list_(pa.int8()), "seq_len": pa.int64()}
    return pa.table({name: pa.array([row[name] for row in rows], fields[name]) for name in fields})


def forms_of(rows: Rows) -> dict[str, Any]:
    """The same rows in every form that a collator takes."""
    import torch

    table = table_of(rows)
    return {
        "lists": rows,
        "table": table,
        "large lists": table_of(rows, large=True),
        "slice of a longer table": pa.concat_tables([table, table]).combine_chunks().slice(len(rows)),
        "many chunks": pa.concat_tables([table.slice(i, 1) for i in range(len(rows))]),
        "record batch": table.combine_chunks().to_batches()[0],
        "list of one-row tables": [table.slice(i, 1) for i in range(len(rows))],
        "dict of columns": table.to_pydict(),
        "numpy": [{k: np.asarray(v, np.int64) for k, v in row.items()} for row in rows],
        "tensors": [{k: torch.tensor(v, dtype=torch.int64) for k, v in row.items()} for row in rows],
        "arrow scalars": [{name: table[name][i] for name in table.column_names} for i in range(len(rows))],
    }


def naive(rows: Rows, *, left: bool, multiple: int) -> dict[str, npt.NDArray[np.int64]]:
    width = max(1, *(len(row["input_ids"]) for row in rows))  # a sample without tokens still has a row
    while width % multiple:
        width += 1
    batch: dict[str, list[Any]] = {"input_ids": [], "loss_mask": [], "attention_mask": [], "labels": [], "seq_len": []}
    for row in rows:
        ids, mask = row["input_ids"], row["loss_mask"]
        gap = width - len(ids)
        labels = [token if kept else -100 for token, kept in zip(ids, mask, strict=True)]
        columns = {
            "input_ids": (ids, 7),
            "loss_mask": (mask, 0),
            "labels": (labels, -100),
            "attention_mask": ([1] * len(ids), 0),
        }
        for name, (values, pad) in columns.items():
            batch[name].append([pad] * gap + values if left else values + [pad] * gap)
        batch["seq_len"].append(row["seq_len"])
    return {name: np.array(values, np.int64) for name, values in batch.items()}


def assert_same(batch: dict[str, Any], expected: dict[str, npt.NDArray[Any]]) -> None:
    assert set(batch) == set(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(batch[name], array, err_msg=name)
        assert batch[name].dtype == array.dtype, name


@settings(max_examples=60, deadline=None)
@given(rows=rows_of_tokens(), left=st.booleans(), multiple=st.sampled_from([1, 2, 8]))
def test_equals_the_naive_twin_from_every_form(rows: Rows, multiple: int, *, left: bool) -> None:
    collate = PaddedCollator(pad=7, side="left" if left else "right", multiple_of=multiple)
    expected = naive(rows, left=left, multiple=multiple)
    for form in forms_of(rows).values():
        assert_same(collate(form), expected)


def test_pads_to_the_plan_or_to_the_boundary() -> None:
    rows = [{"input_ids": [1, 2, 3]}, {"input_ids": [4]}]
    assert PaddedCollator()(rows, length=10)["input_ids"].shape == (2, 10)
    assert PaddedCollator(boundaries=[2, 5, 9])(rows)["input_ids"].shape == (2, 5)
    assert PaddedCollator(boundaries=[2, 3, 9])(rows)["input_ids"].shape == (2, 3)
    assert PaddedCollator(boundaries=[2, 5, 9], multiple_of=4)(rows)["input_ids"].shape == (2, 8)


def test_fields_are_chosen_by_name_and_typed() -> None:
    rows = [{"input_ids": [1, 2], "weight": [0.5, 1.5], "text": "ab"}, {"input_ids": [3], "weight": [2.5], "text": "c"}]
    pad = {"input_ids": 9, "weight": -1.0}
    batch = PaddedCollator(pad, dtypes={"input_ids": "int32"}, attention_mask=False, labels=False)(rows)
    assert set(batch) == {"input_ids", "weight"}
    assert batch["input_ids"].dtype == np.int32
    np.testing.assert_array_equal(batch["input_ids"], [[1, 2], [3, 9]])
    np.testing.assert_array_equal(batch["weight"], [[0.5, 1.5], [2.5, -1.0]])


def test_labels_and_masks_of_the_rows_are_kept() -> None:
    rows = [{"input_ids": [1, 2], "labels": [-100, 2], "attention_mask": [0, 1]}, {"input_ids": [3], "labels": [3]}]
    rows[1]["attention_mask"] = [1]
    batch = PaddedCollator()(rows)
    np.testing.assert_array_equal(batch["labels"], [[-100, 2], [3, -100]])
    np.testing.assert_array_equal(batch["attention_mask"], [[0, 1], [1, 0]])


def test_labels_of_one_number_per_row_stay_one_per_row() -> None:
    batch = PaddedCollator()([{"input_ids": [1, 2], "labels": 1}, {"input_ids": [3], "labels": 0}])
    np.testing.assert_array_equal(batch["labels"], [1, 0])


def test_reuse_writes_into_the_same_memory() -> None:
    collate = PaddedCollator(reuse=True)
    first = collate([{"input_ids": [1, 2, 3]}])["input_ids"]
    second = collate([{"input_ids": [4, 5]}])["input_ids"]
    assert np.shares_memory(first, second)
    np.testing.assert_array_equal(second, [[4, 5]])
    assert not np.shares_memory(*(PaddedCollator()([{"input_ids": [1]}])["input_ids"] for _ in range(2)))


def test_arrow_values_are_read_in_place() -> None:
    table = pa.table({"input_ids": pa.array([[1, 2], [3]], pa.list_(pa.int32()))})
    values = read_rows(table)["input_ids"].values
    assert values.ctypes.data == table["input_ids"].chunk(0).values.buffers()[1].address


BAD: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no rows": ([], {}, "rows is empty"),
    "no rows in a table": (pa.table({"input_ids": pa.array([], pa.list_(pa.int32()))}), {}, "rows is empty"),
    "missing field": ([{"input_ids": [1], "a": [1]}, {"input_ids": [1]}], {}, r"rows\[1\] has no field 'a'"),
    "missing column": (pa.table({"a": [[1]]}), {"pad": {"input_ids": 0}}, "no field 'input_ids'"),
    "uneven fields": (
        [{"a": [1], "b": [1]}, {"a": [1, 2], "b": [1, 2, 3]}],
        {},
        r"rows\[1\] has 2 values in 'a', but 3 in 'b'",
    ),
    "uneven columns": ({"a": [[1]], "b": [[1], [2]]}, {}, "different numbers of rows"),
    "longer than a boundary": ([{"a": [1]}, {"a": [1] * 9}], {"boundaries": [4, 8]}, r"rows\[1\] is 9 tokens.* is 8"),
    "text": ([{"a": "abc"}], {}, r"rows\[0\]\['a'\] holds <U3"),
    "text in Arrow": (pa.table({"a": ["x"]}), {}, "field 'a' holds string"),
    "null row": (pa.table({"a": pa.array([[1], None], pa.list_(pa.int32()))}), {}, r"rows\[1\]\['a'\] is null"),
    "null value": (
        pa.table({"a": pa.array([[1], [2, None]], pa.list_(pa.int32()))}),
        {},
        r"rows\[1\]\['a'\]\[1\] is null",
    ),
    "null in a list": ([{"a": [1, None]}], {}, r"rows\[0\]\['a'\] holds object"),
    "nested": ([{"a": [1]}, {"a": [[1, 2]]}], {}, r"rows\[1\]\['a'\] has shape \(1, 2\)"),
    "ragged inside": ([{"a": [[1], [1, 2]]}], {}, r"rows\[0\]\['a'\] cannot become an array"),
    "no list": ([{"a": 1}], {}, "no field of one list per row"),
    "not a mapping": ([[1, 2]], {}, r"rows\[0\] is list"),
    "overflow": (
        [{"a": [1]}, {"a": [3, 70_000]}],
        {"dtypes": {"a": "int16"}},
        r"rows\[1\]\['a'\]\[1\] is 70000, but int16",
    ),
    "overflow of uint64": ([{"a": np.array([2**63], np.uint64)}], {}, r"rows\[0\]\['a'\]\[0\] is 9223372036854775808"),
    "mixed signs": ([{"a": np.array([1], np.uint64)}, {"a": [1]}], {}, "is uint64 beside signed"),
    "fractions": ([{"a": [1.5]}], {"dtypes": {"a": "int64"}}, r"rows\[0\]\['a'\]\[0\] is 1.5"),
    "pad that does not fit": ([{"a": [1]}], {"pad": {"a": 300}, "dtypes": {"a": "uint8"}}, r"pad\['a'\] is 300"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_are_named(case: str) -> None:
    rows, options, message = BAD[case]
    with pytest.raises(LengthwiseError, match=message):
        PaddedCollator(**options)(rows)


def test_a_row_longer_than_the_plan_is_named() -> None:
    with pytest.raises(LengthwiseError, match=r"rows\[1\] is 3 tokens, but length is 2"):
        PaddedCollator()([{"a": [1]}, {"a": [1, 2, 3]}], length=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"side": "middle"}, "side is 'middle'"),
        ({"multiple_of": 0}, "multiple_of is 0"),
        ({"multiple_of": 1.5}, "multiple_of is 1.5"),
        ({"boundaries": []}, "boundaries is"),
        ({"boundaries": [3, 3]}, "boundaries is"),
        ({"boundaries": [1.5]}, "boundaries is"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(LengthwiseError, match=message):
        PaddedCollator(**options)
