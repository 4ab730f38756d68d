"""Datasets behind URLs: in memory, over HTTP, and in an object store where s3fs and moto are installed."""

from __future__ import annotations

from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import datasets
import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lengthwise as lw
from lengthwise.sources import pages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IDS = [[0] * (row * 7 % 23) for row in range(3_000)]
LENGTHS = [len(row) for row in IDS]
TABLE = pa.table({"input_ids": IDS, "text": ["x"] * len(IDS)})


def write_all(folder: Path) -> None:
    pq.write_table(TABLE, folder / "data.parquet", row_group_size=700)
    with pa.ipc.new_file(folder / "data.arrow", TABLE.schema) as sink:
        sink.write_table(TABLE, 700)
    np.save(folder / "lengths.npy", LENGTHS)
    datasets.Dataset(TABLE).to_json(folder / "data.jsonl")
    datasets.Dataset(TABLE).save_to_disk(folder / "saved", num_shards=2)


NAMES = ["data.parquet", "data.arrow", "data.jsonl", "lengths.npy", "saved"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("bucket")
    write_all(written)
    return written


@pytest.fixture
def memory(folder: Path) -> Iterator[str]:
    system = fsspec.filesystem("memory")
    system.put(str(folder), "/bucket", recursive=True)
    yield "memory://bucket"
    system.rm("/bucket", recursive=True)


@pytest.fixture
def s3(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = {"endpoint_url": f"http://{host}:{port}", "key": "testing", "secret": "testing"}
    monkeypatch.setitem(fsspec.config.conf, "s3", options)
    system = fsspec.filesystem("s3", **options)
    bucket = f"bucket-{port}"
    system.mkdir(bucket)
    system.put(str(folder), f"{bucket}/data", recursive=True)
    yield f"s3://{bucket}/data"
    server.stop()


class Ranges(SimpleHTTPRequestHandler):
    """Serves a folder, ranges of its files too, and counts the bytes."""

    sent = 0

    def do_GET(self) -> None:  # noqa: D102 - the base class names it
        path = self.translate_path(self.path)
        with open(path, "rb") as file:  # noqa: PTH123 - a test server
            content = file.read()
        spec = self.headers.get("Range")
        first, last = 0, len(content) - 1
        if spec:
            low, _, high = spec.removeprefix("bytes=").partition("-")
            first, last = int(low), min(int(high or last), last)
        body = content[first : last + 1]
        self.send_response(206 if spec else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(body)))
        if spec:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.end_headers()
        self.wfile.write(body)
        type(self).sent += len(body)

    def log_message(self, *_: Any) -> None:  # noqa: D102 - likewise
        pass


@pytest.fixture
def http(folder: Path) -> Iterator[str]:
    Ranges.sent = 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *args: Ranges(*args, directory=str(folder)))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("store", ["memory", "s3"])
def test_stores(store: str, name: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue(store)
    assert lw.read_lengths(f"{url}/{name}").tolist() == LENGTHS
    assert lw.read_lengths(f"{url}/{name[:6]}*").tolist() == LENGTHS
    with pytest.raises(lw.LengthwiseError, match=f"bucket.*/no/{name} does not exist"):
        lw.read_lengths(f"{url}/no/{name}")


@pytest.mark.parametrize("name", NAMES[:-1])
def test_http(http: str, name: str) -> None:
    assert lw.read_lengths(f"{http}/{name}").tolist() == LENGTHS
    with pytest.raises(lw.LengthwiseError, match=f"no/{name} does not exist"):
        lw.read_lengths(f"{http}/no/{name}")


@pytest.mark.parametrize("name", NAMES)
def test_local_urls(folder: Path, name: str) -> None:
    assert lw.read_lengths((folder / name).as_uri()).tolist() == LENGTHS


def test_of_parquet_only_the_column_is_fetched(folder: Path, http: str) -> None:
    tokens = np.random.default_rng(0).integers(0, 1 << 30, 300_000)
    table = pa.table({"n": np.arange(30_000) % 50, "input_ids": tokens.reshape(-1, 10).tolist()})
    pq.write_table(table, folder / "large.parquet", use_dictionary=False)
    size = (folder / "large.parquet").stat().st_size
    assert lw.read_lengths(f"{http}/large.parquet", "n", check="none").tolist() == (np.arange(30_000) % 50).tolist()
    assert Ranges.sent < size / 4


def test_of_a_column_and_its_mask_the_mask_is_fetched(folder: Path, http: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "START", 1 << 17)
    sizes = np.arange(30_000) % 23
    ids = np.random.default_rng(0).integers(0, 1 << 30, sizes.sum())
    offsets = pa.array(np.append(0, np.cumsum(sizes)), pa.int32())
    table = pa.table(
        {
            "input_ids": pa.ListArray.from_arrays(offsets, pa.array(ids)),
            "attention_mask": pa.ListArray.from_arrays(offsets, pa.array(np.ones(sizes.sum(), bool))),
        }
    )
    for rows_in_page in (1 << 14, 1 << 20):
        pq.write_table(table, folder / "masked.parquet", use_dictionary=False, data_page_size=rows_in_page)
        Ranges.sent = 0
        assert lw.read_lengths(f"{http}/masked.parquet").tolist() == sizes.tolist()
        if rows_in_page == 1 << 14:
            assert Ranges.sent < (folder / "masked.parquet").stat().st_size / 4


def test_the_cache_of_a_url_knows_when_it_changes(memory: str, tmp_path: Path) -> None:
    url = f"{memory}/data.parquet"
    for cached in (False, True):
        lengths = lw.read_lengths(url, cache=tmp_path)
        assert lengths.tolist() == LENGTHS
        assert lengths.info is not None
        assert lengths.info.cached == cached
    with pytest.raises(lw.LengthwiseError, match="is not in a local folder; pass cache= a folder"):
        lw.read_lengths(url, cache=True)
    with fsspec.open(url, "wb") as file:
        pq.write_table(TABLE.slice(0, 5), file)
    assert lw.read_lengths(url, cache=tmp_path).tolist() == LENGTHS[:5]


def test_what_is_no_store() -> None:
    with pytest.raises(lw.LengthwiseError, match="nosuch://x cannot be read"):
        lw.read_lengths("nosuch://x")
