"""Turn variable-length samples into batches, from the lengths alone."""

from lengthwise._core import LengthwiseError, __version__
from lengthwise.histogram import Histogram
from lengthwise.layouts import Padded
from lengthwise.lengths import Lengths, read_lengths
from lengthwise.plan import Plan
from lengthwise.planner import Planner
from lengthwise.summary import Summary

__all__ = [
    "Histogram",
    "Lengths",
    "LengthwiseError",
    "Padded",
    "Plan",
    "Planner",
    "Summary",
    "__version__",
    "read_lengths",
]
