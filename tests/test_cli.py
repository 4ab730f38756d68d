"""The command line as a shell sees it: output, exit codes, one-line errors, nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lengthwise as lw

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("click")
pytest.importorskip("rich")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small data set in a file, with two columns to choose from."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(5, 400, 2_000)
    ids = [list(range(length)) for length in lengths]
    table = pa.table({"num_tokens": lengths, "input_ids": ids, "prompt_ids": [row[: len(row) % 7] for row in ids]})
    file = tmp_path_factory.mktemp("data") / "train.parquet"
    pq.write_table(table, file)
    return str(file)


class Done(NamedTuple):
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


def lengthwise(*arguments: str) -> Done:
    """Run a command in this process, with its output piped."""
    from lengthwise.cli.app import run

    with redirect_stdout(StringIO()) as stdout, redirect_stderr(StringIO()) as stderr:
        code = run(arguments)
    return Done(code, stdout.getvalue(), stderr.getvalue())


def in_a_process(*arguments: str) -> Done:
    """Run a command as a shell does."""
    command = [sys.executable, "-m", "lengthwise", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)  # noqa: S603
    return Done(done.returncode, done.stdout, done.stderr)


def test_help_teaches() -> None:
    done = in_a_process("--help")
    assert done.returncode == 0
    assert "Start with: lengthwise demo" in done.stdout
    assert done.stderr == ""


def test_version() -> None:
    assert lengthwise("--version").stdout == f"lengthwise {lw.__version__}\n"


def test_demo_prints_the_story() -> None:
    done = in_a_process("demo")
    assert (done.returncode, done.stderr) == (0, "")
    for expected in ("902,087 lengths", "1,896,425,587 tokens", "seq_len", "2.149", "1.225", "1.204", "1.068", "1.035"):
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
    command = f"{sys.executable} -m lengthwise demo | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, timeout=100)  # noqa: S602
    assert (done.stdout.count("\n"), done.stderr) == (1, "")


def test_help_does_not_import_what_it_does_not_need() -> None:
    code = "import sys; from lengthwise.cli.app import run; run(['--help']); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100)  # noqa: S603
    loaded = done.stdout.splitlines()[-1]
    assert not [name for name in ("rich", "pyarrow", "torch", "pandas", "jinja2") if f"'{name}'" in loaded]


def test_report_on_a_screen(dataset: str) -> None:
    done = lengthwise("report", dataset, "--max-tokens", "4096", "--world-size", "2", "--tokens-per-second", "1000")
    assert (done.returncode, done.stderr) == (0, "")
    for expected in ("num_tokens", "packed, best fit", "optimal", "an epoch", "To paste", "one more pays"):
        assert expected in done.stdout
    assert "\x1b" not in done.stdout
    assert all(line == line.rstrip() and len(line) <= 104 for line in done.stdout.splitlines())


def test_report_as_json_and_as_a_page(dataset: str, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    pytest.importorskip("jinja2")
    page, plots = tmp_path / "report.html", tmp_path / "plots"
    done = lengthwise("report", dataset, "--json", "--html", str(page), "--save-plots", str(plots))
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert document["dataset"]["column"] == "num_tokens"
    assert document["lengths"]["samples"] == 2_000
    assert f"wrote {page}" in done.stderr
    assert page.stat().st_size > 500_000
    assert (plots / "lengths.png").exists()


def test_report_reads_the_named_column_and_timings(dataset: str, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(json.dumps({"tokens": 100 * n, "longest": 10, "seconds": 0.5 * n}) for n in (1, 2, 3)))
    done = lengthwise("report", dataset, "--column", "prompt_ids", "--batch-size", "8", "--timings", str(log), "--json")
    document = json.loads(done.stdout)
    assert document["dataset"]["column"] == "prompt_ids"
    assert document["settings"]["batch_size"] == 8
    assert document["speed"]["rows"] == 3
    assert document["speed"]["per_token"] == pytest.approx(0.005)


def test_boundaries_print_the_list(dataset: str) -> None:
    done = lengthwise("boundaries", dataset, "-k", "4")
    expected = lw.optimal_boundaries(lw.read_lengths(dataset), 4).tolist()
    assert (done.returncode, done.stderr, done.stdout) == (0, "", f"{expected}\n")
    document = json.loads(lengthwise("boundaries", dataset, "-k", "4", "--json").stdout)
    assert document["boundaries"] == expected
    assert document["proven_optimal"]


def test_a_plan_is_written_verified_and_refused_for_other_data(dataset: str, tmp_path: Path) -> None:
    out = tmp_path / "plan.arrow"
    arguments = ("--max-tokens", "4096", "--boundaries", "4", "--world-size", "2", "--epoch", "3", "--out", str(out))
    done = lengthwise("plan", dataset, *arguments)
    assert (done.returncode, done.stderr) == (0, f"wrote {out}\n")
    assert "padded/real" in done.stdout
    assert lw.read_plan(out).epoch == 3

    done = lengthwise("verify", str(out), dataset)
    assert done.returncode == 0
    assert "FAILED" not in done.stdout
    assert json.loads(lengthwise("verify", str(out), dataset, "--json").stdout)["passed"]

    done = lengthwise("verify", str(out), dataset, "--column", "prompt_ids")
    assert (done.returncode, done.stdout) == (1, "")
    assert "fingerprint" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_plan_of_packs_and_automatic_boundaries(dataset: str, tmp_path: Path) -> None:
    out = tmp_path / "plan.arrow"
    assert lengthwise("plan", dataset, "--capacity", "512", "--world-size", "2", "--out", str(out)).returncode == 0
    assert lengthwise("verify", str(out), dataset).returncode == 0
    chosen = json.loads(lengthwise("plan", dataset, "--max-tokens", "4096", "--boundaries", "auto", "--json").stdout)
    listed = json.loads(lengthwise("boundaries", dataset).stdout)
    # The plan pads to the longest of a batch: as many boundaries, chosen for that.
    assert len(chosen["config"]["boundaries"]) == len(listed)
    assert chosen["config"]["boundaries"][-1] == listed[-1]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["report", "nowhere"], 1, "nowhere"),
        (["report", "DATA", "--column", "other"], 1, "other"),
        (["report", "DATA", "--max-tokens", "0"], 2, "--max-tokens"),
        (["report", "DATA", "--max-tokens", "9", "--batch-size", "3"], 2, "not both"),
        (["report", "DATA", "--timings", "nowhere.jsonl"], 1, "nowhere.jsonl: No such file"),
        (["report", "DATA", "--html", "no/such/folder/page.html"], 1, "no/such/folder/page.html"),
        (["boundaries", "DATA", "-k", "100000"], 1, "100000"),
        (["boundaries", "DATA", "-k", "x"], 2, "x"),
        (["plan", "DATA"], 2, "give --max-tokens for batches, or --capacity for packs"),
        (["plan", "DATA", "--max-tokens", "900", "--capacity", "900"], 2, "or --capacity"),
        (["plan", "DATA", "--capacity", "900", "--order", "sorted"], 2, "--order is for batches"),
        (["plan", "DATA", "--max-tokens", "100"], 1, "max_tokens=100"),
        (["plan", "DATA", "--max-tokens", "900", "--boundaries", "a,b"], 2, "neither a number"),
        (["verify", "nowhere", "DATA"], 2, "nowhere"),
        (["verify", "DATA", "DATA"], 1, "DATA"),
    ],
)
def test_every_problem_is_one_line(dataset: str, arguments: list[str], code: int, said: str) -> None:
    done = lengthwise(*(dataset if argument == "DATA" else argument for argument in arguments))
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("lengthwise: ")
    assert done.stderr.count("\n") == 1
    assert said.replace("DATA", dataset) in done.stderr
    assert "Traceback" not in done.stderr


def test_what_looks_wrong_is_said_on_a_line_and_in_the_report(tmp_path: Path) -> None:
    file = tmp_path / "wrong.parquet"
    pq.write_table(pa.table({"num_tokens": [3] * 40 + [9] * 40, "input_ids": [[1, 2, 3]] * 80}), file)
    done = lengthwise("report", str(file))
    assert done.returncode == 0
    assert done.stderr.startswith("lengthwise: warning: ")
    assert done.stderr.count("\n") == 1
    assert "Look at these first" in done.stdout
    assert "disagrees with the sizes of" in " ".join(done.stdout.split())


def test_packs_are_written_verified_and_continued(dataset: str, tmp_path: Path) -> None:
    out = tmp_path / "packs"
    arguments = ("pack", dataset, "--capacity", "512", "--out", str(out))
    done = lengthwise(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert "from column input_ids" in done.stdout
    again = json.loads(lengthwise(*arguments, "--json").stdout)
    assert again["problems"] == []
    assert again["tokens"] == int(lw.read_lengths(dataset).sum())

    assert lengthwise("verify", str(out), dataset).returncode == 0
    next(out.glob("*.parquet")).write_bytes(b"not parquet")
    done = lengthwise("verify", str(out), dataset)
    assert done.returncode == 1
    assert "FAILED" in done.stdout
    assert lengthwise(*arguments[:2], "--capacity", "600", "--out", str(out)).returncode == 1
