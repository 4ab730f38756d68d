"""Turn variable-length samples into batches, from the lengths alone."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lengthwise._core import LengthwiseError, __version__

if TYPE_CHECKING:
    from lengthwise.balancing import Parts, balance
    from lengthwise.boundaries import Auto, BoundarySolution, optimal_boundaries, solve_boundaries
    from lengthwise.chunks import ChunkPlan, plan_chunks
    from lengthwise.comparison import Comparison, compare
    from lengthwise.curve import PaddingCurve, padding_curve
    from lengthwise.distribution import Distribution, describe
    from lengthwise.histogram import Histogram
    from lengthwise.inspection import Inspection, inspect
    from lengthwise.layouts import Padded
    from lengthwise.lengths import Lengths, LengthsInfo, read_lengths
    from lengthwise.loss import batch_targets, batch_weights, target_weights
    from lengthwise.packed import Packed
    from lengthwise.packing import Packs, pack
    from lengthwise.pairs import PaddedPairs
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
    "PaddedPairs",
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

#: Where each public name lives. A module is loaded when a name of its own is first used, so that `import lengthwise`
#: costs nothing and the command line starts at once. No module has the name of something public: it would hide it.
_HOMES = {
    "Auto": "boundaries",
    "BoundarySolution": "boundaries",
    "ChunkPlan": "chunks",
    "Comparison": "comparison",
    "Distribution": "distribution",
    "Histogram": "histogram",
    "Inspection": "inspection",
    "Lengths": "lengths",
    "LengthsInfo": "lengths",
    "LengthwiseWarning": "sources.suspicion",
    "Mixing": "summary",
    "Packed": "packed",
    "Packs": "packing",
    "Padded": "layouts",
    "PaddedPairs": "pairs",
    "PaddingCurve": "curve",
    "Parts": "balancing",
    "Plan": "plan",
    "Planner": "planner",
    "SpeedModel": "speed",
    "StreamPacker": "stream_packer",
    "Stripes": "stripes",
    "Summary": "summary",
    "balance": "balancing",
    "batch_targets": "loss",
    "batch_weights": "loss",
    "compare": "comparison",
    "describe": "distribution",
    "inspect": "inspection",
    "optimal_boundaries": "boundaries",
    "optimal_stripes": "stripes",
    "pack": "packing",
    "padding_curve": "curve",
    "plan_chunks": "chunks",
    "read_lengths": "lengths",
    "read_plan": "plan_file",
    "solve_boundaries": "boundaries",
    "target_weights": "loss",
}


if not TYPE_CHECKING:  # a type checker would take any name for an attribute

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'lengthwise' has no attribute {name!r}")
        value = getattr(import_module(f"lengthwise.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
