"""lengthwise for PyTorch: the only package here that imports torch."""

from lengthwise.torch.collate import PaddedCollator
from lengthwise.torch.sampler import BatchSampler
from lengthwise.torch.segmented import Segmented

__all__ = ["BatchSampler", "PaddedCollator", "Segmented"]
