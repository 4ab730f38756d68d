"""DistributedDataParallel over gloo, in real processes: killed and resumed on one process and on three."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("kill_resume.py")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_killed_run_sees_every_sample_once() -> None:
    command = [sys.executable, str(SCRIPT), "--rounds", "1", "--seed", "4", "--worlds", "2", "1", "3"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert run.returncode == 0, run.stderr[-2000:]
    assert "every sample of 2 epochs once" in run.stdout
