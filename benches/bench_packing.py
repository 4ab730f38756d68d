"""`lw.pack` against the packers that install from PyPI, every result checked before it is timed."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest

import lengthwise as lw
from lengthwise.story import story_lengths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

CAPACITY = 8192


def shuffled_story(samples: int) -> npt.NDArray[np.uint16]:
    """The story's lengths in random order, repeated to so many samples."""
    lengths = np.random.default_rng(0).permutation(story_lengths())
    return np.resize(lengths, samples)


def check(packs: Iterable[Any], lengths: npt.NDArray[Any], capacity: int) -> int:
    """Every sample once, no pack above its capacity; how many packs there are."""
    rows = [np.asarray(pack, np.int64) for pack in packs]
    indices = np.concatenate(rows)
    starts = np.cumsum([0, *map(len, rows)])[:-1]
    assert np.array_equal(np.sort(indices), np.arange(lengths.size))
    assert np.add.reduceat(lengths[indices].astype(np.int64), starts).max() <= capacity
    return len(rows)


def ours(lengths: npt.NDArray[Any], capacity: int) -> Iterable[Any]:
    return lw.pack(lengths, capacity)


def lightbinpack(lengths: npt.NDArray[Any], capacity: int) -> Iterable[Any]:
    return import_module("lightbinpack").pack(lengths.tolist(), capacity, strategy="obfd")


def seqpacker(lengths: npt.NDArray[Any], capacity: int) -> Iterable[Any]:
    return import_module("seqpacker").pack_sequences(lengths.astype(np.int64), capacity, strategy="obfd").bins


def trl(lengths: npt.NDArray[Any], capacity: int) -> Iterable[Any]:
    """TRL's `bfd` packing of a table whose only column says which sample a token is of."""
    import pyarrow as pa
    from trl.data_utils import pack_dataset

    datasets = import_module("datasets")
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int32)
    tokens = pa.array(np.repeat(np.arange(lengths.size, dtype=np.int32), lengths))
    table = pa.table({"input_ids": pa.ListArray.from_arrays(pa.array(offsets), tokens)})
    packed = pack_dataset(datasets.Dataset(table), capacity, "bfd", {"batch_size": lengths.size})
    column = packed.data.column("input_ids").combine_chunks()
    tokens, stops = column.flatten().to_numpy(), column.offsets.to_numpy()
    return [tokens[a:b][np.flatnonzero(np.diff(tokens[a:b], prepend=-1))] for a, b in pairwise(stops)]


def binpacking(lengths: npt.NDArray[Any], capacity: int) -> Iterable[Any]:
    sizes = dict(enumerate(lengths.tolist()))
    return [list(pack) for pack in import_module("binpacking").to_constant_volume(sizes, capacity)]


def prtpy(lengths: npt.NDArray[Any], capacity: int) -> Iterable[Any]:
    library = import_module("prtpy")
    sizes = dict(enumerate(lengths.tolist()))
    return library.pack(algorithm=library.packing.first_fit_decreasing, binsize=capacity, items=sizes)


PACKERS: dict[str, tuple[Callable[[npt.NDArray[Any], int], Iterable[Any]], int]] = {
    "lengthwise": (ours, 10**9),
    "lightbinpack": (lightbinpack, 10**6),
    "seqpacker": (seqpacker, 10**6),
    "trl": (trl, 10**5),
    "binpacking": (binpacking, 10**4),
    "prtpy": (prtpy, 10**4),
}


@pytest.mark.parametrize("samples", [10_000, 100_000, 902_087])
@pytest.mark.parametrize("name", PACKERS)
def test_best_fit(benchmark: Any, name: str, samples: int) -> None:
    """One capacity, the story's lengths; slow packers get fewer samples."""
    pack, most = PACKERS[name]
    if samples > most:
        pytest.skip(f"{name} would take minutes")
    if name != "lengthwise":
        pytest.importorskip(name)
    benchmark.group = f"pack {samples:,} samples"
    lengths = shuffled_story(samples)
    packs = check(pack(lengths, CAPACITY), lengths, CAPACITY)
    benchmark.extra_info["packs"] = packs
    benchmark.extra_info["lower bound"] = lw.pack(lengths, CAPACITY).lower_bound
    benchmark.pedantic(pack, (lengths, CAPACITY), rounds=5 if name == "lengthwise" else 1, warmup_rounds=1)


