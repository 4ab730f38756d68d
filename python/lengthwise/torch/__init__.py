"""lengthwise for PyTorch: the only package here that imports torch."""

from lengthwise.torch.collate import PaddedCollator

__all__ = ["PaddedCollator"]
