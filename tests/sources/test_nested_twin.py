"""Random types, lists and structs in one another, against a naive twin: in memory, and written as Arrow and Parquet."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lengthwise as lw

LEAVES: list[pa.DataType] = [pa.int32(), pa.uint8(), pa.string(), pa.bool_()]


def lists(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    items = st.builds(pa.field, st.just("item"), inner, st.booleans())
    fields = st.lists(st.sampled_from(["a", "b.c", "a.b"]), min_size=1, max_size=2, unique=True).flatmap(
        lambda names: st.tuples(*(st.builds(pa.field, st.just(name), inner) for name in names))
    )
    return st.one_of(st.builds(pa.list_, items), st.builds(pa.large_list, items), st.builds(pa.struct, fields))


TYPES = st.recursive(st.sampled_from(LEAVES), lists, max_leaves=4)


def is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def values(type_: pa.DataType, *, nullable: bool = True) -> st.SearchStrategy[Any]:
    found: st.SearchStrategy[Any]
    if is_list(type_):
        found = st.lists(values(type_.value_type, nullable=type_.value_field.nullable), max_size=3)
    elif pa.types.is_struct(type_):
        found = st.fixed_dictionaries({field.name: values(field.type) for field in type_})
    elif pa.types.is_string(type_):
        found = st.sampled_from(["", "é", "abc"])
    else:
        found = st.booleans() if pa.types.is_boolean(type_) else st.integers(0, 9)
    return st.one_of(st.none(), found) if nullable else found


def twin(value: Any, type_: pa.DataType, steps: tuple[str, ...]) -> int | None:
    """The length of the field that the steps lead to in a value; summed up over lists."""
    if value is None:
        return None
    if is_list(type_) and steps:
        inner = type_.value_type
        below = steps[1:] if is_list(inner) else steps
        return sum(twin(item, inner, below) or 0 for item in value)
    if steps:
        return twin(value[steps[0]], type_.field(steps[0]).type, steps[1:])
    return len(value) if is_list(type_) else len(value.encode()) if isinstance(value, str) else value


def fields(type_: pa.DataType, steps: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], pa.DataType]]:
    """The fields inside of a type: the names that lead to them, and their types."""
    children: list[pa.Field] = []
    if is_list(type_):
        value = type_.value_field
        children = [value] if is_list(value.type) else list(value.type) if pa.types.is_struct(value.type) else []
    elif pa.types.is_struct(type_):
        children = list(type_)
    below = [found for child in children for found in fields(child.type, (*steps, child.name))]
    return [(steps, type_), *below]


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_field_of_every_type(data: st.DataObject) -> None:
    type_ = data.draw(TYPES)
    rows = data.draw(st.lists(values(type_), min_size=1, max_size=6))
    table = pa.table({"x": pa.array(rows, type_)})
    page, groups = data.draw(st.sampled_from([16, 1 << 20])), data.draw(st.sampled_from([1, 2, 100]))
    with TemporaryDirectory() as folder:
        arrow, parquet = Path(folder) / "a.arrow", Path(folder) / "a.parquet"
        with pa.ipc.new_stream(arrow, table.schema) as sink:
            sink.write_table(table, max_chunksize=groups)
        sources: list[Any] = [table, pa.concat_tables([table.slice(0, 2), table.slice(2)]), arrow]
        pq.write_table(
            table,
            parquet,
            data_page_size=page,
            row_group_size=groups,
            data_page_version=data.draw(st.sampled_from(["1.0", "2.0"])),
            use_compliant_nested_type=data.draw(st.booleans()),
        )
        for source in [*sources, parquet]:
            stored = pq.read_schema(source).field("x").type if source is parquet else type_
            for steps, found in fields(stored):
                if not pa.types.is_struct(found) and not pa.types.is_boolean(found):
                    check(source, ".".join(("x", *steps)), found, [twin(row, stored, steps) for row in rows])


def check(source: Any, path: str, type_: pa.DataType, expected: list[int | None]) -> None:
    try:
        lengths = lw.read_lengths(
            source, path, nulls="zero", check="none", unit="bytes" if pa.types.is_string(type_) else "tokens"
        )
    except lw.LengthwiseError as error:
        if "columns called" not in str(error):
            raise
        return  # "a.b" may be two fields
    assert lengths.info is not None
    assert lengths.tolist() == [size or 0 for size in expected], path
    assert lengths.info.nulls.tolist() == [row for row, size in enumerate(expected) if size is None]


@pytest.mark.parametrize("compliant", [True, False])
def test_numbers_in_lists_in_lists(tmp_path: Path, compliant: bool) -> None:  # noqa: FBT001 - as the writer has it
    turns = [[[{"n": 1, "role": "x"}, {"n": 2, "role": "y"}], []], [], [[{"n": 3, "role": "z"}]]]
    pq.write_table(pa.table({"turns": turns}), tmp_path / "a.parquet", use_compliant_nested_type=compliant)
    name = "element" if compliant else "item"
    assert lw.read_lengths(tmp_path / "a.parquet", f"turns.{name}.n").tolist() == [3, 0, 3]
    assert lw.read_lengths(tmp_path / "a.parquet", f"turns.{name}.role", unit="bytes").tolist() == [2, 0, 1]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_an_empty_list_is_not_one_of_one_token(tmp_path: Path, version: str) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"input_ids": pa.array([[1 << 40], [1 << 50]]), "other": pa.array([[], []], pa.list_(pa.bool_()))})
    pq.write_table(table, path, row_group_size=1, data_page_version=version)
    assert lw.read_lengths(path).tolist() == [1, 1]
    # Rows that are longer than a page, in an order of their own.
    sizes = [700, 3, 900, 5]
    ids = [list(range(size)) for size in sizes]
    table = pa.table({"input_ids": ids, "other": [[True] * size for size in (700, 5, 900, 3)]})
    pq.write_table(table, path, data_page_size=64, data_page_version=version, use_dictionary=False)
    assert lw.read_lengths(path).tolist() == sizes
