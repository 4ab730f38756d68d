"""Batches of streams: every row once, within limits, shared out, resumed within a window."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, IterableDataset
from torchdata.stateful_dataloader import StatefulDataLoader

import lengthwise as lw
from lengthwise.torch import StreamBatches

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")

LENGTHS: list[int] = np.random.default_rng(7).integers(1, 60, 300).tolist()
#: Rows that tell their number: row i is `LENGTHS[i]` times i.
ROWS = [{"input_ids": [row] * length} for row, length in enumerate(LENGTHS)]
LAYOUT = lw.Padded(max_tokens=300, boundaries=[20, 40, 60])


class Source(IterableDataset[dict[str, Any]]):
    """Rows one after another; counts how many were read."""

    def __init__(self, rows: list[dict[str, Any]] = ROWS) -> None:
        self.rows = rows
        self.read = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for row in self.rows:
            self.read += 1
            yield row


class StatefulSource(Source):
    """The same with a state of its own, as readers of files have."""

    place = 0
    pending = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self.place, self.pending = self.pending, 0
        while self.place < len(self.rows):
            self.place += 1
            self.read += 1
            yield self.rows[self.place - 1]

    def state_dict(self) -> dict[str, int]:  # noqa: D102
        return {"place": self.place}

    def load_state_dict(self, state: dict[str, int]) -> None:  # noqa: D102
        self.pending = state["place"]


def stream(source: Any = None, **options: Any) -> StreamBatches:
    return StreamBatches(Source() if source is None else source, LAYOUT, **{"window": 70, **options})


def packs(source: Any = None, **options: Any) -> StreamBatches:
    layout = options.pop("layout", lw.Packed(100, multiple_of=8))
    return StreamBatches(Source() if source is None else source, layout, **{"window": 5, **options})


def numbers(batches: Any) -> list[list[int]]:
    return [[row["input_ids"][0] for row in batch] for batch in batches]


def flat(batches: Any) -> list[int]:
    return sorted(row for batch in numbers(batches) for row in batch)


def goes_on(start: Any) -> list[list[int]]:
    """Check that loaders made by `start` go on where others were stopped; return what one sees that is not."""
    whole = numbers(start())
    for stop in (1, len(whole) // 2, len(whole) - 1):
        loader = start()
        first = numbers(itertools.islice(loader, stop))
        again = start()
        again.load_state_dict(loader.state_dict())
        assert first + numbers(again) == whole
    return whole


@given(
    lengths=st.lists(st.integers(1, 60), max_size=150),
    window=st.integers(1, 60),
    world_size=st.integers(1, 4),
    layout=st.sampled_from([LAYOUT, lw.Packed(100)]),
)
@settings(deadline=None, max_examples=40)
def test_ranks_see_every_row_once_within_limits(lengths: list[int], window: int, world_size: int, layout: Any) -> None:
    rows = [{"input_ids": [row] * length} for row, length in enumerate(lengths)]
    seen = []
    for rank in range(world_size):
        for batch in StreamBatches(rows, layout, window=window, rank=rank, world_size=world_size):
            sizes = [len(row["input_ids"]) for row in batch]
            assert sum(sizes) <= 100 if layout is not LAYOUT else max(sizes) * len(sizes) <= 300
            seen += [row["input_ids"][0] for row in batch]
    assert sorted(seen) == list(range(len(lengths)))


def test_the_order_is_of_seed_and_epoch_alone() -> None:
    first = numbers(stream())
    assert numbers(stream()) == first
    other = stream()
    other.set_epoch(1)
    assert numbers(other) != first != numbers(stream(seed=1))
    assert flat(other) == list(range(300))


def test_a_window_is_all_that_is_held() -> None:
    source = Source()
    iterator = iter(stream(source))
    next(iterator)
    assert source.read == 70


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("persistent", [False, True])
def test_workers_share_the_rows_in_every_epoch(workers: int, persistent: bool) -> None:  # noqa: FBT001
    batches = stream()
    loader = DataLoader(batches, batch_size=None, collate_fn=list, num_workers=workers, persistent_workers=persistent)
    seen = []
    for epoch in range(2):
        batches.set_epoch(epoch)
        seen.append(numbers(loader))
        assert sorted(itertools.chain(*seen[-1])) == list(range(300))
    assert seen[0] != seen[1]


def test_packs_are_filled_as_rows_come() -> None:
    packer = lw.StreamPacker(100, 5, multiple_of=8)
    expected = [pack.tolist() for part in (packer.extend(LENGTHS), packer.finish()) for pack in part]
    assert numbers(packs()) == expected


def test_open_packs_are_all_that_is_held() -> None:
    """Between two batches: a block of rows, and what 5 open packs of 100 tokens hold."""
    source = Source([{"input_ids": [row] * (1 + row % 60)} for row in range(20_000)])
    given = 0
    for batch in packs(source):
        given += len(batch)
        assert source.read - given <= 256 + 5 * 100 // 8
    assert given == 20_000


@pytest.mark.parametrize("source", [Source, StatefulSource])
@pytest.mark.parametrize("options", [{}, {"layout": lw.Packed(25), "overlong": "split"}, {"rank": 1, "world_size": 3}])
def test_packs_go_on_with_what_is_open(
    source: type[Source], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lengthwise.torch.stream_parts.OpenPacks.size", 16)
    monkeypatch.setattr("lengthwise.torch.stream_parts.PLACES", 4)
    whole = [[row["input_ids"] for row in batch] for batch in packs(source(), **options)]
    state, seen = packs(source(), **options).state_dict(), []
    for number, _ in enumerate(whole):
        reader = source()
        batches = packs(reader, **options)
        batches.load_state_dict(json.loads(json.dumps(state)))
        seen.append([row["input_ids"] for row in next(iter(batches))])
        state = batches.state_dict()
        assert reader.read <= 300
        assert source is Source or number < len(whole) - 10 or reader.read < 200, "only what is open is read again"
    assert seen == whole


@pytest.mark.parametrize("workers", [0, 2])
def test_stateful_loaders_save_packs(workers: int) -> None:
    def start() -> Any:
        return StatefulDataLoader(packs(batches=90), batch_size=None, collate_fn=list, num_workers=workers)

    goes_on(start)


@given(
    lengths=st.lists(st.integers(0, 70), max_size=80),
    overlong=st.sampled_from(["drop", "truncate", "split"]),
    multiple_of=st.sampled_from([1, 8]),
)
@settings(deadline=None, max_examples=40)
def test_packs_keep_limits_and_every_token(lengths: list[int], overlong: Any, multiple_of: int) -> None:
    rows = [{"input_ids": [row] * length} for row, length in enumerate(lengths)]
    seen: dict[int, int] = {}
    for batch in StreamBatches(rows, lw.Packed(30, multiple_of=multiple_of), overlong=overlong, window=3):
        assert sum(-(-len(row["input_ids"]) // multiple_of) * multiple_of for row in batch) <= 30
        for row in batch:
            for token in row["input_ids"]:
                seen[token] = seen.get(token, 0) + 1
    limit = 30 - 30 % multiple_of
    kept = {"drop": [n * (n <= limit) for n in lengths], "truncate": [min(n, limit) for n in lengths], "split": lengths}
    assert seen == {row: tokens for row, tokens in enumerate(kept[overlong]) if tokens}


@pytest.mark.parametrize("source", [Source, StatefulSource])
def test_it_goes_on_within_a_window(source: type[Source]) -> None:
    whole = numbers(stream(source()))
    for stop in range(0, len(whole), 3):
        batches = stream(source())
        first = numbers(itertools.islice(batches, stop))
        state = json.loads(json.dumps(batches.state_dict()))
        reader = source()
        again = stream(reader)
        again.load_state_dict(state)
        assert first + numbers(again) == whole
        assert reader.read <= (300 if source is Source else 300 - 70 * (state["blocks"]))
        assert numbers(again) == whole, "the position is used once"


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("batches", [None, 60])
def test_stateful_loaders_save_it(workers: int, batches: int | None) -> None:
    def start() -> Any:
        return StatefulDataLoader(stream(batches=batches), batch_size=None, collate_fn=list, num_workers=workers)

    goes_on(start)


def test_a_finished_epoch_is_followed_by_the_next() -> None:
    batches = stream()
    assert flat(batches) == list(range(300))
    again = stream()
    again.load_state_dict(batches.state_dict())
    assert again.epoch == 1
    batches.set_epoch(1)
    assert numbers(again) == numbers(batches)


@pytest.mark.parametrize("workers", [0, 2])
def test_stateful_loaders_go_on_with_the_next_epoch(workers: int) -> None:
    def start(epoch: int) -> Any:
        batches = stream()
        batches.set_epoch(epoch)
        return StatefulDataLoader(batches, batch_size=None, collate_fn=list, num_workers=workers)

    loader = start(0)
    assert flat(loader) == list(range(300))
    again = start(1)
    again.load_state_dict(loader.state_dict())
    assert numbers(again) == numbers(start(1)) != numbers(start(0))


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("count", [1, 7, 100])
def test_ranks_run_in_step_where_the_count_is_fixed(workers: int, count: int) -> None:
    for rank in range(2):
        batches = stream(batches=count, rank=rank, world_size=2)
        loader = DataLoader(batches, batch_size=None, collate_fn=list, num_workers=min(workers, 2))
        assert len(numbers(loader)) == count == len(batches) == len(loader)


@pytest.mark.parametrize(("make", "workers"), [(stream, 0), (stream, 2), (packs, 2)])
def test_sources_that_share_themselves_out(make: Any, workers: int) -> None:
    def start() -> Any:
        source = Dataset.from_list(ROWS).to_iterable_dataset(num_shards=4)
        batches = make(source, share="source")
        return StatefulDataLoader(batches, batch_size=None, collate_fn=list, num_workers=workers)

    assert sorted(itertools.chain(*goes_on(start))) == list(range(300))


def test_long_rows_are_cut() -> None:
    rows = [{"input_ids": list(range(100))}]
    batches = list(StreamBatches(rows, lw.Packed(30), overlong="split"))
    assert sorted(token for batch in batches for row in batch for token in row["input_ids"]) == list(range(100))
    assert all(sum(len(row["input_ids"]) for row in batch) <= 30 for batch in batches)


def test_lengths_may_be_told() -> None:
    rows = [{"text": "a b c", "n": 3}, {"text": "d", "n": 1}]
    for length in ("n", lambda row: len(row["text"].split())):
        assert sum(len(batch) for batch in StreamBatches(rows, LAYOUT, length=length)) == 2
    with pytest.raises(lw.LengthwiseError, match=r"row 0 of the stream has the fields \['n', 'text'\]"):
        next(iter(StreamBatches(rows, LAYOUT)))


def test_misuse_is_refused() -> None:
    for option in ({"window": 0}, {"batches": 0}):
        with pytest.raises(lw.LengthwiseError, match=f"{next(iter(option))} is 0, but must be at least 1"):
            stream(**option)
    with pytest.raises(lw.LengthwiseError, match='share is 3, but must be "rows" or "source"'):
        stream(share=3)
    with pytest.raises(lw.LengthwiseError, match="rank is 2"):
        stream(rank=2, world_size=2)
    with pytest.raises(TypeError, match="give batches="):
        len(stream())
    with pytest.raises(lw.LengthwiseError, match="no row for this worker"):
        list(stream(Source(ROWS[:1]), batches=3, rank=1, world_size=2))
    hub = Dataset.from_list(ROWS).to_iterable_dataset()
    with pytest.raises(lw.LengthwiseError, match='give share="source"'):
        next(iter(stream(hub, rank=0, world_size=2)))
    with pytest.raises(lw.LengthwiseError, match=r"row 0 of the stream is \d+ tokens, but a pack holds 40; choose"):
        list(packs(layout=lw.Packed(40)))
    with pytest.raises(lw.LengthwiseError, match='method="optimal" needs every length beforehand'):
        packs(layout=lw.Packed(100, method="optimal"))
    with pytest.raises(lw.LengthwiseError, match="limits and groups are given for each sample beforehand"):
        packs(layout=lw.Packed(100, groups=[0] * 300))
    with pytest.raises(lw.LengthwiseError, match='overlong="alone" would exceed the capacity'):
        packs(overlong="alone")
    with pytest.raises(lw.LengthwiseError, match="window is 20000"):
        packs(window=20_000)
    with pytest.raises(lw.LengthwiseError, match=r"max_tokens"):
        list(StreamBatches(ROWS, lw.Padded(max_tokens=10, boundaries=[60])))


def test_states_of_other_streams_are_refused() -> None:
    state = stream().state_dict()
    with pytest.raises(lw.LengthwiseError, match=r'state\["seed"\] is 0, but this stream has 1'):
        stream(seed=1).load_state_dict(state)
    with pytest.raises(lw.LengthwiseError, match=r'state\["parts"\] is 1, but this stream has 2'):
        stream(rank=0, world_size=2).load_state_dict(state)
    with pytest.raises(lw.LengthwiseError, match=r'state\["version"\] is 9'):
        stream().load_state_dict(state | {"version": 9})
    with pytest.raises(lw.LengthwiseError, match=r'state\["batch"\] is -1, but must be a count; it is damaged'):
        stream().load_state_dict(state | {"batch": -1})
    with pytest.raises(lw.LengthwiseError, match=r'state\["open"\] is 3, but must be a dict or None'):
        stream().load_state_dict(state | {"open": 3})
    with pytest.raises(lw.LengthwiseError, match=r'state\["layout"\] is .*packed.* but this stream has .*padded'):
        stream().load_state_dict(packs().state_dict())
    del state["yielded"]
    with pytest.raises(lw.LengthwiseError, match=r'state\["yielded"\] is missing'):
        stream().load_state_dict(state)
