"""The report on real data of three kinds, in three formats: files, docstrings and lines of the standard library."""

from __future__ import annotations

import ast
import itertools
import json
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lengthwise as lw
from lengthwise.report.analysis import analyse
from lengthwise.report.model import Dataset, Report

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Enough files to be real, few enough to be fast.
FILES = 250


def sources() -> list[Path]:
    found = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")) + sorted(
        Path(sysconfig.get_paths()["stdlib"]).glob("*/*.py")
    )
    kept = [path for path in found if "site-packages" not in path.parts][:FILES]
    assert len(kept) > 50
    return kept


def docstrings() -> Iterator[str]:
    for path in sources()[:80]:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node)):
                yield text


def words(text: str) -> list[int]:
    return [len(word) for word in text.split()]


def files_as_a_saved_dataset(folder: Path) -> Path:
    datasets = pytest.importorskip("datasets")
    ids = [words(path.read_text(encoding="utf-8", errors="replace")) for path in sources()]
    datasets.Dataset.from_dict({"input_ids": ids, "loss_mask": [[1] * len(row) for row in ids]}).save_to_disk(
        folder / "files"
    )
    return folder / "files"


def docstrings_as_parquet(folder: Path) -> Path:
    ids = [words(text) for text in docstrings()]
    pq.write_table(pa.table({"input_ids": ids, "num_tokens": [len(row) for row in ids]}), folder / "docstrings.parquet")
    return folder / "docstrings.parquet"


def lines_as_json(folder: Path) -> Path:
    path = folder / "lines.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for source in sources()[:40]:
            for line in source.read_text(encoding="utf-8", errors="replace").splitlines():
                file.write(json.dumps({"input_ids": words(line)}) + "\n")
    return path


@pytest.fixture(scope="module", params=[files_as_a_saved_dataset, docstrings_as_parquet, lines_as_json])
def report(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Report:
    path = request.param(tmp_path_factory.mktemp("real"))
    lengths = lw.read_lengths(path)
    return analyse(lengths, world_size=2, multiple_of=8, dataset=Dataset(source=str(path), column=lengths.column))


def test_the_figures_hold_together(report: Report) -> None:
    ratio = {strategy.key: strategy.padded_ratio for strategy in report.strategies}
    assert ratio["bound"] <= ratio["best-fit"]
    assert ratio["optimal"] < ratio["fixed"]
    assert ratio["optimal"] < ratio["shuffled"]
    assert min(ratio.values()) >= 1
    assert report.lengths.samples > 200
    limit = report.settings.max_tokens
    assert all(strategy.largest_batch <= limit for strategy in report.strategies if strategy.largest_batch is not None)
    assert len(report.strategy("optimal").boundaries) == report.curve.chosen == report.settings.buckets
    padding = report.curve.padded_ratios
    assert all(more <= fewer for fewer, more in itertools.pairwise(padding))


@pytest.mark.parametrize("width", [76, 100, 116])
def test_the_screen_fits(report: Report, width: int) -> None:
    pytest.importorskip("rich")
    from rich.console import Console

    from lengthwise.report.terminal import screens

    console = Console(width=width + 4, highlight=False, color_system=None)
    with console.capture() as captured:
        for part in screens(report, width):
            console.print(part)
    text = captured.get()
    # Nothing of the table is cut off.
    table = text[text.index("One epoch") : text.index("How many buckets")]
    assert "…" not in table
    for strategy in report.strategies:
        assert strategy.name in table
    assert "one more pays less than 0.5%" in text


def test_the_page_is_written(report: Report) -> None:
    pytest.importorskip("vl_convert")
    pytest.importorskip("jinja2")
    from lengthwise.report.html import to_html

    page = to_html(report)
    assert len(page.encode()) < 2_000_000
    assert report.dataset.source in page
