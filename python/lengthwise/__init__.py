"""Turn variable-length samples into batches, from the lengths alone."""

from lengthwise._core import LengthwiseError, __version__
from lengthwise.histogram import Histogram
from lengthwise.lengths import Lengths, read_lengths

__all__ = ["Histogram", "Lengths", "LengthwiseError", "__version__", "read_lengths"]
