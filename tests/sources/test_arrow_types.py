"""Every Arrow type that gives lengths, whole, sliced, chunked and with nulls, against Python's len."""

from __future__ import annotations

import struct
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise._core import fill_from_array, fill_from_stream
from lengthwise.sources import arrays

ROWS = [[1, 2, 3], [], [4], None, [5, 6]]
LISTS = [
    pa.list_(pa.int32()),
    pa.large_list(pa.int64()),
    pa.list_view(pa.int32()),
    pa.large_list_view(pa.uint16()),
    pa.list_(pa.list_(pa.int8())),
]
INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


def expected(rows: list[Any]) -> list[int]:
    return [0 if row is None else len(row) for row in rows]


@pytest.mark.parametrize("type_", LISTS, ids=str)
def test_lists(type_: pa.DataType) -> None:
    rows: list[Any] = ROWS
    if pa.types.is_list(type_) and pa.types.is_list(type_.value_type):
        rows = [None if row is None else [[token] for token in row] for row in ROWS]
    array = pa.array(rows, type_)
    for part in (array, array.slice(1), array.slice(1, 3), array.slice(2, 0)):
        assert lw.read_lengths(part, nulls="zero").tolist() == expected(part.to_pylist())
    chunked = pa.chunked_array([array.slice(3), array.slice(0, 0), array, array.slice(1, 1)])
    assert lw.read_lengths(chunked, nulls="zero").tolist() == expected(chunked.to_pylist())
    assert lw.read_lengths(chunked, nulls="drop").tolist() == [
        len(row) for row in chunked.to_pylist() if row is not None
    ]


def test_fixed_size_list() -> None:
    array = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int32(), 2))
    assert lw.read_lengths(array, nulls="zero").tolist() == [2, 0, 2]
    assert lw.read_lengths(array.slice(2)).tolist() == [2]


@pytest.mark.parametrize("type_", INTEGERS, ids=str)
def test_integers_keep_the_stored_type(type_: pa.DataType) -> None:
    array = pa.array([9, 3, 0, 7], type_)
    lengths = lw.read_lengths(array.slice(1))
    assert lengths.tolist() == [3, 0, 7]
    assert lengths.dtype == type_.to_pandas_dtype()
    assert lengths.__array_interface__["data"][0] == array.buffers()[1].address + array.type.byte_width
    assert lw.read_lengths(pa.chunked_array([array, array])).dtype == np.uint32


@pytest.mark.parametrize("encode", [lambda array: array.dictionary_encode(), pc.run_end_encode])
def test_encoded_integers(encode: Any) -> None:
    array = encode(pa.array([7, 7, 7, 3, 3, 9]))
    assert lw.read_lengths(array).tolist() == [7, 7, 7, 3, 3, 9]
    assert lw.read_lengths(array.slice(2, 3)).tolist() == [7, 3, 3]
    assert lw.read_lengths(pa.chunked_array([array, array.slice(4)])).tolist() == [7, 7, 7, 3, 3, 9, 3, 9]


def test_encoded_nulls() -> None:
    assert lw.read_lengths(pa.array([7, None, 7]).dictionary_encode(), nulls="zero").tolist() == [7, 0, 7]
    assert lw.read_lengths(pc.run_end_encode(pa.array([7, None])), nulls="drop").tolist() == [7]


@pytest.mark.parametrize(
    "type_",
    [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()],
    ids=str,
)
def test_bytes(type_: pa.DataType) -> None:
    array = pa.array(["aé", "", None, "b" * 20], pa.string()).cast(type_)
    assert lw.read_lengths(array, unit="bytes", nulls="zero").tolist() == [3, 0, 0, 20]
    with pytest.raises(lw.LengthwiseError, match='pass unit="bytes"'):
        lw.read_lengths(pa.table({"text": array}), "text")


