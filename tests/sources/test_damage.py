"""Damaged files: an error that names the file and says what to do; never a crash, a hang or a wrong type of error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import datasets
import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import lengthwise as lw

HERE = Path(__file__).parent
NOBODY = 65_534
ROWS = [[0] * (row * 7 % 23) for row in range(300)]
NUMBERS = [len(row) for row in ROWS]


def table() -> pa.Table:
    return pa.table(
        {
            "lists": pa.array(ROWS, pa.list_(pa.int32())),
            "numbers": NUMBERS,
            "encoded": pa.array(NUMBERS).dictionary_encode(),
            "runs": pc.run_end_encode(pa.array(sorted(NUMBERS))),
            "views": pa.array(ROWS, pa.list_view(pa.int16())),
            "gaps": pa.array([row or None for row in ROWS], pa.large_list_view(pa.int16())),
            "fixed": pa.array([row[:2] if len(row) > 1 else None for row in ROWS], pa.list_(pa.int8(), 2)),
            "text": ["x"] * len(ROWS),
            "nested": [[{"ids": row[:9], "n": 1}] * (len(row) % 3) for row in ROWS],
        }
    )


def write_all(folder: Path) -> None:
    whole = table()
    plain = whole.select(["lists", "numbers", "text", "nested"])
    for compression in (None, "zstd"):
        options = pa.ipc.IpcWriteOptions(compression=compression)
        for name, writer in (("file", pa.ipc.new_file), ("stream", pa.ipc.new_stream)):
            with writer(folder / f"{name}_{compression}.arrow", whole.schema, options=options) as sink:
                sink.write_table(whole, max_chunksize=100)
    for version in ("1.0", "2.0"):
        for compression in ("none", "snappy", "zstd"):
            pq.write_table(
                plain,
                folder / f"v{version[0]}_{compression}.parquet",
                compression=compression,
                data_page_version=version,
                row_group_size=130,
                data_page_size=256,
            )
    np.save(folder / "lengths.npy", np.array(NUMBERS, np.uint16))
    (folder / "tokens.idx").write_bytes((HERE / "data" / "megatron" / "tokens.idx").read_bytes())
    (folder / "ends.ds.index").write_bytes(np.cumsum(NUMBERS, dtype=np.uint64).tobytes())
    datasets.Dataset(plain).to_json(folder / "rows.jsonl")


@pytest.mark.skipif(sys.platform != "linux", reason="limits its memory as Linux does")
@pytest.mark.parametrize("seed", range(2))
def test_damaged_files_never_crash_the_process(tmp_path: Path, seed: int) -> None:
    write_all(tmp_path)
    rounds = int(os.environ.get("LENGTHWISE_FUZZ_ROUNDS", "300"))
    command = [sys.executable, str(HERE / "mutate.py"), str(tmp_path), str(rounds), str(seed)]
    finished = subprocess.run(  # noqa: S603 - our own code
        command, capture_output=True, text=True, check=False, timeout=100 + rounds
    )
    last = "\n".join(finished.stdout.splitlines()[-1:])
    assert finished.returncode == 0, f"{last}\n{finished.stderr[-3_000:]}"
    assert "refused" in last


@pytest.mark.parametrize("name", ["data.parquet", "data.arrow", "data.jsonl", "data.npy", "data.idx"])
def test_empty_files(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(lw.LengthwiseError, match=rf"{name} is empty \(0 bytes\); write it again"):
        lw.read_lengths(tmp_path / name)
    fsspec.filesystem("memory").pipe(f"/empty/{name}", b"")
    with pytest.raises(lw.LengthwiseError, match=rf"{name} is empty \(0 bytes\); write it again"):
        lw.read_lengths(f"memory://empty/{name}")


def test_files_that_may_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    user = os.geteuid()
    with TemporaryDirectory() as folder:
        monkeypatch.chdir(folder)
        pq.write_table(pa.table({"input_ids": ROWS}), "data.parquet")
        lw.read_lengths("data.parquet")
        Path("data.parquet").chmod(0)
        Path("inside").mkdir(mode=0)
        Path().chmod(0o755)
        # Root may read everything, but need not be root.
        os.seteuid(user or NOBODY)
        try:
            for source in ("data.parquet", "inside", "inside/data.parquet", ["inside/data.parquet"], "."):
                with pytest.raises(lw.LengthwiseError, match="cannot be read: permission denied; check its owner"):
                    lw.read_lengths(source)
        finally:
            os.seteuid(user)


def test_permission_denied_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"input_ids": ROWS}), path)

    def denied(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(lw.LengthwiseError, match=r"data.parquet cannot be read: permission denied; check its owner"):
        lw.read_lengths(path)


def test_the_content_counts_not_the_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"input_ids": ROWS}), tmp_path / "data.arrow")
    assert lw.read_lengths(tmp_path / "data.arrow").tolist() == NUMBERS
    (tmp_path / "data.parquet").write_text("a, b\n1, 2\n")
    with pytest.raises(lw.LengthwiseError, match=r"data.parquet is not a Parquet file, whatever its name says"):
        lw.read_lengths(tmp_path / "data.parquet")
    (tmp_path / "data.bin").write_bytes(b"what is this?")
    with pytest.raises(lw.LengthwiseError, match=r"data.bin is of no known format; save it as Parquet"):
        lw.read_lengths(tmp_path / "data.bin")


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_mixed_schemas_are_refused_by_name(tmp_path: Path, suffix: str) -> None:
    for name, column, values in (("a", "input_ids", ROWS), ("b", "tokens", ROWS), ("c", "input_ids", ["text"])):
        content = pa.table({column: values})
        if suffix == "parquet":
            pq.write_table(content, tmp_path / f"{name}.{suffix}")
        else:
            with pa.ipc.new_stream(tmp_path / f"{name}.{suffix}", content.schema) as sink:
                sink.write_table(content)
    for other in "bc":
        with pytest.raises(
            lw.LengthwiseError, match=rf"{other}.{suffix} has no list column 'input_ids', which the first"
        ):
            lw.read_lengths([tmp_path / f"a.{suffix}", tmp_path / f"{other}.{suffix}"])


def test_lists_of_other_widths_are_the_same_column(tmp_path: Path) -> None:
    for name, type_ in (("a", pa.list_(pa.int32())), ("b", pa.large_list(pa.int64()))):
        pq.write_table(pa.table({"input_ids": pa.array(ROWS, type_)}), tmp_path / f"{name}.parquet")
    assert lw.read_lengths(tmp_path).tolist() == NUMBERS * 2


def test_a_saved_dataset_with_missing_or_damaged_parts(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    datasets.Dataset(pa.table({"input_ids": ROWS})).save_to_disk(folder, num_shards=2)
    (folder / "data-00001-of-00002.arrow").unlink()
    with pytest.raises(lw.LengthwiseError, match=r"data-00001-of-00002.arrow does not exist"):
        lw.read_lengths(folder)
    for text, message in (
        ("[]", "does not hold a JSON object"),
        ("{", "cannot be read"),
        ("{}", "cannot be read: there is no '_data_files'"),
        ('{"_data_files": [{"filename": "../x.arrow"}]}', "outside of its folder"),
    ):
        (folder / "state.json").write_text(text)
        with pytest.raises(lw.LengthwiseError, match=rf"state.json.*{message}"):
            lw.read_lengths(folder)


def test_tables_that_lie_are_refused() -> None:
    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return object()

    with pytest.raises(lw.LengthwiseError, match=r"Stream cannot be read"):
        lw.read_lengths(Stream())


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data.lance" / "_versions").mkdir(parents=True)
    monkeypatch.setitem(sys.modules, "lance", None)
    with pytest.raises(lw.LengthwiseError, match="pip install pylance"):
        lw.read_lengths(tmp_path / "data.lance")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(lw.LengthwiseError, match="pip install fsspec"):
        lw.read_lengths("memory://x")
    monkeypatch.undo()
    # What fsspec raises names the library in words alone.
    for url, library in (("gs://bucket/x.parquet", "gcsfs"), ("abfs://bucket/x.parquet", "adlfs")):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(lw.LengthwiseError, match=rf"{url} cannot be read: .*; pip install {library}$"):
            lw.read_lengths(url)
