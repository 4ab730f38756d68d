"""The command line as a shell sees it: output, exit codes, one-line errors, nothing else."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("click")
pytest.importorskip("rich")


def lengthwise(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, with its output piped."""
    command = [sys.executable, "-m", "lengthwise.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, timeout=100)  # noqa: S603


def test_help_teaches() -> None:
    done = lengthwise("--help")
    assert done.returncode == 0
    assert "Start with: lengthwise demo" in done.stdout
    assert done.stderr == ""


def test_version() -> None:
    import lengthwise as lw

    assert lengthwise("--version").stdout == f"lengthwise {lw.__version__}\n"


def test_demo_prints_the_story() -> None:
    done = lengthwise("demo")
    assert (done.returncode, done.stderr) == (0, "")
    for expected in ("902,087 lengths", "1,896,425,587 tokens", "seq_len", "2.150", "1.224", "1.204", "1.068", "1.035"):
        assert expected in done.stdout
    assert "lengthwise report DATASET" in done.stdout
    # Piped: no colour, no spinner, no blanks at the ends of lines, nothing wider than a page.
    assert "\x1b" not in done.stdout
    assert all(line == line.rstrip() and len(line) <= 104 for line in done.stdout.splitlines())


@pytest.mark.parametrize(("arguments", "code"), [(["nonsense"], 2), (["demo", "--nonsense"], 2), (["completion"], 2)])
def test_usage_errors_are_one_line(arguments: list[str], code: int) -> None:
    done = lengthwise(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith("lengthwise: ")
    assert done.stderr.count("\n") == 1
    assert "--help" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    done = lengthwise("completion", shell)
    assert done.returncode == 0
    assert "_LENGTHWISE_COMPLETE" in done.stdout


def test_a_reader_that_leaves_is_not_an_error() -> None:
    command = f"{sys.executable} -m lengthwise.cli demo | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, timeout=100)  # noqa: S602
    assert "Error" not in done.stderr
    assert "Traceback" not in done.stderr


def test_help_does_not_import_what_it_does_not_need() -> None:
    code = "import sys; from lengthwise.cli.app import run; run(['--help']); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100)  # noqa: S603
    loaded = done.stdout.splitlines()[-1]
    assert not [name for name in ("rich", "pyarrow", "torch", "pandas", "jinja2") if f"'{name}'" in loaded]
