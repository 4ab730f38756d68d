"""Plans of 100 million and of a billion samples: run by hand, not in CI (12 GiB of memory for the billion).

python benches/large_plans.py 100_000_000
python benches/large_plans.py 1_000_000_000
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import lengthwise as lw
from lengthwise.story import story_lengths


def peak_memory(*, forget: bool = True) -> int:
    """Bytes in use at most since the last call that forgot what was before; Linux only."""
    if forget:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def main() -> None:
    """Plan once with each padding and print seconds, nanoseconds a sample and the peak of memory beyond the lengths."""
    samples = int(sys.argv[1].replace("_", ""))
    story = story_lengths()
    lengths = np.empty(samples, np.uint16)
    rng = np.random.default_rng(0)
    for start in range(0, samples, 1 << 24):
        stop = min(start + (1 << 24), samples)
        lengths[start:stop] = story[rng.integers(0, len(story), stop - start)]
    boundaries = lw.optimal_boundaries(story, 16)
    for pad_to in ("boundary", "longest"):
        layout = lw.Padded(65_536, boundaries=boundaries, pad_to=pad_to)
        planner = lw.Planner(lengths, layout, steps="shuffled")
        before = peak_memory()
        start_time = time.perf_counter()
        plan = planner.plan()
        seconds = time.perf_counter() - start_time
        peak = peak_memory(forget=False)
        print(  # noqa: T201 (a script)
            f"{samples:,} samples, pad to {pad_to}: {seconds:.2f} s, {seconds / samples * 1e9:.2f} ns a sample, "
            f"{len(plan):,} batches, peak {(peak - before) / samples:.1f} bytes a sample beyond what was before"
        )
        del plan


if __name__ == "__main__":
    main()
