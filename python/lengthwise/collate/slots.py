"""Where the samples of one pack stand, in every form that a kernel asks for.

Real offsets count tokens, slots count what samples occupy after alignment; a tail fills a fixed capacity. All forms are
vector operations on the lengths.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise._core import LengthwiseError
from lengthwise.collate.fields import IGNORE
from lengthwise.collate.rows import offsets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    Int32 = npt.NDArray[np.int32]
    Int64 = npt.NDArray[np.int64]


class Slots:
    """The places of s samples in a row of `total` slots.

    Attributes:
        lengths: int64[s], tokens of each sample.
        starts: int64[s], the slot of each sample's first token.
        total: slots in the row.
        padded: whether alignment put padding between samples.
        segments: int64[g], slots of each segment: the samples, and the tail where there is one.
    """

    def __init__(
        self,
        offsets: Int64,
        multiple_of: int = 1,
        capacity: int | None = None,
        max_samples: int | None = None,
        position_start: int | Int64 = 0,
    ) -> None:
        self.lengths = np.diff(offsets)
        self.max_samples = max_samples
        self.position_start = position_start
        slots = -(-self.lengths // multiple_of) * multiple_of
        self.padded = multiple_of > 1 and bool((slots != self.lengths).any())
        ends = offsets_of(slots)
        self.starts = ends[:-1]
        self.total = used = int(ends[-1])
        self.segments = slots
        if max_samples is not None and slots.size > max_samples:
            raise LengthwiseError(f"rows has {slots.size} samples with tokens, but max_samples is {max_samples}")
        if used > 2**31 - 1:
            raise LengthwiseError(f"rows has {used} tokens, but offsets are int32 and end at 2147483647")
        if capacity is not None:
            if used > capacity:
                row = int(np.searchsorted(ends, capacity, side="right")) - 1
                raise LengthwiseError(
                    f"rows occupy {used} slots, but a pack holds capacity={capacity}; rows[{row}] of "
                    f"{self.lengths[row]} tokens is the first beyond it (multiple_of={multiple_of})"
                )
            self.total = capacity
            if used < capacity:
                self.segments = np.append(slots, capacity - used)

    @property
    def samples(self) -> int:
        """How many samples the row holds."""
        return self.lengths.size

    @cached_property
    def places(self) -> Int64:
        """int64[tokens]: the slot of every real token."""
        before = offsets_of(self.lengths)[:-1]
        return np.arange(int(self.lengths.sum())) + np.repeat(self.starts - before, self.lengths)

    @cached_property
    def offsets(self) -> Int32:
        """int32[g + 1]: where segments begin and end, in slots."""
        return self._fixed(offsets_of(self.segments))

    @cached_property
    def real_offsets(self) -> Int32:
        """int32[g + 1]: the running total of real tokens; the tail counts its own."""
        real = self.segments.copy()
        real[: self.samples] = self.lengths
        return self._fixed(offsets_of(real))

    def _fixed(self, offsets: Int64) -> Int32:
        if self.max_samples is None:
            return offsets.astype(np.int32)
        # One entry more than samples for the end, and one for a tail.
        return np.concatenate([offsets, np.repeat(offsets[-1:], self.max_samples + 2 - offsets.size)]).astype(np.int32)

    @property
    def longest(self) -> int:
        """The longest segment in slots, as a Python int: a tensor would cost a device synchronisation per layer."""
        return int(self.segments.max())

    def position_ids(self) -> Int64:
        """int64[total]: positions restart in every segment, and go on through the padding behind a sample."""
        first = offsets_of(self.segments)[:-1]
        first[: self.samples] -= self.position_start
        return np.arange(self.total) - np.repeat(first, self.segments)

    def seq_idx(self) -> Int32:
        """int32[total]: the number of the segment that each slot belongs to, the tail counted as one more."""
        return np.repeat(np.arange(self.segments.size, dtype=np.int32), self.segments)

    def document_ids(self) -> Int32:
        """int32[total]: the sample of each token, -1 on all padding: for masks of attention in both directions too."""
        if not self.padded:
            ids = np.arange(self.segments.size, dtype=np.int32)
            ids[self.samples :] = -1
            return np.repeat(ids, self.segments)
        ids = np.full(self.total, -1, np.int32)
        ids[self.places] = np.repeat(np.arange(self.samples, dtype=np.int32), self.lengths)
        return ids

    def shift_labels(self, batch: Mapping[str, Any]) -> Int64:
        """int64[total]: at each slot the label of the next one, for losses that do not shift by themselves."""
        if "labels" not in batch:
            raise LengthwiseError("emit names 'shift_labels', but the batch has no labels to shift")
        shifted = np.full(self.total, IGNORE, np.int64)
        shifted[:-1] = batch["labels"].reshape(-1)[1:]
        return shifted


#: What a `PackedCollator` can return beside the fields. T is the tokens of the row, s its samples, g its segments: the
#: samples and, with a fixed capacity, the tail. Offsets count slots unless "real" is said.
QUANTITIES: Final[Mapping[str, Callable[[Slots, Mapping[str, Any]], Any]]] = {
    "position_ids": lambda slots, _: slots.position_ids(),  # int64[T], restarting in every segment
    "cu_seqlens": lambda slots, _: slots.offsets,  # int32[g + 1], from 0 to T
    "cu_seqlens_real": lambda slots, _: slots.real_offsets,  # int32[g + 1], real tokens
    "max_seqlen": lambda slots, _: slots.longest,  # int, the longest segment
    "seq_idx": lambda slots, _: slots.seq_idx(),  # int32[T], the segment of each slot
    "document_ids": lambda slots, _: slots.document_ids(),  # int32[T], the sample of each slot, -1 on padding
    "seq_lens": lambda slots, _: slots.lengths,  # int64[s], real tokens of each sample
    "shift_labels": Slots.shift_labels,  # int64[T], the label of the next slot
    # The names that transformers takes.
    "cu_seq_lens_q": lambda slots, _: slots.offsets,
    "cu_seq_lens_k": lambda slots, _: slots.offsets,
    "max_length_q": lambda slots, _: slots.longest,
    "max_length_k": lambda slots, _: slots.longest,
    # The names that Transformer Engine and Megatron take.
    "cu_seqlens_q": lambda slots, _: slots.real_offsets,
    "cu_seqlens_kv": lambda slots, _: slots.real_offsets,
    "cu_seqlens_q_padded": lambda slots, _: slots.offsets,
    "cu_seqlens_kv_padded": lambda slots, _: slots.offsets,
    "max_seqlen_q": lambda slots, _: slots.longest,
    "max_seqlen_kv": lambda slots, _: slots.longest,
}
