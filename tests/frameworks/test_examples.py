"""The examples run, stop, and go on."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from accelerate.state import AcceleratorState

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:The 'train_dataloader' does not have many workers"),
    pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*pin_memory. argument is set as true but no accelerator is found"),
]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty folder, beside no accelerator that another test made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    AcceleratorState._reset_state(reset_partial_state=True)
    torch.set_num_threads(1)


def run(name: str, *arguments: str) -> None:
    sys.argv = [name, *arguments]
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


@pytest.mark.parametrize("name", ["plain_loop.py", "accelerate_loop.py"])
def test_a_loop_stops_and_goes_on(
    name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [])
    run(name, "--steps", "4")
    assert "step 4: loss" in capfd.readouterr().out
    run(name, "--epochs", "1")
    out = capfd.readouterr().out
    assert "goes on" in out
    assert "trained" in out


@pytest.mark.parametrize("command", [("trainer.py", "--cpu", "--epochs", "1"), ("lightning_loop.py", "--epochs", "1")])
def test_a_trainer_trains(
    command: tuple[str, ...], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [])
    run(*command)
    assert "trained" in capfd.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(EXAMPLES / "ddp.py")],
        [str(EXAMPLES / "lightning_loop.py"), "--devices", "2"],
    ],
)
def test_two_ranks_train(command: list[str]) -> None:
    command = [sys.executable, *command, "--epochs", "1"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert finished.returncode == 0, finished.stderr[-2000:]
    assert "trained" in finished.stdout