@pytest.mark.timeout(900)
def test_trl_at_full_size(benchmark: Any) -> None:
    """TRL's assignment alone, once: a table of one-byte tokens, and no dataset written to disk."""
    pa, data_utils = import_module("pyarrow"), pytest.importorskip("trl.data_utils")
    lengths = shuffled_story(902_087)
    benchmark.group = f"pack {lengths.size:,} samples"
    marks = (np.arange(lengths.size) % 251).astype(np.uint8)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int32))
    table = pa.table({"input_ids": pa.ListArray.from_arrays(offsets, pa.array(np.repeat(marks, lengths)))})
    assign = data_utils._pack_bfd  # noqa: SLF001
    packed = benchmark.pedantic(assign, (table, CAPACITY), rounds=1)
    column = packed["seq_lengths"].combine_chunks()
    parts, tokens = column.flatten().to_numpy(), packed["input_ids"].combine_chunks().flatten().to_numpy()
    # Samples of one length and mark are interchangeable: name them in order.
    found = np.argsort(parts.astype(np.int64) << 8 | tokens[np.cumsum(parts, dtype=np.int64) - parts], kind="stable")
    named = np.empty(lengths.size, np.int64)
    named[found] = np.argsort(lengths.astype(np.int64) << 8 | marks, kind="stable")
    assert np.array_equal(lengths[named], parts)
    stops = column.offsets.to_numpy()
    benchmark.extra_info["packs"] = check([named[a:b] for a, b in pairwise(stops)], lengths, CAPACITY)


@pytest.mark.parametrize(("samples", "capacity"), [(10_000_000, 8192), (100_000_000, 8192), (1_000_000, 131_072)])
def test_sizes(benchmark: Any, samples: int, capacity: int) -> None:
    """Many samples, and many distinct lengths."""
    benchmark.group = "pack at size"
    if capacity > CAPACITY:
        drawn = 9600 * np.exp(1.4 * np.random.default_rng(0).standard_normal(samples))
        lengths: npt.NDArray[Any] = np.clip(drawn, 1, capacity).astype(np.uint32)
    else:
        lengths = shuffled_story(samples)
    packs = lw.pack(lengths, capacity)
    assert packs.gap < 0.002
    benchmark.extra_info["packs"] = len(packs)
    benchmark.pedantic(lw.pack, (lengths, capacity), rounds=3)


@pytest.mark.parametrize("method", ["best_fit", "first_fit", "optimal", "sum_of_squares"])
def test_methods(benchmark: Any, method: Any) -> None:
    """No small samples, where decreasing best fit is 7 % above the optimum."""
    benchmark.group = "methods, lengths from a quarter to a half of the capacity"
    lengths = np.random.default_rng(0).integers(129, 257, 902_087).astype(np.uint16)
    packs = lw.pack(lengths, 512, method=method, seed=0)
    benchmark.extra_info["gap"] = packs.gap
    benchmark.pedantic(lw.pack, (lengths, 512), {"method": method, "seed": 0}, rounds=2)


@pytest.mark.parametrize("open_bins", [16, 64, 256])
def test_stream(benchmark: Any, open_bins: int) -> None:
    """A stream, in one call."""
    benchmark.group = "stream of 902,087 samples"
    lengths = shuffled_story(902_087)

    def run() -> lw.StreamPacker:
        packer = lw.StreamPacker(CAPACITY, open_bins)
        packer.extend(lengths)
        return packer

    benchmark.pedantic(run, rounds=3)


def test_epoch(benchmark: Any) -> None:
    """A packed epoch for eight ranks: fresh identities, shuffled packs."""
    benchmark.group = "packed epoch of 902,087 samples"
    planner = lw.Planner(shuffled_story(902_087), lw.Packed(CAPACITY), world_size=8)
    benchmark.pedantic(planner.plan, (1,), rounds=5, warmup_rounds=1)