def test_fields_of_structs() -> None:
    rows = [{"input_ids": [1, 2], "deep": {"n.b": 5}}, None, {"input_ids": None, "deep": None}]
    table = pa.table({"messages": rows, "a.b": [[1], [], [2]]})
    assert lw.read_lengths(table, "messages.input_ids", nulls="zero").tolist() == [2, 0, 0]
    assert lw.read_lengths(table, "messages.deep.n.b", nulls="zero").tolist() == [5, 0, 0]
    assert lw.read_lengths(table, "a.b").tolist() == [1, 0, 1]
    assert lw.read_lengths(table.slice(2), "a.b").tolist() == [1]
    with pytest.raises(lw.LengthwiseError, match=r"no column 'messages.tokens'; it has .*messages.input_ids"):
        lw.read_lengths(table, "messages.tokens")


def test_extension_types() -> None:
    class Tokens(pa.ExtensionType):  # type: ignore[misc] # pyarrow has no type hints
        def __init__(self) -> None:
            super().__init__(pa.list_(pa.int32()), "lengthwise.test.tokens")

        def __arrow_ext_serialize__(self) -> bytes:
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Tokens:
            return cls()

    array = pa.ExtensionArray.from_storage(Tokens(), pa.array([[1, 2], []], pa.list_(pa.int32())))
    assert lw.read_lengths(pa.table({"input_ids": array})).tolist() == [2, 0]


def test_several_columns() -> None:
    table = pa.table({"prompt": [[1], [2, 3], None], "answer": [[], [1], [2]]})
    names = ["prompt", "answer"]
    summed = lw.read_lengths(table.slice(0, 2), names)
    assert summed.tolist() == [1, 3]
    assert summed.dtype == np.uint32
    assert summed.column == "prompt + answer"
    stacked = lw.read_lengths(table, names, combine="stack", nulls="drop")
    assert stacked.tolist() == [[1, 0], [2, 1]]
    assert stacked.info is not None
    assert stacked.info.nulls.tolist() == [2]
    assert lw.read_lengths(table, names, nulls="zero").tolist() == [1, 3, 1]
    with pytest.raises(
        lw.LengthwiseError, match=r"column 'prompt' \+ 'answer' of pyarrow.Table is null in 1 rows \(2\)"
    ):
        lw.read_lengths(table, names)
    with pytest.raises(lw.LengthwiseError, match="names no column"):
        lw.read_lengths(table, [])


@given(
    st.lists(st.lists(st.one_of(st.none(), st.lists(st.integers(0, 9), max_size=4)), max_size=6), max_size=4),
    st.sampled_from(LISTS[:4]),
    st.integers(0, 8),
    st.integers(0, 8),
    st.sampled_from([0, arrays.ROWS_PER_CHUNK]),
)
def test_any_chunks_and_slices(
    chunks: list[list[Any]], type_: pa.DataType, start: int, length: int, rows_per_chunk: int
) -> None:
    part = pa.chunked_array([pa.array(chunk, type_) for chunk in chunks], type_).slice(start, length)
    with pytest.MonkeyPatch.context() as patch:
        # Chunk by chunk, or by pyarrow where there are many.
        patch.setattr(arrays, "ROWS_PER_CHUNK", rows_per_chunk)
        lengths = lw.read_lengths(part, nulls="zero", check="none")
    rows = part.to_pylist()
    assert lengths.tolist() == expected(rows)
    assert lengths.dtype == np.uint32
    assert lengths.info is not None
    assert lengths.info.nulls.tolist() == [index for index, row in enumerate(rows) if row is None]


