"""Samples laid end to end in one row: the collator for `Packed` layouts and padding-free training.

Problem: attention and state-space kernels that take several sequences in one row want to know where each begins, under
a dozen names and in exact types. Method: one copy of the values per field, and a few vector operations on the lengths
for everything else (`lengthwise.collate.slots`). Cost: about 1 ns a token for each array that is returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise._arrays import MAX_LENGTH
from lengthwise._core import LengthwiseError
from lengthwise._integers import as_integer
from lengthwise.collate.arrays import Arrays
from lengthwise.collate.fields import IGNORE, cast_into, check_fits, check_pad, default_dtype, labels_of, pad_value
from lengthwise.collate.rows import Ragged, check_same_lengths, field_names, read_rows
from lengthwise.collate.slots import QUANTITIES, Slots

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

#: What to return beside the fields, by the framework that takes it.
EMIT: Final[Mapping[str, tuple[str, ...]]] = {
    "transformers": ("position_ids", "cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k", "seq_idx"),
    "varlen": ("position_ids", "cu_seqlens", "max_seqlen"),
    "transformer_engine": (
        "position_ids",
        "cu_seqlens_q",
        "cu_seqlens_kv",
        "cu_seqlens_q_padded",
        "cu_seqlens_kv_padded",
        "max_seqlen_q",
        "max_seqlen_kv",
    ),
    "flex": ("position_ids", "document_ids"),
}


@dataclass(eq=False)
class PackedCollator:
    """Lay rows end to end in one row of T tokens, and say where each begins.

    Args:
        pad: the pad token, or a mapping from field to pad value that also chooses the fields; as in `PaddedCollator`.
            Used behind samples (`multiple_of`) and behind the last one (`capacity`).
        emit: what to return beside the fields: "transformers" (the keyword arguments of Hugging Face models), "varlen"
            (flash attention and `torch.nn.attention.varlen`), "transformer_engine" (THD, Megatron), "flex"
            (FlexAttention), or names out of `lengthwise.collate.QUANTITIES`, which says what each is.
        multiple_of: every sample occupies a multiple of this many slots; give the layout's. Ring and zigzag context
            parallelism need 2 x its ranks (times those of sequence parallelism).
        capacity: T, always: what the samples leave free becomes one segment more, whose positions count up and whose
            labels are ignored. (Positions of 0 there would make each pad token a sequence of its own.) None ends the
            row with the last sample.
        max_samples: offsets always have the entries of this many samples, the last one repeated: one shape for compiled
            models and CUDA graphs. Kernels that refuse sequences without tokens cannot take it.
        position_start: the position of each sample's first token; a number for all (models such as RoBERTa begin at 2),
            or the field of one number per row that holds it (pieces of a split sample then continue, not restart).
        labels: add `labels` unless the rows bring them: a copy of `input_ids` with -100 wherever their `loss_mask` is
            0. The first label of every sample is -100 in any case: what stands before it is another sample.
        batch_dim: arrays over tokens are [1, T], as models of one batch take them; False gives [T].
        dtypes: field to dtype of the result. Integers become int64 where nothing is said, other types stay.
        reuse: write every batch into the same memory; the last batch is overwritten by the next.

    Rows without tokens are left out. No `attention_mask` is returned: one would make Hugging Face attention ignore
    where samples begin. A field of one number per row becomes [samples].

    Raises:
        LengthwiseError: arguments of the wrong kind.

    Example:
        >>> collate = PackedCollator(emit="varlen", capacity=8)
        >>> batch = collate([{"input_ids": [5, 6, 7]}, {"input_ids": [8, 9]}])
        >>> batch["input_ids"], batch["labels"]
        (array([[5, 6, 7, 8, 9, 0, 0, 0]]), array([[-100,    6,    7, -100,    9, -100, -100, -100]]))
        >>> batch["position_ids"], batch["cu_seqlens"], batch["max_seqlen"]
        (array([[0, 1, 2, 0, 1, 0, 1, 2]]), array([0, 3, 5, 8], dtype=int32), 3)
    """

    pad: float | Mapping[str, float] = 0
    _: KW_ONLY
    emit: str | Sequence[str] = "transformers"
    multiple_of: int = 1
    capacity: int | None = None
    max_samples: int | None = None
    position_start: int | str = 0
    labels: bool = True
    batch_dim: bool = True
    dtypes: Mapping[str, npt.DTypeLike] | None = None
    reuse: bool = False

    def __post_init__(self) -> None:
        for name in ("multiple_of", "capacity", "max_samples"):
            value = getattr(self, name)
            if name == "multiple_of" or value is not None:
                setattr(self, name, as_integer(value, name, 1, MAX_LENGTH))
        self.pad = dict(self.pad) if isinstance(self.pad, Mapping) else self.pad
        self._emitted = _names(self.emit)
        self._dtypes = {name: np.dtype(dtype) for name, dtype in (self.dtypes or {}).items()}
        self._arrays = Arrays(reuse=self.reuse)

    def __call__(self, rows: Any) -> dict[str, Any]:
        """Collate one pack.

        Args:
            rows: its samples: a pyarrow table, a list of mappings (lists, arrays, tensors, Arrow scalars) or a mapping
                of columns; see `lengthwise.collate.read_rows`.

        Returns:
            Field to array, [1, T] for lists (or [T]) and [samples] for numbers, `labels`, and what `emit` names.

        Raises:
            LengthwiseError: no tokens, a missing field, fields of different lengths in a row, samples beyond `capacity`
                or `max_samples`, a value that the dtype cannot hold: the message names the row and the numbers.
        """
        columns = read_rows(rows, self._needed(rows))
        offsets = check_same_lengths(columns)
        columns, offsets = _without_empty(columns, offsets)
        slots = Slots(offsets, self.multiple_of, self.capacity, self.max_samples, self._starts(columns))
        _check_mask(columns.pop("attention_mask", None), offsets)
        if self.labels and "labels" not in columns and "input_ids" in columns:
            columns["labels"] = labels_of(columns)
        batch = {name: self._row(name, column, slots) for name, column in columns.items() if self._taken(name)}
        if "labels" in batch and batch["labels"].shape[-1] == slots.total:
            batch["labels"][..., slots.starts] = IGNORE
        for name in self._emitted:
            value = QUANTITIES[name](slots, batch)
            over_tokens = isinstance(value, np.ndarray) and value.size == slots.total and not name.startswith("cu_")
            batch[name] = value.reshape(1, -1) if over_tokens and self.batch_dim else value
        return batch

    def _taken(self, name: str) -> bool:
        return not isinstance(self.pad, dict) or name in self.pad or name == "labels"

    def _needed(self, rows: Any) -> list[str] | None:
        """The fields to read: those of `pad`, and what labels, positions and checks need."""
        if not isinstance(self.pad, dict):
            return None
        present = field_names(rows)
        extra = ["attention_mask", self.position_start]
        if self.labels and "labels" not in self.pad:
            extra += ["labels", "input_ids", "loss_mask"]
        return list(self.pad) + [str(name) for name in extra if name not in self.pad and name in present]

    def _starts(self, columns: Mapping[str, Ragged]) -> int | npt.NDArray[np.int64]:
        if not isinstance(self.position_start, str):
            return self.position_start
        column = columns.get(self.position_start)
        if column is None or column.offsets is not None:
            raise LengthwiseError(
                f"position_start is {self.position_start!r}, but the rows have no such field of one number per row; "
                f"they have {sorted(columns)}"
            )
        return column.values.astype(np.int64)

    def _row(self, name: str, column: Ragged, slots: Slots) -> Array:
        dtype = self._dtypes.get(name, default_dtype(column.values.dtype))
        if column.offsets is None:
            target = self._arrays.empty(name, (column.values.size,), dtype)
            cast_into(target, column.values, name, None)
            return target
        pad = np.asarray(pad_value(self.pad, name))
        check_pad(pad, dtype, name)
        target = self._arrays.empty(name, (slots.total,), dtype)
        if slots.padded:
            check_fits(column.values, dtype, name, column.offsets)
            target[:] = pad
            target[slots.places] = column.values
        else:
            size = column.values.size
            target[size:] = pad
            cast_into(target[:size], column.values, name, column.offsets)
        return target.reshape(1, -1) if self.batch_dim else target


def _names(emit: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(emit, str):
        if emit not in EMIT:
            raise LengthwiseError(f"emit is {emit!r}, but must be one of {list(EMIT)} or names out of QUANTITIES")
        return EMIT[emit]
    unknown = [name for name in emit if name not in QUANTITIES]
    if unknown:
        raise LengthwiseError(f"emit names {unknown[0]!r}, but must name some of {list(QUANTITIES)}")
    return tuple(emit)


def _without_empty(
    columns: dict[str, Ragged], offsets: npt.NDArray[np.int64]
) -> tuple[dict[str, Ragged], npt.NDArray[np.int64]]:
    """Leave rows without tokens out: a kernel takes no sequence of length 0."""
    kept = np.diff(offsets) > 0
    if kept.all():
        return columns, offsets
    if not kept.any():
        raise LengthwiseError(f"rows has {kept.size} rows, but all are empty: a pack needs at least one token")
    offsets = np.concatenate([offsets[:1], offsets[1:][kept]])
    return {
        name: Ragged(column.values[kept], None) if column.offsets is None else Ragged(column.values, offsets)
        for name, column in columns.items()
    }, offsets


def _check_mask(mask: Ragged | None, offsets: npt.NDArray[np.int64]) -> None:
    if mask is None or mask.offsets is None or mask.values.all():
        return
    row = int(np.searchsorted(offsets, int(np.argmin(mask.values != 0)), side="right")) - 1
    raise LengthwiseError(
        f"rows[{row}] has padding (attention_mask 0) inside it, but a pack takes bare samples; cut it"
    )
