"""WebDataset's shards, written by its own writer, and DALI's indexes of them."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import webdataset

import lengthwise as lw

SIZES = [row * 7 % 23 for row in range(500)]
CAPTIONS = ["é" * (row % 5) for row in range(500)]


def sample(row: int) -> dict[str, Any]:
    size = SIZES[row]
    return {
        "__key__": f"a.b/{row:05d}",
        "input_ids.npy": np.zeros(size, np.uint16),
        "json": {"seq_len": size, "ids": [1] * size, "meta": {"turns": size}, "flag": True, "name": "x"},
        "cls": row % 10,
        "seq_len": str(size).encode(),
        "txt": CAPTIONS[row].encode(),
    }


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    folder = tmp_path / "shards"
    folder.mkdir()
    with webdataset.ShardWriter(str(folder / "train-%06d.tar"), maxcount=200, verbose=0) as writer:
        for row in range(len(SIZES)):
            writer.write(sample(row))
    return folder


def test_what_samples_hold(shards: Path) -> None:
    for source in (shards, str(shards / "train-*.tar"), sorted(shards.iterdir())):
        lengths = lw.read_lengths(source)
        assert lengths.column == "seq_len"
        assert lengths.tolist() == SIZES
    for column in ("input_ids.npy", "json.seq_len", "json.ids", "json.meta.turns"):
        assert lw.read_lengths(shards, column).tolist() == SIZES
    assert lw.read_lengths(shards, "cls").tolist() == [row % 10 for row in range(500)]
    text = [len(caption.encode()) for caption in CAPTIONS]
    assert lw.read_lengths(shards, "txt", unit="bytes").tolist() == text
    with pytest.raises(lw.LengthwiseError, match=r"'txt' of .* holds file, not tokens; .*unit=\"bytes\""):
        lw.read_lengths(shards, "txt")
    assert "json.meta.turns" in str(lw.inspect(shards))
    seen: list[int] = []
    lw.read_lengths(shards, "input_ids.npy", progress=lambda done, _: seen.append(done))
    assert seen[:3] == [200, 400, 500]


def test_arrays_are_what_is_left(tmp_path: Path) -> None:
    for name in ("shard.tar", "shard.tar.gz"):
        with webdataset.TarWriter(str(tmp_path / name)) as writer:
            for row in range(40):
                writer.write({"__key__": str(row), "npy": np.zeros((SIZES[row], 3)), "jpg": b"\xff\xd8"})
        lengths = lw.read_lengths(tmp_path / name)
        assert lengths.column == "npy"
        assert lengths.tolist() == SIZES[:40]
        assert lw.Histogram.of(tmp_path / name) == lw.Histogram.of(SIZES[:40])


def test_bytes_are_no_lengths(tmp_path: Path) -> None:
    with webdataset.TarWriter(str(tmp_path / "shard.tar")) as writer:
        writer.write({"__key__": "a", "jpg": b"\xff\xd8", "txt": "x"})
    with pytest.raises(lw.LengthwiseError, match=r"no column that is known to hold lengths; it has jpg \(file\), txt"):
        lw.read_lengths(tmp_path)


def test_samples_that_lack_something(tmp_path: Path) -> None:
    path = tmp_path / "shard.tar"
    with webdataset.TarWriter(str(path)) as writer:
        for key, value in (("a", {"n": 3, "ids": [1]}), ("b", {}), ("c", {"n": None, "ids": [1, 2]})):
            writer.write({"__key__": key, "json": value})
        writer.write({"__key__": "d", "txt": "x"})
    assert lw.read_lengths(path, "json.n", nulls="zero").tolist() == [3, 0, 0, 0]
    with pytest.raises(lw.LengthwiseError, match=r"'json.n' of .*shard.tar is null in 3 rows \(1, 2, 3\)"):
        lw.read_lengths(path, "json.n")
    with webdataset.TarWriter(str(path)) as writer:
        writer.write({"__key__": "a", "json": {"n": 3}, "cls": 1, "npy": np.zeros(1)})
        writer.write({"__key__": "b", "json": {"n": [3]}, "cls": b"x", "npy": np.array(1)})
    for column, said in (("json.n", r"'n' is \[3\], where"), ("cls", "invalid literal"), ("npy", "a single value")):
        with pytest.raises(lw.LengthwiseError, match=rf"of sample 1 of .*shard.tar cannot be read: .*{said}"):
            lw.read_lengths(path, column)


def test_shards_of_several_series(shards: Path) -> None:
    (shards / "val-000000.tar").write_bytes((shards / "train-000000.tar").read_bytes())
    with pytest.raises(lw.LengthwiseError, match=r"several splits, train, val; pass .*train"):
        lw.read_lengths(shards)
    (shards / "val-000000.tar").rename(shards / "more-000000.tar")
    with pytest.raises(lw.LengthwiseError, match=r"holds shards of more-, train-; pass more-\*.tar"):
        lw.read_lengths(shards)


def test_damaged_shards(tmp_path: Path, shards: Path) -> None:
    whole = (shards / "train-000000.tar").read_bytes()
    for name, content in (("cut", whole[:100_000]), ("odd", b"no archive" * 100)):
        (tmp_path / f"{name}.tar").write_bytes(content)
        with pytest.raises(lw.LengthwiseError, match=rf"{name}.tar cannot be read.*write it again"):
            lw.read_lengths(tmp_path / f"{name}.tar", "cls")
    (tmp_path / "none.tar").write_bytes(bytes(10_240))
    with pytest.raises(lw.LengthwiseError, match=r"none.tar has no column .* it has no columns"):
        lw.read_lengths(tmp_path / "none.tar")


def test_an_interrupted_pass_goes_on(shards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(done: int, _: int | None) -> None:
        if done >= 400:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lw.read_lengths(shards, "input_ids.npy", cache=True, progress=interrupt)
    opened: list[str] = []
    original = tarfile.open

    def spy(*args: Any, **options: Any) -> Any:
        opened.append("")
        return original(*args, **options)

    monkeypatch.setattr(tarfile, "open", spy)
    assert lw.read_lengths(shards, "input_ids.npy", cache=True).tolist() == SIZES
    # One to see the columns, and those that were not done.
    assert len(opened) < 4


def test_an_index_counts_bytes(shards: Path, tmp_path: Path) -> None:
    lines: dict[str, str] = {}
    with tarfile.open(shards / "train-000000.tar") as archive:
        for member in archive:
            stem, _, extension = Path(member.name).name.partition(".")
            entry = f"{extension} {member.offset_data} {member.size} {member.name}"
            lines[stem] = f"{lines[stem]} {entry}" if stem in lines else entry
    path = tmp_path / "train-000000.idx"
    path.write_text("\n".join([f"v1.2 {len(lines)}", *lines.values()]) + "\n")
    text = [len(caption.encode()) for caption in CAPTIONS[:200]]
    assert lw.read_lengths(path, "txt", unit="bytes").tolist() == text
    with pytest.raises(lw.LengthwiseError, match="no column that is known to hold lengths"):
        lw.read_lengths(path)
    path.write_text("v1.2 3\njpg 1 2 x.jpg\n")
    with pytest.raises(lw.LengthwiseError, match="it says that there are 3 samples, but has 1"):
        lw.read_lengths(path, "jpg", unit="bytes")
