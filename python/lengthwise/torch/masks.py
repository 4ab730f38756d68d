"""Which tokens of a pack see each other, for attention that takes no offsets.

Three forms of the same rule (a token sees tokens of its own sample, and with `causal` none after it): a dense mask for
`scaled_dot_product_attention`, a block mask for FlexAttention, a jagged nested tensor. Make them in the training
process, on the device: they do not travel well between processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask


def dense_mask(document_ids: torch.Tensor, *, causal: bool = True) -> torch.Tensor:
    """Return bool[b, 1, T, T], True where the token of the row sees that of the column: a fallback, T^2 bytes.

    Args:
        document_ids: int32[b, T] or [T], as `PackedCollator(emit=["document_ids"])` returns it. Padding (-1) sees
            padding alone, so that no row is empty.
        causal: no token sees what comes after it.

    Example:
        >>> dense_mask(torch.tensor([[0, 0, 1, -1]]))[0, 0].int()
        tensor([[1, 0, 0, 0],
                [1, 1, 0, 0],
                [0, 0, 1, 0],
                [0, 0, 0, 1]], dtype=torch.int32)
    """
    ids = document_ids.reshape(-1, document_ids.shape[-1])
    mask = ids[:, None, :, None] == ids[:, None, None, :]
    if causal:
        mask &= torch.ones(mask.shape[-2:], dtype=torch.bool, device=mask.device).tril()
    return mask


def block_mask(document_ids: torch.Tensor, *, causal: bool = True, **options: Any) -> BlockMask:
    """Return the FlexAttention mask of a pack, on the device of `document_ids`; other arguments as `dense_mask`.

    Blocks are 128 tokens: a capacity, and with it T, that is a multiple of 128 leaves no partial block at the end.

    Args:
        document_ids: int32[b, T] or [T].
        causal: no token sees what comes after it.
        options: for `torch.nn.attention.flex_attention.create_block_mask`.

    Example:
        >>> block_mask(torch.tensor([0] * 100 + [1] * 28)).shape
        (1, 1, 128, 128)
    """
    from torch.nn.attention.flex_attention import create_block_mask

    ids = document_ids.reshape(-1, document_ids.shape[-1])

    def sees(batch: Any, _head: Any, query: Any, key: Any) -> Any:
        same = ids[batch, query] == ids[batch, key]
        return same & (query >= key) if causal else same

    rows, total = ids.shape
    return create_block_mask(sees, rows, 1, total, total, device=str(ids.device), **options)


def nested(values: torch.Tensor, cu_seqlens: torch.Tensor, max_seqlen: int) -> torch.Tensor:
    """Return a pack as a jagged nested tensor [segments, (length), ...] over the same memory.

    Args:
        values: [1, T, ...] or [T, ...]: any tensor over the tokens of one pack, integers or activations.
        cu_seqlens: int32[g + 1], as the collator returns it; with `max_samples` the repeated ends are empty segments.
        max_seqlen: the longest segment; given so that nothing waits for the device.

    Example:
        >>> nested(torch.arange(5), torch.tensor([0, 3, 5]), 3).unbind()
        (tensor([0, 1, 2]), tensor([3, 4]))
    """
    flat = values[0] if values.ndim > 1 and values.shape[0] == 1 else values
    return torch.nested.nested_tensor_from_jagged(flat, offsets=cu_seqlens, min_seqlen=0, max_seqlen=max_seqlen)
