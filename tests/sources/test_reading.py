"""What is the same for every format: memory, inspection, the cache, progress, the array that comes back."""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lengthwise as lw
from lengthwise import progress
from lengthwise.sources import parquet_file

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [[0] * (row * 7 % 23) for row in range(1_000)]
LENGTHS = [len(row) for row in ROWS]


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what is in memory")
@pytest.mark.parametrize("column", ["input_ids", "seq_len"])
def test_no_token_is_brought_into_memory(tmp_path: Path, column: str) -> None:
    rows, tokens = 100_000, 400
    values = pa.array(np.zeros(rows * tokens, np.int32))
    offsets = pa.array(np.arange(0, rows * tokens + 1, tokens, dtype=np.int32))
    table = pa.table({"input_ids": pa.ListArray.from_arrays(offsets, values), "seq_len": np.full(rows, tokens)})
    datasets.Dataset(table).save_to_disk(tmp_path, num_shards=1)
    code = f"""
import pyarrow as pa
import lengthwise as lw

def memory(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024

lw.read_lengths(pa.chunked_array([[[1]], [[1]]] * 40))
before = memory("VmRSS")
lengths = lw.read_lengths({str(tmp_path)!r}, {column!r}, check="none")
assert lengths.sum() == {rows * tokens}
print(memory("VmRSS") - before, memory("VmHWM") - before)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603
    after, peak = map(int, done.stdout.split())
    assert after < 8 * rows + (4 << 20)
    # The kernel maps 16 pages around each that is touched; the tokens are 160 MB.
    assert peak < 64 << 20


# Inspection


def test_inspect_a_live_dataset() -> None:
    dataset = datasets.Dataset(pa.table({"input_ids": ROWS, "text": ["x"] * 1_000})).shuffle(seed=0).select(range(10))
    found = lw.inspect(dataset, percentiles=True)
    assert (found.rows, found.column, found.reads_values, found.tokens) == (10, "input_ids", False, None)
    assert found.description.samples == 10
    assert "* input_ids  list    list<item: int64>" in str(found)
    assert "10 rows" in str(found)


def test_inspect_says_why_it_would_ask() -> None:
    found = lw.inspect(pa.table({"x": [1], "y": [2]}))
    assert found.column is None
    assert "no column that is known to hold lengths" in str(found)


def test_inspect_takes_nothing_from_a_stream() -> None:
    table = pa.table({"input_ids": ROWS})
    reader = table.to_reader(100)
    assert lw.inspect(reader).rows is None
    assert lw.read_lengths(reader).tolist() == LENGTHS


# The array


def test_lengths_remember_where_they_came_from() -> None:
    lengths = lw.read_lengths(pa.table({"input_ids": ROWS}))
    assert isinstance(lengths, np.ndarray)
    assert lw.read_lengths(lengths[5:]).column is None
    assert getattr(lengths[5:], "column", None) == "input_ids"
    assert type(lengths + 1) is np.ndarray
    assert isinstance(lengths.sum(), np.integer)
    again = pickle.loads(pickle.dumps(lengths))  # noqa: S301 - our own
    assert again.tolist() == LENGTHS
    assert again.column == "input_ids"
    assert not again.flags.writeable
    assert lw.read_lengths(lengths).tolist() == LENGTHS
    with pytest.raises(ValueError, match="read-only"):
        lengths[0] = 1


def test_the_callers_array_stays_writable() -> None:
    mine = np.array([3, 1])
    lw.read_lengths(mine)
    mine[0] = 4


@pytest.mark.parametrize("argument", ["combine", "nulls", "unit", "check"])
def test_unknown_choices(argument: str) -> None:
    with pytest.raises(lw.LengthwiseError, match=rf"{argument} is 'x', but must be one of '"):
        lw.read_lengths([1], **{argument: "x"})  # type: ignore[arg-type]


# The cache


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    path = tmp_path / "data.parquet"
    rows = [None if index == 555 else row for index, row in enumerate(ROWS)]
    pq.write_table(pa.table({"input_ids": rows}), path, row_group_size=100)
    return path


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The first bytes of the column chunks that were read."""
    starts: list[int] = []
    original = parquet_file.read_chunk  # type: ignore[attr-defined] # where it is looked up

    def spy(file: Any, chunk: Any, **options: Any) -> Any:
        starts.append(chunk.start)
        return original(file, chunk, **options)

    monkeypatch.setattr(parquet_file, "read_chunk", spy)
    return starts