def described(source: Any, **options: Any) -> tuple[Any, ...]:
    """What a read gives, says, and warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            lengths = lw.read_lengths(source, **options)
        except lw.LengthwiseError as error:
            return (str(error),)
    assert lengths.info is not None
    about = (lengths.dtype, lengths.flags.writeable, lengths.column, repr(lengths.info))
    return lengths.tolist(), *about, [(str(warning.message), warning.filename) for warning in caught]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["input_ids", "tokens", "seq_len", "other"]),
            st.sampled_from([*LISTS, pa.int32(), pa.string(), pa.list_(pa.struct([("seq_len", pa.int32())]))]),
        ),
        min_size=1,
        max_size=3,
    ),
    st.integers(0, 70),
    st.sampled_from([0, 1, 2, 3, None]),
    st.sampled_from(["table", "batch", "column", "chunks"]),
    st.sampled_from([0, 1]),
)
def test_the_short_way_is_the_long_one(
    columns: list[tuple[str, pa.DataType]], rows: int, values: int | None, shape: str, nulls: int
) -> None:
    if values is not None:
        lengths = np.random.default_rng(rows).integers(0, 1 + values, rows).tolist()
    else:
        lengths = [2] * rows
        columns = [(name, pa.list_(pa.int32(), 2) if type_ == LISTS[0] else type_) for name, type_ in columns]
    lists: list[Any] = [[None] * length for length in lengths]
    lists[:nulls] = [None] * nulls
    counts = [None if row is None else len(row) for row in lists]
    texts = [None if row is None else "x" * len(row) for row in lists]
    plain = {pa.int32(): counts, pa.string(): texts}
    made = [pa.array(plain.get(type_, lists), type_) for _, type_ in columns]
    table = pa.Table.from_arrays(made, names=[name for name, _ in columns])
    source: Any = {
        "table": table,
        "batch": pa.RecordBatch.from_arrays(made, names=table.column_names),
        "column": made[0],
        "chunks": pa.chunked_array([made[0].slice(0, 9), made[0].slice(9)]),
    }[shape]
    for column in (None, columns[0][0], "missing"):
        for check in ("sample", "none"):
            # With progress, there is no short way.
            long = described(source, column=column, check=check, progress=lambda *_: None)
            assert described(source, column=column, check=check) == long


@given(
    st.lists(st.lists(st.one_of(st.none(), st.integers(-1, 120)), max_size=6), max_size=4),
    st.sampled_from(INTEGERS),
    st.integers(0, 8),
    st.integers(0, 8),
)
def test_any_integers(chunks: list[list[Any]], type_: pa.DataType, start: int, length: int) -> None:
    if pa.types.is_unsigned_integer(type_):
        chunks = [[value and abs(value) for value in chunk] for chunk in chunks]
    part = pa.chunked_array([pa.array(chunk, type_) for chunk in chunks], type_).slice(start, length)
    rows = [value or 0 for value in part.to_pylist()]
    if -1 in rows:
        with pytest.raises(lw.LengthwiseError, match=f"row {rows.index(-1)} of .* has length -1"):
            lw.read_lengths(part, nulls="zero")
    else:
        assert lw.read_lengths(part, nulls="zero", check="none").tolist() == rows


@pytest.mark.parametrize("value", [2**31, 2**32 + 1, 2**63 - 1, 2**64 - 1])
@pytest.mark.parametrize("chunks", [1, 2])
def test_integers_that_are_too_large(value: int, chunks: int) -> None:
    part = pa.chunked_array([[1], [value]][-chunks:], pa.uint64())
    with pytest.raises(lw.LengthwiseError, match=f"row {chunks - 1} of .* has length {value}, more than the largest"):
        lw.read_lengths(part)


#: Types of lists, by their names in Arrow's C interface.
FORMATS = {
    "+l": pa.list_(pa.int32()),
    "+L": pa.large_list(pa.int32()),
    "+vl": pa.list_view(pa.int32()),
    "+vL": pa.large_list_view(pa.int32()),
    "+w:2": pa.list_(pa.int32(), 2),
}


@pytest.mark.parametrize("format_", FORMATS)
def test_streams_are_read_once_and_as_announced(format_: str) -> None:
    column = pa.chunked_array([[[1, 2], None], [], [[3, 4]]], FORMATS[format_])
    out = np.full(3, 9, np.uint32)
    stream = column.__arrow_c_stream__()
    nulls, *bits = fill_from_stream(out, stream, format_)
    assert nulls is not None
    assert nulls.tolist() == [1]
    assert out.tolist() == [2, 0, 2]
    # Under a null is nothing, but a list of one size has that.
    assert bits == ([2, 2] if format_ == "+w:2" else [2, 0])
    with pytest.raises(lw.LengthwiseError, match="has been read already"):
        fill_from_stream(out, stream, format_)
    with pytest.raises(lw.LengthwiseError, match="more rows than the 2 known"):
        fill_from_stream(out[:2], column.__arrow_c_stream__(), format_)
    with pytest.raises(lw.LengthwiseError, match="has 3 rows, but 4 were announced"):
        fill_from_stream(np.empty(4, np.uint32), column.__arrow_c_stream__(), format_)
    with pytest.raises(lw.LengthwiseError, match="not of such lists"):
        fill_from_stream(out, pa.chunked_array([[1]], pa.int32()).__arrow_c_stream__(), format_)
    schema, _ = column.chunk(0).__arrow_c_array__()
    with pytest.raises(ValueError, match="incorrect name"):
        fill_from_stream(out, schema, format_)


@pytest.mark.parametrize("format_", FORMATS)
def test_arrays_are_read_as_announced(format_: str) -> None:
    array = pa.array([[1, 2], [3, 4], [5, 6]], FORMATS[format_])
    out = np.full(3, 9, np.uint32)
    assert fill_from_array(out, array, format_) == (None, 2, 2)
    assert out.tolist() == [2, 2, 2]
    assert fill_from_array(out[:0], array[:0], format_)[0] is None
    with pytest.raises(lw.LengthwiseError, match="out has 2 elements for 3 lists"):
        fill_from_array(out[:2], array, format_)
    with pytest.raises(lw.LengthwiseError, match="not of such lists"):
        fill_from_array(out, array.flatten(), format_)
    with pytest.raises(AttributeError, match="_export_to_c"):
        fill_from_array(out, [[1]], format_)


@pytest.mark.parametrize("format_", ["", "+", "i", "+s", "+w:", "+w:-1", "+w:2147483648", "+w:99999999999", "+vl "])
def test_names_that_are_no_lists(format_: str) -> None:
    with pytest.raises(lw.LengthwiseError, match="no type of lists"):
        fill_from_array(np.empty(1, np.uint32), pa.array([[1]]), format_)


@given(
    st.sampled_from(list(FORMATS.values())),
    st.lists(st.integers(0, 5_000), max_size=3),
    st.integers(0, 70),
    st.sampled_from([0.0, 0.01, 0.5, 1.0]),
    st.integers(0, 3),
)
@settings(max_examples=60)
def test_nulls_among_many_rows(type_: pa.DataType, sizes: list[int], start: int, share: float, seed: int) -> None:
    generator = np.random.default_rng(seed)
    lengths = generator.integers(0, 4, sum(sizes)) if not pa.types.is_fixed_size_list(type_) else [2] * sum(sizes)
    missing = generator.random(sum(sizes)) < share
    rows = [None if gone else [0] * length for length, gone in zip(lengths, missing, strict=True)]
    array, ends = pa.array(rows, type_), np.cumsum([0, *sizes])
    chunks = [array.slice(first, size) for first, size in zip(ends, sizes, strict=False)]
    part = pa.chunked_array(chunks, type_).slice(start)
    for source in (part, array.slice(start)):
        found = lw.read_lengths(source, nulls="zero", check="none")
        assert found.tolist() == expected(rows[start:])
        assert found.info is not None
        assert np.array_equal(found.info.nulls, np.flatnonzero(missing[start:]))


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("wrong", [[0, 2, 1, 2], [0, 2, 3, 99], [-1, 0, 1, 2], [0, 2**30, 2**31 - 1, 3]])
def test_offsets_that_are_wrong(wrong: list[int], large: bool) -> None:  # noqa: FBT001 - a parameter of the test
    offsets = np.arange(4, dtype=np.int64 if large else np.int32)
    type_ = pa.large_list(pa.int32()) if large else pa.list_(pa.int32())
    values = pa.array([1, 2, 3], pa.int32())
    array = pa.Array.from_buffers(type_, 3, [None, pa.py_buffer(offsets)], children=[values])
    assert lw.read_lengths(array).tolist() == [1, 1, 1]
    sources = array, pa.table({"input_ids": array}), pa.chunked_array([array, array])
    # pyarrow looks when it makes them; the memory may change later.
    offsets[:] = wrong
    for source in sources:
        (message,) = described(source)
        assert "cannot be" in message
        assert described(source, progress=lambda *_: None) == (message,)


@pytest.mark.parametrize("type_", [FORMATS["+vl"], FORMATS["+vL"]], ids=str)
def test_sizes_that_are_wrong(type_: pa.DataType) -> None:
    width = np.int32 if type_ == FORMATS["+vl"] else np.int64
    offsets, sizes, values = np.arange(3, dtype=width), np.array([1, 2, 0], width), pa.array([1, 2, 3], pa.int32())
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(sizes)]
    array = pa.Array.from_buffers(type_, 3, buffers, children=[values])
    for source in (array, pa.chunked_array([array, array]), pa.table({"input_ids": array})):
        assert lw.read_lengths(source)[:3].tolist() == [1, 2, 0]
        sizes[2] = -1
        (message,) = described(source)
        assert "row 2 of" in message
        assert described(source, progress=lambda *_: None) == (message,)
        sizes[2] = 0


@pytest.mark.parametrize("format_", FORMATS)
def test_buffers_that_are_too_small(format_: str) -> None:
    rows = [[1, 2], None, [3, 4]] * 30
    batch = pa.record_batch({"input_ids": pa.array(rows, FORMATS[format_])})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content = sink.getvalue().to_pybytes()
    lying = 0
    for size in {buffer.size for buffer in batch.column(0).buffers() if buffer}:
        at = content.index(struct.pack("<q", size), content.index(b"input_ids"))
        damaged = bytearray(content)
        damaged[at : at + 8] = struct.pack("<q", size // 2)
        for chunks in (1, 2):
            table = pa.ipc.open_stream(bytes(damaged)).read_all()
            (message, *_) = described(pa.concat_tables([table] * chunks), nulls="zero")
            lying += "cannot be read: " in message and "too small" in message
    assert lying >= 2


def test_offsets_at_odd_addresses() -> None:
    stored = np.zeros(17, np.uint8)
    stored[1:] = np.array([0, 2, 3, 3], np.int32).view(np.uint8)
    buffers = [None, pa.py_buffer(stored).slice(1)]
    array = pa.Array.from_buffers(pa.list_(pa.int32()), 3, buffers, children=[pa.array([1, 2, 3], pa.int32())])
    assert lw.read_lengths(array).tolist() == [2, 1, 0]


def test_what_is_under_a_null_is_left_alone() -> None:
    stored = np.array([3, -5, 2], np.int64)
    array = pa.Array.from_buffers(pa.int64(), 3, [pa.py_buffer(b"\x05"), pa.py_buffer(stored)])
    assert lw.read_lengths(array, nulls="zero").tolist() == [3, 0, 2]
    assert stored.tolist() == [3, -5, 2]


def test_offsets_that_fall_are_refused() -> None:
    falling = pa.py_buffer(np.array([0, 2, 1, 2], np.int32))
    array = pa.Array.from_buffers(pa.list_(pa.int32()), 3, [None, falling], children=[pa.array([1, 2], pa.int32())])
    for part in (array, pa.chunked_array([array.slice(0, 1), array.slice(1)]), array.cast(pa.large_list(pa.int32()))):
        with pytest.raises(lw.LengthwiseError, match=r"row 1 of .*Array has length -1"):
            lw.read_lengths(part)
