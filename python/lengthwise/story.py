"""The 902,087 lengths of the story: real training data, rebuilt from its published table.

The table gives percentiles and counts by range; between those points the lengths are interpolated linearly over the
ranks. `lengthwise demo`, the benchmarks and the tests all run on them, so that a figure quoted anywhere can be checked
everywhere.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

#: How many samples the published data set has.
SAMPLES: Final = 902_087

#: The six boundaries that were used in the story, chosen by hand (inclusive upper bounds).
PUBLISHED_BOUNDARIES: Final = (770, 1216, 1728, 2432, 3296, 8192)

#: Percentile -> length in tokens, as published.
PERCENTILES: Final = {0: 65, 10: 637, 25: 1035, 50: 1727, 75: 2912, 90: 4200, 95: 4374, 99: 4917, 100: 8191}

#: (first length of the range, samples in it), as published; the last range ends before 8,192.
RANGES: Final = ((0, 1_140), (256, 47_379), (512, 172_819), (1024, 303_816), (2048, 255_713), (4096, 121_220))


def story_lengths() -> npt.NDArray[np.uint16]:
    """Return the lengths of the story in ascending order.

    Returns:
        uint16[902087], in tokens, from 65 to 8,191: 1,896,425,587 tokens in all.

    Cost: about 10 ms; nothing is read from disk.

    Example:
        >>> lengths = story_lengths()
        >>> lengths.size, int(lengths.min()), int(np.median(lengths)), int(lengths.max())
        (902087, 65, 1727, 8191)
        >>> int(((lengths >= 1024) & (lengths < 2048)).sum())
        303816
    """
    knots = {
        percentile / 100 * (SAMPLES - 1): length + (0.0 if percentile in (0, 100) else 0.5)
        for percentile, length in PERCENTILES.items()
    }
    below = 0
    for (_, count), (edge, _) in pairwise(RANGES):
        below += count
        knots[float(below)] = float(edge)
    ranks, values = zip(*sorted(knots.items()), strict=True)
    lengths: npt.NDArray[np.uint16] = np.interp(np.arange(SAMPLES), ranks, values).astype(np.uint16)
    return lengths
