"""What the tests share: the lengths of the story and, where they are at hand, the measured histograms."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import numpy as np
import numpy.typing as npt
import pytest

from lengthwise.story import story_lengths

# CI draws the same cases every time, so that a change is not blamed for what chance found; elsewhere they are new.
hypothesis.settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    hypothesis.settings.load_profile("ci")

MEASURED = Path(__file__).parents[2] / "shared" / "lengths"


@pytest.fixture(scope="session")
def story() -> npt.NDArray[np.uint16]:
    """The 902,087 lengths of the story in a fixed random order, as a training set has them."""
    lengths = story_lengths()
    return np.random.default_rng(0).permutation(lengths)


@pytest.fixture(scope="session")
def measured() -> Path:
    """The folder of measured length histograms (`length,count`); the test is skipped where it is absent."""
    if not MEASURED.is_dir():
        pytest.skip("the measured histograms are not on this machine")
    return MEASURED