def test_the_cache_is_read_until_the_data_changes(parquet: Path, groups: list[int]) -> None:
    first = lw.read_lengths(parquet, nulls="zero", cache=True)
    assert len(groups) == 10
    again = lw.read_lengths(parquet, nulls="zero", cache=True)
    assert len(groups) == 10
    assert first.info is not None
    assert again.info is not None
    assert (first.info.cached, again.info.cached) == (False, True)
    assert first.tolist() == again.tolist() == [0 if index == 555 else length for index, length in enumerate(LENGTHS)]
    assert lw.read_lengths(parquet, nulls="drop", cache=True).tolist() == LENGTHS[:555] + LENGTHS[556:]
    with pytest.raises(lw.LengthwiseError, match=r"null in 1 rows \(555\)"):
        lw.read_lengths(parquet, cache=True)
    assert {path.suffix for path in (parquet.parent / ".lengthwise").iterdir()} == {".u32", ".json"}
    pq.write_table(pa.table({"input_ids": ROWS[:7]}), parquet)
    assert lw.read_lengths(parquet, cache=True).tolist() == LENGTHS[:7]


def test_an_interrupted_read_goes_on_where_it_ended(parquet: Path, groups: list[int], tmp_path: Path) -> None:
    def interrupt(done: int, total: int | None) -> None:
        assert total == 1_000
        if done >= 400:
            raise KeyboardInterrupt

    folder = tmp_path / "elsewhere"
    with pytest.raises(KeyboardInterrupt):
        lw.read_lengths(parquet, nulls="zero", cache=folder, progress=interrupt)
    assert len(groups) == 4
    # The process died while it wrote: what is not whole in both files is read again.
    (part,) = folder.glob("*.part")
    part.write_bytes(part.read_bytes()[:-10])
    seen: list[int] = []
    whole = lw.read_lengths(parquet, nulls="zero", cache=folder, progress=lambda done, _: seen.append(done))
    assert whole.tolist() == [0 if index == 555 else length for index, length in enumerate(LENGTHS)]
    assert len(groups) == 4 + 8
    assert seen[0] == 300


@pytest.mark.skipif(sys.platform == "win32", reason="has no such locks")
def test_of_all_ranks_one_reads_and_the_others_wait(parquet: Path, groups: list[int], tmp_path: Path) -> None:
    start = threading.Barrier(4)

    def rank(_: int) -> list[int]:
        start.wait()
        slow = lambda *_: time.sleep(0.01)  # noqa: E731 - a function that others need time beside
        return list(lw.read_lengths(parquet, nulls="zero", cache=tmp_path / "shared", progress=slow).tolist())

    with ThreadPoolExecutor(4) as ranks:
        found = list(ranks.map(rank, range(4)))
    assert found == [[0 if index == 555 else length for index, length in enumerate(LENGTHS)]] * 4
    assert len(groups) == 10
    assert {path.suffix for path in (tmp_path / "shared").iterdir()} == {".u32", ".json"}


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"version": 1}', None])
def test_a_damaged_cache_is_read_again(parquet: Path, damage: str | None) -> None:
    lw.read_lengths(parquet, nulls="zero", cache=True)
    (about,) = (parquet.parent / ".lengthwise").glob("*.json")
    if damage is None:
        about.with_suffix(".u32").write_bytes(b"1234")
    else:
        about.write_text(damage)
    for suffix in (".done", ".part"):
        about.with_suffix(suffix).write_bytes(b'{"rows": 1}\n')
    assert lw.read_lengths(parquet, nulls="zero", cache=True)[:3].tolist() == LENGTHS[:3]
    assert json.loads(about.read_text())["rows"] == 1_000


