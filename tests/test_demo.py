"""The demonstration: a data set that the real library opens, and the figures of the story."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import lengthwise as lw
from lengthwise import demo
from lengthwise.story import SAMPLES, story_lengths

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo.write_dataset(tmp_path_factory.mktemp("demo") / "completions")


def test_the_dataset_is_the_story_in_another_order(folder: Path) -> None:
    lengths = lw.read_lengths(folder)
    assert lengths.column == "seq_len"
    assert len(lengths) == SAMPLES
    np.testing.assert_array_equal(np.sort(lengths), story_lengths())
    assert not (np.diff(lengths[:1000].astype(int)) >= 0).all()


def test_the_datasets_library_opens_it(folder: Path) -> None:
    datasets = pytest.importorskip("datasets")
    opened = datasets.load_from_disk(str(folder))
    assert opened.column_names == ["seq_len"]
    assert opened.num_rows == SAMPLES
    np.testing.assert_array_equal(opened.data.column("seq_len").to_numpy(), lw.read_lengths(folder))
    # Record batches as save_to_disk writes them: 1,000 rows.
    assert {chunk.nbytes for chunk in opened.data.column("seq_len").chunks[:-1]} == {4000}


def test_the_table_of_the_story(folder: Path) -> None:
    """The published figures at 65,536 padded tokens a batch, measured with other code on the same lengths."""
    rows = {row.name: row for row in demo.compare_orders(lw.read_lengths(folder))}
    expected = {
        "sorted": 1.0001,
        "shuffled": 2.150,
        "bucketed, 6 by hand": 1.224,
        "bucketed, 6 optimal": 1.204,
        "bucketed, 16 optimal": 1.068,
        "bucketed, 32 optimal": 1.035,
    }
    assert list(rows) == list(expected)
    for name, ratio in expected.items():
        assert rows[name].padded_ratio == pytest.approx(ratio, abs=0.002)
        assert rows[name].speed == pytest.approx(32 / rows[name].padded_ratio)
    assert rows["sorted"].again == 1.0
    assert all(row.again < 0.01 for name, row in rows.items() if name != "sorted")
    assert rows["bucketed, 6 by hand"].days == pytest.approx(demo.MEASURED_DAYS, abs=0.1)
    assert rows["bucketed, 32 optimal"].boundaries[-1] == 8191
    # With the cost of attention the model meets all three measurements, the shuffled one too.
    fitted = demo.fitted_speeds(list(rows.values()))
    for name, measured in demo.MEASURED.items():
        assert fitted[name] == pytest.approx(measured, rel=0.05)
