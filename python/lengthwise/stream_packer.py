"""Packing a stream whose lengths are not known in advance, in bounded memory."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise import _core
from lengthwise._arrays import MAX_LENGTH, as_lengths
from lengthwise._core import LengthwiseError
from lengthwise._integers import as_integer
from lengthwise._pack_items import NO_CAP

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

#: The version of `StreamPacker.state_dict`.
STATE_VERSION: Final = 1


class ClosedPacks:
    """Packs that are finished: `len()`, indexing and iteration give one array of sample numbers a pack.

    Attributes:
        samples: uint64[m], numbers of samples, counted from 0 as they came.
        offsets: int64[p + 1]: pack i is `samples[offsets[i]:offsets[i + 1]]`.
    """

    def __init__(self, samples: npt.NDArray[np.uint64], offsets: npt.NDArray[np.int64]) -> None:
        self.samples = samples
        self.offsets = offsets

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, pack: int) -> npt.NDArray[np.uint64]:
        number = range(len(self))[pack]
        return self.samples[self.offsets[number] : self.offsets[number + 1]]

    def __iter__(self) -> Iterator[npt.NDArray[np.uint64]]:
        return (self.samples[start:stop] for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True))

    def __repr__(self) -> str:
        return f"ClosedPacks({len(self):,} packs of {self.samples.size:,} samples)"


class StreamPacker:
    """Packs samples as they come, with at most `open_bins` packs open.

    The rule is Sum of Squares (Csirik, Johnson, Kenyon, Orlin, Shor and Weber, JACM 53, 2006): it keeps the open packs
    spread over all levels, so that the next sample nearly always completes one. When there are too many, the fullest is
    closed; they are never flushed together. On lengths with many short samples packs are 99.9 % full with 16 open bins
    and 99.98 % with 64; where few samples fill a pack, more open bins are needed (the story, 3.9 samples a pack: 99.0 %
    with 64, 99.97 % with 1,024).

    Args:
        capacity: the most tokens in a pack. A hard limit.
        open_bins: the most packs that are open between two samples, 1 to 16,384. A sample waits for as long as its pack
            is open.
        max_samples: the most samples in a pack, or None.
        multiple_of: every sample occupies a multiple of this many tokens.

    Samples have numbers, counted from 0 as they come: the caller keeps what they stand for until their pack is closed.
    Deterministic: the same lengths give the same packs, however they are cut into calls.

    Raises:
        LengthwiseError: a limit that no pack can satisfy.

    Cost: 60 to 100 ns a sample through `extend`, 240 with 1,024 open bins; each call of `add` takes 10 us more. Memory:
    2 bytes for each token of the capacity, up to 2 MiB, and 8 bytes for each sample in an open pack.

    Example:
        >>> import lengthwise as lw
        >>> packer = lw.StreamPacker(8, open_bins=2)
        >>> [pack.tolist() for length in (5, 4, 3, 7, 6) for pack in packer.add(length)]
        [[0, 2], [3]]
        >>> [pack.tolist() for pack in packer.finish()]
        [[4], [1]]
    """

    def __init__(
        self, capacity: int, open_bins: int = 64, *, max_samples: int | None = None, multiple_of: int = 1
    ) -> None:
        self.capacity = as_integer(capacity, "capacity", 1, MAX_LENGTH, "pass the tokens of one row")
        self.open_bins = as_integer(open_bins, "open_bins", 1, 16_384)
        self.max_samples = None if max_samples is None else as_integer(max_samples, "max_samples", 1, NO_CAP - 1)
        self.multiple_of = as_integer(multiple_of, "multiple_of", 1, self.capacity, "pass 1 for no alignment")
        self._core = _core.StreamPacker(
            capacity=self.capacity,
            open_packs=self.open_bins,
            max_samples=NO_CAP if self.max_samples is None else self.max_samples,
            multiple_of=self.multiple_of,
        )

    def add(self, length: int) -> list[npt.NDArray[np.uint64]]:
        """Put the next sample, of `length` tokens, into a pack.

        Returns:
            The packs that this closes: none or one uint64[k], the numbers of its samples.

        Raises:
            LengthwiseError: the sample is longer than a pack; nothing has changed then.
        """
        return list(self.extend(np.array([as_integer(length, "length", 0, MAX_LENGTH)], np.uint32)))

    def extend(self, lengths: Any) -> ClosedPacks:
        """Put the next samples into packs: the same as `add` for each, and much faster.

        Args:
            lengths: integers[n], in tokens.

        Raises:
            LengthwiseError: a sample is longer than a pack; nothing has changed then.
        """
        return ClosedPacks(*self._core.extend(as_lengths(lengths)))

    def finish(self) -> ClosedPacks:
        """Close all open packs, two and more of them together where they fit. More samples may follow."""
        return ClosedPacks(*self._core.finish())

    def __len__(self) -> int:
        """Return how many packs are open."""
        return self._core.state()[0].size

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain values: what is open, and how many samples came."""
        fills, offsets, samples, count = self._core.state()
        return {
            "version": STATE_VERSION,
            "options": self._options(),
            "samples": count,
            "fills": fills.tolist(),
            "open": [samples[start:stop].tolist() for start, stop in pairwise(offsets)],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict()` of a packer with the same options.

        Raises:
            LengthwiseError: the state is of another version or other options, or damaged; nothing has changed then.
        """
        if state.get("version") != STATE_VERSION:
            raise LengthwiseError(f"state has version {state.get('version')!r}, but this is version {STATE_VERSION}")
        if state.get("options") != self._options():
            raise LengthwiseError(f"state is of options {state.get('options')!r}, but these are {self._options()}")
        try:
            contents = [np.array(samples, np.uint64) for samples in state["open"]]
            offsets = np.cumsum([0, *map(len, contents)], dtype=np.int64)
            samples = np.concatenate(contents) if contents else np.empty(0, np.uint64)
            self._core.resume(np.array(state["fills"], np.uint32), offsets, samples, state["samples"])
        except (KeyError, TypeError, OverflowError) as error:
            raise LengthwiseError(f"state is damaged: {error!r}") from error

    def _options(self) -> dict[str, Any]:
        return {
            "capacity": self.capacity,
            "open_bins": self.open_bins,
            "max_samples": self.max_samples,
            "multiple_of": self.multiple_of,
        }
