"""Turn variable-length samples into batches, from the lengths alone."""

from lengthwise._core import LengthwiseError, __version__
from lengthwise.balancing import Parts, balance
from lengthwise.boundaries import Auto, BoundarySolution, optimal_boundaries, solve_boundaries
from lengthwise.chunks import ChunkPlan, plan_chunks
from lengthwise.compare import Comparison, compare
from lengthwise.curve import PaddingCurve, padding_curve
from lengthwise.describe import Distribution, describe
from lengthwise.histogram import Histogram
from lengthwise.layouts import Padded
from lengthwise.lengths import Inspection, Lengths, LengthsInfo, inspect, read_lengths
from lengthwise.loss import batch_targets, batch_weights, target_weights
from lengthwise.packed import Packed
from lengthwise.packing import Packs, pack
from lengthwise.plan import Plan
from lengthwise.plan_file import read_plan
from lengthwise.planner import Planner
from lengthwise.sources.suspicion import LengthwiseWarning
from lengthwise.speed import SpeedModel
from lengthwise.stream_packer import StreamPacker
from lengthwise.stripes import Stripes, optimal_stripes
from lengthwise.summary import Mixing, Summary

__all__ = [
    "Auto",
    "BoundarySolution",
    "ChunkPlan",
    "Comparison",
    "Distribution",
    "Histogram",
    "Inspection",
    "Lengths",
    "LengthsInfo",
    "LengthwiseError",
    "LengthwiseWarning",
    "Mixing",
    "Packed",
    "Packs",
    "Padded",
    "PaddingCurve",
    "Parts",
    "Plan",
    "Planner",
    "SpeedModel",
    "StreamPacker",
    "Stripes",
    "Summary",
    "__version__",
    "balance",
    "batch_targets",
    "batch_weights",
    "compare",
    "describe",
    "inspect",
    "optimal_boundaries",
    "optimal_stripes",
    "pack",
    "padding_curve",
    "plan_chunks",
    "read_lengths",
    "read_plan",
    "solve_boundaries",
    "target_weights",
]
