"""What paths name: text, bytes and pathlib; links, folders of several formats or splits, and names that are none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import datasets
import fsspec
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pad
import pyarrow.parquet as pq
import pytest

import lengthwise as lw

IDS = [[0] * (row * 7 % 23) for row in range(100)]
LENGTHS = [len(row) for row in IDS]
TABLE = pa.table({"input_ids": IDS})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "a folder é 数"
    folder.mkdir()
    pq.write_table(TABLE, folder / "a file.parquet")
    return folder / "a file.parquet"


def test_every_way_to_write_a_path(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    monkeypatch.setenv("HOME", str(file.parent))
    names: list[Any] = [file, str(file), os.fsencode(file), file.as_uri(), f"file://{file}", file.parent]
    names += [f"{file.parent}/", file.name, "~/a file.parquet", "~/a*.parquet", Path("~") / file.name, [file.name]]
    for name in names:
        assert lw.read_lengths(name).tolist() == LENGTHS


def test_brackets_in_names(tmp_path: Path) -> None:
    path = tmp_path / "[1]" / "a[b].parquet"
    path.parent.mkdir()
    pq.write_table(TABLE, path)
    for name in (path, str(path), path.parent, f"{tmp_path}/[[]1]/*", [str(path)]):
        assert lw.read_lengths(name).tolist() == LENGTHS


def test_links_are_followed(file: Path, tmp_path: Path) -> None:
    for name in ("link", "folder/inside"):
        link = tmp_path / name
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(file.parent)
        assert lw.read_lengths(link.parent if "/" in name else link).tolist() == LENGTHS
    (tmp_path / "folder" / "round").symlink_to(tmp_path / "folder")
    assert lw.read_lengths(tmp_path / "folder").tolist() == LENGTHS
    (tmp_path / "folder" / "b.parquet").symlink_to(tmp_path / "nothing")
    with pytest.raises(lw.LengthwiseError, match=r"b.parquet does not exist"):
        lw.read_lengths(tmp_path / "folder")


def test_what_other_writers_leave_is_left_out(file: Path) -> None:
    for name in ("_SUCCESS", "_metadata", "._SUCCESS.crc", ".hidden.parquet", "README.md", "_tmp/x.parquet"):
        path = file.parent / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("no data")
    assert lw.read_lengths(file.parent).tolist() == LENGTHS
    (file.parent / "README.md").unlink()
    assert lw.read_lengths(f"{file.parent.parent}/*/*").tolist() == LENGTHS


def test_rows_are_in_the_order_of_the_other_readers(tmp_path: Path) -> None:
    names = ["a/x", "a-b/x", "a.b/x", "a/y", "b", "a/z/q", "B", "part-1", "part-10", "part-2", "a b/x", "é/x"]
    for number, name in enumerate(names):
        path = tmp_path / "data" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"length": [number]}), path)
    lengths = lw.read_lengths(tmp_path / "data", check="none").tolist()
    assert lengths == pad.dataset(tmp_path / "data").to_table()["length"].to_pylist()
    assert lengths == pl.scan_parquet(tmp_path / "data").collect()["length"].to_list()
    loaded = datasets.load_dataset(str(tmp_path / "data"), split="train", cache_dir=str(tmp_path / "cache"))
    assert lengths == loaded["length"][:]
    assert lengths == lw.read_lengths(f"{tmp_path}/data/**/*.parquet", check="none").tolist()
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path / "data"), "/ordered", recursive=True)
    assert lengths == lw.read_lengths("memory://ordered", check="none").tolist()


def test_names_in_capitals(tmp_path: Path) -> None:
    for suffix in ("PARQUET", "JSONL"):
        path = tmp_path / suffix / f"A.{suffix}"
        path.parent.mkdir()
        if suffix == "JSONL":
            path.write_text("".join(json.dumps({"input_ids": row}) + "\n" for row in IDS))
        else:
            pq.write_table(TABLE, path)
        assert lw.read_lengths(path).tolist() == LENGTHS
        assert lw.read_lengths(path.parent).tolist() == LENGTHS


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("train.parquet", "validation.parquet"), r"several splits, train, validation; pass .*/\*train\*"),
        (("test/0.parquet", "train/0.parquet"), r"several splits, test, train; pass .*/test, or"),
        (("data/split=test/0.parquet", "data/split=train/0.parquet"), r"test, train; pass .*/data/split=test, or"),
        (("c4-train.00000-of-00001.parquet", "c4-validation.00000-of-00001.parquet"), "several splits"),
        (("fr-00000-of-00001.parquet", "en-00000-of-00001.parquet"), r"several splits, en, fr; pass .*/\*en\*"),
    ],
)
def test_several_splits_are_not_one_dataset(tmp_path: Path, names: tuple[str, ...], said: str) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        pq.write_table(TABLE, tmp_path / name)
    with pytest.raises(lw.LengthwiseError, match=said + r".*/\*\*/\*.parquet for all"):
        lw.read_lengths(tmp_path)
    # Who names all of them wants all of them.
    assert lw.read_lengths(f"{tmp_path}/**/*.parquet").tolist() == LENGTHS * 2


def test_several_formats_are_not_one_dataset(file: Path) -> None:
    (file.parent / "a.jsonl").write_text('{"input_ids": [1]}\n')
    with pytest.raises(lw.LengthwiseError, match=r"several formats, Parquet and JSON lines; .* as in .*/\*.parquet"):
        lw.read_lengths(file.parent)


def test_folders_without_data(tmp_path: Path) -> None:
    with pytest.raises(lw.LengthwiseError, match=r"holds no file of a known format \(it is empty\)"):
        lw.read_lengths(tmp_path)
    for name in ("notes.txt", "part-0"):
        (tmp_path / name).write_text("x")
    with pytest.raises(lw.LengthwiseError, match=r"holds no file of a known format \(it has notes.txt, part-0\)"):
        lw.read_lengths(tmp_path)


@pytest.mark.parametrize("sources", ["glob", "list"])
def test_several_folders_are_named_by_their_files(tmp_path: Path, sources: str) -> None:
    folders = [tmp_path / name for name in ("day=1", "day=2")]
    for folder in folders:
        folder.mkdir()
        pq.write_table(TABLE, folder / "0.parquet")
    with pytest.raises(lw.LengthwiseError, match=r"day=1 is a folder, one of several; .* as in .*day=1/\*"):
        lw.read_lengths(folders if sources == "list" else f"{tmp_path}/day=*")
    assert lw.read_lengths(f"{tmp_path}/day=*/*").tolist() == LENGTHS * 2
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path), "/days", recursive=True)
    with pytest.raises(lw.LengthwiseError, match=r"day=1 is a folder, one of several"):
        lw.read_lengths("memory://days/day=*")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", "the path is empty"),
        ("x" * 5_000, "File name too long; check the path"),
        ("a\0b", "a\0b does not exist"),
        ("train-{000000..000009}.tar", r"does not exist; write ranges in braces as globs, as in \*"),
        (Path("memory://b/a.parquet"), "pathlib takes a slash from it; pass the URL as text"),
        (["no/a.parquet", "no/b.parquet"], r"no/a.parquet does not exist"),
        (["https:/no", "b"], r'list holds list of str, not tokens; tokenise it first, or pass unit="bytes"'),
        (np.array(["a.parquet"]), r"numpy.ndarray must be integers .* got dtype <U9"),
        ({"a.parquet"}, r"builtins.set keeps no order and nothing twice; pass a list"),
        ((Path(name) for name in "ab"), r"generator\[0\] is PosixPath\('a'\), a path; pass them as a list"),
    ],
)
def test_names_that_name_nothing(source: Any, said: str) -> None:
    with pytest.raises(lw.LengthwiseError, match=said):
        lw.read_lengths(source)


def test_open_files_are_named_by_their_path(file: Path) -> None:
    with file.open("rb") as opened, pytest.raises(lw.LengthwiseError, match="is an open file; pass its path"):
        lw.read_lengths(opened)


@pytest.mark.parametrize("first", ["How are you?", "see http://x.invalid now", "[1]", "a*b"])
def test_texts_are_no_paths(first: str) -> None:
    assert lw.read_lengths([first, "é"], unit="bytes").tolist() == [len(first), 2]


def test_pointers_of_git_lfs(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    with pytest.raises(lw.LengthwiseError, match=r"data.parquet is a pointer of Git LFS; .*git lfs pull"):
        lw.read_lengths(path)


def test_folders_that_may_not_be_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(lw.LengthwiseError, match=r"a folder .* cannot be read: permission denied; check its owner"):
        lw.read_lengths(file.parent)
    monkeypatch.setattr(os, "stat", denied)
    with pytest.raises(lw.LengthwiseError, match=r"a file.parquet cannot be read: permission denied; check its owner"):
        lw.read_lengths(str(file))


def test_pipes_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.parquet")
    for source in (tmp_path, tmp_path / "a.parquet"):
        with pytest.raises(lw.LengthwiseError, match="known format"):
            lw.read_lengths(source)