def test_a_live_dataset_is_cached_by_its_fingerprint(tmp_path: Path) -> None:
    dataset = datasets.Dataset(pa.table({"input_ids": ROWS}))
    shuffled = dataset.shuffle(seed=1)
    for each in (dataset, shuffled, dataset, shuffled):
        assert lw.read_lengths(each, cache=tmp_path).tolist() == [len(row) for row in each["input_ids"]]
    assert len(list(tmp_path.glob("*.u32"))) == 2
    with pytest.raises(lw.LengthwiseError, match="not in a local folder; pass cache= a folder"):
        lw.read_lengths(dataset, cache=True)


def test_what_cannot_be_cached_says_so(tmp_path: Path) -> None:
    with pytest.raises(lw.LengthwiseError, match=r"cannot be cached, as nothing tells when it changes"):
        lw.read_lengths([1, 2], cache=tmp_path)


# Progress


def test_callbacks_see_every_block_and_the_end(parquet: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    lw.read_lengths(parquet, nulls="zero", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(rows, 1_000) for rows in range(100, 1_001, 100)]
    seen.clear()
    lw.read_lengths(iter(ROWS), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1_000, None), (1_000, 1_000)]


def test_a_bar_is_for_long_reads_on_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def drawn(option: bool | None, stream: io.StringIO, seconds: float) -> str:  # noqa: FBT001 - as users pass it
        clock = iter(np.arange(0, 100, seconds).tolist())
        monkeypatch.setattr("lengthwise.progress.time.monotonic", lambda: next(clock))
        monkeypatch.setattr(sys, "stderr", stream)
        report = progress.reporter(option, 1_000, "data")
        for done in (250, 500, 1_000):
            report(done, 1_000)
        return stream.getvalue()

    assert drawn(None, io.StringIO(), 2) == ""
    assert drawn(False, Terminal(), 2) == ""
    assert drawn(None, Terminal(), 0.1) == ""
    line = drawn(None, Terminal(), 2)
    assert "reading data: 500 rows, 125 rows/s" in line
    assert "50%, 4 s left" in line
    assert line.endswith("0 s left\n")
    assert drawn(True, io.StringIO(), 2) == line


# Histograms of anything


def test_histograms_count_part_by_part(parquet: Path) -> None:
    pq.write_table(pa.table({"input_ids": ROWS}), parquet, row_group_size=100)
    expected = lw.Histogram.of(LENGTHS)
    seen: list[int] = []
    assert lw.Histogram.of(parquet, progress=lambda done, _: seen.append(done)) == expected
    assert seen == list(range(100, 1_001, 100))
    assert lw.Histogram.of(pa.table({"x": ROWS, "y": ROWS}), "x") == expected
    sums = [one + two for one, two in zip(LENGTHS, LENGTHS[::-1], strict=True)]
    assert lw.Histogram.of({"x": ROWS, "y": ROWS[::-1]}, ["x", "y"]) == lw.Histogram.of(sums)
    assert lw.Histogram.of(datasets.Dataset(pa.table({"input_ids": ROWS})).shuffle(seed=0)) == expected
    with pytest.raises(lw.LengthwiseError, match=r"row 1 of pyarrow.Table is null in 'input_ids'"):
        lw.Histogram.of(pa.table({"input_ids": [[1], None]}))


def test_histograms_are_written_as_arrow(tmp_path: Path) -> None:
    path = tmp_path / "counts.arrow"
    histogram = lw.Histogram.of(LENGTHS)
    histogram.write(path)
    assert lw.Histogram.read(path) == histogram
    assert pa.ipc.open_file(path).read_all().column_names == ["length", "count"]
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(lw.LengthwiseError, match=r"counts.arrow cannot be read.*write it again"):
        lw.Histogram.read(path)
