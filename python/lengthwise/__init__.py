"""Turn variable-length samples into batches, from the lengths alone."""

from lengthwise._core import LengthwiseError, __version__
from lengthwise.balancing import Parts, balance
from lengthwise.boundaries import BoundarySolution, optimal_boundaries, solve_boundaries
from lengthwise.histogram import Histogram
from lengthwise.layouts import Padded
from lengthwise.lengths import Lengths, read_lengths
from lengthwise.packing import Packs, pack
from lengthwise.plan import Plan
from lengthwise.planner import Planner
from lengthwise.speed import SpeedModel
from lengthwise.summary import Summary

__all__ = [
    "BoundarySolution",
    "Histogram",
    "Lengths",
    "LengthwiseError",
    "Packs",
    "Padded",
    "Parts",
    "Plan",
    "Planner",
    "SpeedModel",
    "Summary",
    "__version__",
    "balance",
    "optimal_boundaries",
    "pack",
    "read_lengths",
    "solve_boundaries",
]
