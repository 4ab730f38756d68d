"""The collators of `lengthwise.collate` for PyTorch: the same arrays, as tensors, without a copy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lengthwise import LengthwiseError, collate
from lengthwise.collate.arrays import Arrays

if TYPE_CHECKING:
    import numpy.typing as npt

    from lengthwise.collate.padded import Columns


class PinnedArrays(Arrays):
    """Arrays in page-locked memory, from which a copy to a GPU can run beside the computation."""

    def __init__(self, *, reuse: bool) -> None:
        if not torch.accelerator.is_available():
            raise LengthwiseError("pin_memory is True, but torch sees no accelerator to pin memory for; leave it out")
        super().__init__(reuse=reuse)

    def _allocate(self, size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        kind = torch.from_numpy(np.empty(0, dtype)).dtype
        array: npt.NDArray[Any] = torch.empty(size, dtype=kind, pin_memory=True).numpy()
        return array


@dataclass(eq=False)
class PaddedCollator(collate.PaddedCollator):
    """`lengthwise.collate.PaddedCollator` that returns tensors: the `collate_fn` of a `DataLoader`.

    Args:
        pad: as there; so are the other options.
        pin_memory: make the tensors in page-locked memory, for loops without a `DataLoader` (which pins by itself).

    Raises:
        LengthwiseError: `pin_memory` without an accelerator, or as there.

    Example:
        >>> collate_fn = PaddedCollator(pad=0)
        >>> collate_fn([{"input_ids": [5, 6]}, {"input_ids": [7]}])["input_ids"]
        tensor([[5, 6],
                [7, 0]])
    """

    pin_memory: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pin_memory:
            self._arrays = PinnedArrays(reuse=self.reuse)

    def fill(self, read: Columns, length: int | None = None) -> dict[str, Any]:
        """Pad what was read, to tensors."""
        return as_tensors(super().fill(read, length))


@dataclass(eq=False)
class PackedCollator(collate.PackedCollator):
    """`lengthwise.collate.PackedCollator` that returns tensors: the `collate_fn` of a `DataLoader`.

    Args:
        pad: as there; so are the other options.
        pin_memory: make the tensors in page-locked memory, for loops without a `DataLoader` (which pins by itself).

    Raises:
        LengthwiseError: `pin_memory` without an accelerator, or as there.

    Example:
        >>> batch = PackedCollator()([{"input_ids": [5, 6]}, {"input_ids": [7]}])
        >>> batch["input_ids"], batch["cu_seq_lens_q"], batch["max_length_q"]
        (tensor([[5, 6, 7]]), tensor([0, 2, 3], dtype=torch.int32), 2)
    """

    pin_memory: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pin_memory:
            self._arrays = PinnedArrays(reuse=self.reuse)

    def __call__(self, rows: Any) -> dict[str, Any]:
        """Collate one pack; see `lengthwise.collate.PackedCollator.__call__`."""
        return as_tensors(super().__call__(rows))


def as_tensors(batch: dict[str, Any]) -> dict[str, Any]:
    """Every array of `batch` as a tensor over the same memory; one array under two names stays one tensor."""
    made: dict[int, torch.Tensor] = {}
    return {
        name: made.setdefault(id(value), torch.from_numpy(value)) if isinstance(value, np.ndarray) else value
        for name, value in batch.items()
    }
