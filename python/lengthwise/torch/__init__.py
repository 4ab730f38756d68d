"""lengthwise for PyTorch: the only package here that imports torch."""

from lengthwise.torch.checks import check_dataset
from lengthwise.torch.collate import PackedCollator, PaddedCollator
from lengthwise.torch.masks import block_mask, dense_mask, nested
from lengthwise.torch.resumable import Resumable
from lengthwise.torch.sampler import BatchSampler
from lengthwise.torch.segmented import Segmented
from lengthwise.torch.stream import StreamBatches

__all__ = [
    "BatchSampler",
    "PackedCollator",
    "PaddedCollator",
    "Resumable",
    "Segmented",
    "StreamBatches",
    "block_mask",
    "check_dataset",
    "dense_mask",
    "nested",
]
