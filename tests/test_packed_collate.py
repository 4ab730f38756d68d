"""The packing collator: bit for bit what transformers and TRL make, a naive twin for the rest, bad packs named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise import LengthwiseError, collate
from lengthwise.collate import EMIT, QUANTITIES
from lengthwise.torch import PackedCollator

Rows = list[dict[str, Any]]


@st.composite
def packs(draw: st.DrawFn, *, shortest: int = 0) -> Rows:
    lengths = draw(st.lists(st.integers(shortest, 9), min_size=1, max_size=8).filter(any))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    with_labels = draw(st.booleans())
    rows: Rows = []
    for n in lengths:
        row = {"input_ids": rng.integers(1, 50_000, n).tolist()}
        if with_labels:
            row["labels"] = rng.integers(-100, 50_000, n).tolist()
        rows.append(row)
    return rows


def table_of(rows: Rows) -> pa.Table:
    return pa.table({name: pa.array([row[name] for row in rows], pa.list_(pa.int32())) for name in rows[0]})


def assert_identical(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert set(ours) == set(theirs)
    for name, value in theirs.items():
        assert type(ours[name]) is type(value), name
        if isinstance(value, torch.Tensor):
            assert ours[name].dtype == value.dtype, name
            assert ours[name].shape == value.shape, name
            assert torch.equal(ours[name], value), name
        else:
            assert ours[name] == value, name


@settings(max_examples=60, deadline=None)
@given(rows=packs(), start=st.sampled_from([0, 2]))
def test_bit_for_bit_the_flattening_collator_of_transformers(rows: Rows, start: int) -> None:
    from transformers import DataCollatorWithFlattening

    flattening: Any = DataCollatorWithFlattening
    theirs = flattening(return_flash_attn_kwargs=True, return_seq_idx=True, position_ids_start=start)(rows)
    ours = PackedCollator(position_start=start)
    assert_identical(ours(rows), theirs)
    assert_identical(ours(table_of(rows)), theirs)
    plain = flattening()(rows)
    assert_identical(PackedCollator(emit=["position_ids"])(rows), plain)


@settings(max_examples=60, deadline=None)
@given(rows=packs(shortest=1))
def test_bit_for_bit_the_padding_free_collator_of_trl(rows: Rows) -> None:
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

    theirs = DataCollatorForLanguageModeling(pad_token_id=0, padding_free=True)(rows)
    assert_identical(PackedCollator()(rows), theirs)


def naive(rows: Rows, multiple: int, capacity: int | None) -> dict[str, list[int]]:
    """Every quantity, slot by slot."""
    out: dict[str, list[int]] = {name: [] for name in ("ids", "labels", "position", "seq", "document")}
    slots, real = [0], [0]
    samples = [row["input_ids"] for row in rows if row["input_ids"]]
    for number, ids in enumerate(samples):
        width = -(-len(ids) // multiple) * multiple
        gap = width - len(ids)
        out["ids"] += ids + [7] * gap
        out["labels"] += [-100] + ids[1:] + [-100] * gap
        out["position"] += range(width)
        out["seq"] += [number] * width
        out["document"] += [number] * len(ids) + [-1] * gap
        slots.append(slots[-1] + width)
        real.append(real[-1] + len(ids))
    tail = 0 if capacity is None else capacity - slots[-1]
    if tail:
        out["ids"] += [7] * tail
        out["labels"] += [-100] * tail
        out["position"] += range(tail)
        out["seq"] += [len(samples)] * tail
        out["document"] += [-1] * tail
        slots.append(slots[-1] + tail)
        real.append(real[-1] + tail)
    return out | {"slots": slots, "real": real}


@settings(max_examples=100, deadline=None)
@given(rows=packs(), multiple=st.sampled_from([1, 2, 4]), room=st.one_of(st.none(), st.integers(0, 9)))
def test_every_quantity_equals_its_naive_twin(rows: Rows, multiple: int, room: int | None) -> None:
    rows = [{"input_ids": row["input_ids"]} for row in rows]
    used = sum(-(-len(row["input_ids"]) // multiple) * multiple for row in rows)
    capacity = None if room is None else used + room
    made = collate.PackedCollator(
        pad=7, emit=list(QUANTITIES), multiple_of=multiple, capacity=capacity, batch_dim=False
    )(rows)
    want = naive(rows, multiple, capacity)
    longest = int(np.diff(want["slots"]).max())
    expected: dict[str, tuple[list[int], str]] = {
        "input_ids": (want["ids"], "int64"),
        "labels": (want["labels"], "int64"),
        "position_ids": (want["position"], "int64"),
        "seq_idx": (want["seq"], "int32"),
        "document_ids": (want["document"], "int32"),
        "seq_lens": ([len(row["input_ids"]) for row in rows if row["input_ids"]], "int64"),
        "shift_labels": ([*want["labels"][1:], -100], "int64"),
    }
    expected |= dict.fromkeys(("cu_seqlens", "cu_seq_lens_q", "cu_seq_lens_k"), (want["slots"], "int32"))
    expected |= dict.fromkeys(("cu_seqlens_q_padded", "cu_seqlens_kv_padded"), (want["slots"], "int32"))
    expected |= dict.fromkeys(("cu_seqlens_real", "cu_seqlens_q", "cu_seqlens_kv"), (want["real"], "int32"))
    for name, (values, dtype) in expected.items():
        assert made.pop(name).tolist() == values, name
        assert made.keys().isdisjoint({name})
        assert np.dtype(dtype) is not None
    assert {type(value) for value in made.values()} == {int}
    assert set(made.values()) == {longest}


def test_the_published_example_of_padded_offsets() -> None:
    """[a a a _ b b _ _ c c c c], aligned to 4, in the offsets that Transformer Engine documents."""
    rows = [{"input_ids": [1, 1, 1]}, {"input_ids": [2, 2]}, {"input_ids": [3, 3, 3, 3]}]
    batch = PackedCollator(emit="transformer_engine", multiple_of=4)(rows)
    assert batch["cu_seqlens_q"].tolist() == [0, 3, 5, 9]
    assert batch["cu_seqlens_q_padded"].tolist() == [0, 4, 8, 12]
    assert (batch["max_seqlen_q"], type(batch["max_seqlen_q"])) == (4, int)
    assert batch["input_ids"].tolist() == [[1, 1, 1, 0, 2, 2, 0, 0, 3, 3, 3, 3]]


def test_fixed_offsets_keep_their_shape() -> None:
    collate_fn = PackedCollator(emit="varlen", capacity=16, max_samples=4)
    shapes = set()
    for lengths in ([3], [4, 4, 4, 4], [16], [1, 2, 3]):
        batch = collate_fn([{"input_ids": [1] * n} for n in lengths])
        shapes.add((batch["cu_seqlens"].shape, batch["input_ids"].shape))
        assert batch["cu_seqlens"][-1] == 16
        assert (batch["cu_seqlens"].diff() >= 0).all()
    assert shapes == {((6,), (1, 16))}


def test_pieces_of_a_split_sample_continue_or_restart() -> None:
    rows = [{"input_ids": [5, 6], "first": 4}, {"input_ids": [7, 8, 9], "first": 0}]
    assert PackedCollator(position_start="first")(rows)["position_ids"].tolist() == [[4, 5, 0, 1, 2]]
    assert PackedCollator()(rows)["position_ids"].tolist() == [[0, 1, 0, 1, 2]]
    with pytest.raises(LengthwiseError, match="position_start is 'begin', but the rows have no such field"):
        PackedCollator(position_start="begin")(rows)


def test_the_loss_mask_becomes_labels() -> None:
    batch = PackedCollator()(
        [{"input_ids": [1, 2, 3], "loss_mask": [1, 0, 1]}, {"input_ids": [4, 5], "loss_mask": [1, 1]}]
    )
    assert batch["labels"].tolist() == [[-100, -100, 3, -100, 5]]
    assert batch["loss_mask"].tolist() == [[1, 0, 1, 1, 1]]


def test_fields_are_chosen_and_typed() -> None:
    rows = [
        {"input_ids": [1, 2], "w": [0.5, 1.0], "id": 7, "text": "a"},
        {"input_ids": [3], "w": [2.0], "id": 8, "text": "b"},
    ]
    pad = {"input_ids": 9, "w": -1.0, "id": 0}
    batch = collate.PackedCollator(pad, emit="flex", capacity=4, dtypes={"w": "float32"}, labels=False)(rows)
    assert set(batch) == {"input_ids", "w", "id", "position_ids", "document_ids"}
    assert batch["w"].dtype == np.float32
    assert batch["w"].tolist() == [[0.5, 1.0, 2.0, -1.0]]
    assert batch["input_ids"].tolist() == [[1, 2, 3, 9]]
    assert batch["id"].tolist() == [7, 8]
    named = collate.PackedCollator({"input_ids": 0}, emit="flex")([{"input_ids": [1, 2], "loss_mask": [1, 0]}])
    assert named["labels"].tolist() == [[-100, -100]]
    assert set(named) == {"input_ids", "labels", "position_ids", "document_ids"}


def test_two_names_of_one_array_are_one_tensor() -> None:
    batch = PackedCollator()([{"input_ids": [1, 2]}])
    assert batch["cu_seq_lens_q"] is batch["cu_seq_lens_k"]


BAD: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no rows": ([], {}, "rows is empty"),
    "no tokens": ([{"a": []}, {"a": []}], {}, "rows has 2 rows, but all are empty"),
    "beyond capacity": (
        [{"a": [1] * 5}, {"a": [1] * 3}, {"a": [1] * 4}],
        {"capacity": 9},
        r"rows occupy 12 slots, but a pack holds capacity=9; rows\[2\] of 4 tokens",
    ),
    "capacity smaller than a row": ([{"a": [1] * 5}], {"capacity": 4}, r"capacity=4; rows\[0\] of 5 tokens"),
    "beyond capacity when aligned": ([{"a": [1] * 5}], {"capacity": 7, "multiple_of": 8}, "occupy 8 slots"),
    "too many samples": ([{"a": [1]}] * 3, {"max_samples": 2}, "rows has 3 samples with tokens, but max_samples is 2"),
    "padding inside": (
        [{"a": [1, 2], "attention_mask": [1, 1]}, {"a": [1, 2], "attention_mask": [1, 0]}],
        {},
        r"rows\[1\] has padding",
    ),
    "uneven fields": ([{"a": [1], "b": [1, 2]}], {}, r"rows\[0\] has 1 values in 'a', but 2 in 'b'"),
    "overflow": ([{"a": [1, 300]}], {"dtypes": {"a": "uint8"}}, r"rows\[0\]\['a'\]\[1\] is 300, but uint8"),
    "overflow when aligned": ([{"a": [300]}], {"dtypes": {"a": "uint8"}, "multiple_of": 2}, "is 300, but uint8"),
    "no labels to shift": ([{"a": [1]}], {"emit": ["shift_labels"]}, "has no labels to shift"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_packs_are_named(case: str) -> None:
    rows, options, message = BAD[case]
    with pytest.raises(LengthwiseError, match=message):
        PackedCollator(**options)(rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"emit": "flash"}, "emit is 'flash'"),
        ({"emit": ["cu_seqlen"]}, "emit names 'cu_seqlen'"),
        ({"capacity": 0}, "capacity is 0"),
        ({"multiple_of": None}, "multiple_of is None"),
        ({"max_samples": 2.5}, "max_samples is 2.5"),
        ({"capacity": True}, "capacity is True"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(LengthwiseError, match=message):
        PackedCollator(**options)


def test_every_preset_names_known_quantities() -> None:
    assert {name for names in EMIT.values() for name in names} <= set(QUANTITIES)


def test_reuse_writes_packs_into_the_same_memory() -> None:
    rows: Rows = [{"input_ids": [1, 2, 3]}, {"input_ids": [4, 5]}]
    collator = PackedCollator(reuse=True)
    first = collator(rows)
    before = {name: first[name].data_ptr() for name in ("input_ids", "labels")}
    second = collator(rows[1:])
    assert second["input_ids"].tolist() == [[4, 5]]
    assert {name: second[name].data_ptr() for name in before} == before
