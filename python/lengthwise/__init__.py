"""Turn variable-length samples into batches, from the lengths alone."""

from lengthwise._core import LengthwiseError, __version__
from lengthwise.boundaries import BoundarySolution, optimal_boundaries, solve_boundaries
from lengthwise.histogram import Histogram
from lengthwise.layouts import Padded
from lengthwise.lengths import Lengths, read_lengths
from lengthwise.plan import Plan
from lengthwise.planner import Planner
from lengthwise.summary import Summary

__all__ = [
    "BoundarySolution",
    "Histogram",
    "Lengths",
    "LengthwiseError",
    "Padded",
    "Plan",
    "Planner",
    "Summary",
    "__version__",
    "optimal_boundaries",
    "read_lengths",
    "solve_boundaries",
]
