"""Turn variable-length samples into batches, from the lengths alone."""

from lengthwise._core import LengthwiseError, __version__

__all__ = ["LengthwiseError", "__version__"]
