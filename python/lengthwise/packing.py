"""Packing: samples laid end to end in rows of a fixed capacity, near-optimally and with a proof of how near."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from lengthwise._arrays import MAX_LENGTH, as_lengths
from lengthwise._core import LengthwiseError, Packer
from lengthwise._integers import as_integer
from lengthwise._pack_items import NO_CAP, pack_items

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt
    from matplotlib.axes import Axes


#: How packs are decided; see `pack`.
PackMethod = Literal["auto", "best_fit", "concat", "first_fit", "next_fit", "optimal", "sum_of_squares"]

#: What happens to a sample that is longer than a pack; see `pack`.
PackOverlong = Literal["error", "drop", "truncate", "split"]

#: Elementary steps of the optimising methods for each second of a `time_limit`: a core takes 1 to 2 billion.
STEPS_PER_SECOND: Final = 1_000_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Packs:
    """Packs of samples, as arrays.

    Pack `i` holds the samples `indices[offsets[i]:offsets[i + 1]]`, which is also `packs[i]`. Iterating gives one array
    a pack; both are views.

    Attributes:
        indices: uint32[m], sample numbers, pack after pack.
        offsets: int64[p + 1], where each pack starts in `indices`; the last is m.
        segments: uint32[m, 2] or None: the (start, stop) tokens of its sample that each entry of `indices` stands for.
            None where every entry is a whole sample.
        capacity: the most tokens in a pack.
        real_tokens: tokens in all packs, alignment left out.
        lower_bound: no packing of these samples under the same options has fewer packs: a proof, not an estimate.
        dropped: uint32[d], ascending: samples in no pack (`overlong="drop"`).
        method: what decided the packs.
    """

    indices: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int64]
    segments: npt.NDArray[np.uint32] | None
    capacity: int
    real_tokens: int
    lower_bound: int
    dropped: npt.NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))
    method: str = "best_fit"

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """int64[p]: how many entries each pack has."""
        return np.diff(self.offsets)

    @property
    def efficiency(self) -> float:
        """Real tokens over the tokens of all packs, from 0 to 1; 1 for no packs at all."""
        room = len(self) * self.capacity
        return self.real_tokens / room if room else 1.0

    @property
    def gap(self) -> float:
        """The most that these packs can be above the fewest possible: packs / lower_bound - 1."""
        return len(self) / self.lower_bound - 1 if self.lower_bound else 0.0

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, pack: int) -> npt.NDArray[np.uint32]:
        number = as_integer(pack, "pack", -(2**63), 2**63 - 1)
        number += len(self) if number < 0 else 0
        if not 0 <= number < len(self):
            raise IndexError(f"pack {pack} of {len(self)}")
        return self.indices[self.offsets[number] : self.offsets[number + 1]]

    def __iter__(self) -> Iterator[npt.NDArray[np.uint32]]:
        return (self.indices[start:stop] for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True))

    def _facts(self) -> dict[str, str]:
        facts = {
            "packs": f"{len(self):,}",
            "samples": f"{self.indices.size:,}"
            if self.segments is None
            else f"{self.indices.size:,} (whole or in part)",
            "capacity": f"{self.capacity:,} tokens",
            "full": f"{100 * self.efficiency:.3f} %",
            "fewest possible": f"at least {self.lower_bound:,} (gap at most {100 * self.gap:.3f} %)",
        }
        return facts | ({"dropped": f"{self.dropped.size:,}"} if self.dropped.size else {})

    def __repr__(self) -> str:
        return (
            f"Packs({len(self):,} packs of {self.capacity:,} tokens, {100 * self.efficiency:.3f} % full, "
            f"lower bound {self.lower_bound:,}, gap {100 * self.gap:.3f} %)"
        )

    def plot(self, lengths: Any, ax: Axes | None = None) -> Axes:
        """Draw how many packs are how full; needs matplotlib.

        Args:
            lengths: integers[n], what was packed.
            ax: matplotlib axes to draw on; a new figure by default.

        Raises:
            LengthwiseError: matplotlib is not installed.
        """
        from lengthwise.plots import plot_packs

        return plot_packs(self, lengths, ax)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in self._facts().items()
        )
        return f"<table><caption>Packs ({escape(self.method)})</caption>{rows}</table>"


def pack(
    lengths: Any,
    capacity: int,
    *,
    method: PackMethod = "best_fit",
    max_samples: int | None = None,
    multiple_of: int = 1,
    overlong: PackOverlong = "error",
    seed: int | None = None,
    time_limit: float = 10.0,
    limits: Mapping[str, tuple[Any, int]] | None = None,
    groups: Any = None,
) -> Packs:
    """Lay samples end to end in as few rows of `capacity` tokens as the method finds.

    Methods:
        - `"best_fit"`: best fit decreasing, exactly the textbook's packs. With `max_samples`, where best fit is up to
          45 % above the bound, the better of it and of worst fit into the fewest packs that a search finds.
        - `"first_fit"`, `"next_fit"`: first and next fit decreasing, exactly the textbook's packs, in its order.
        - `"optimal"`: column generation (Gilmore and Gomory 1961), rounded; never more packs than best fit, and its
          bound is certified in exact arithmetic. Up to about 600 distinct sizes and a capacity of 2,048 it usually ends
          within a few packs of the bound; above, sizes are grouped, and a gap of 0.1 to 0.2 % remains.
        - `"sum_of_squares"`: in the order of the samples (random with `seed`), so that which lengths share a pack
          varies too: see `StreamPacker`; 256 packs are open at a time. A quarter of a microsecond a sample.
        - `"concat"`: one stream of all samples, cut every `capacity` tokens: a baseline to compare with. It keeps no
          other limit, cuts a sample at nearly every end of a pack, and always gives segments.
        - `"auto"`: best fit; where the bound leaves more than 0.1 % to gain, Sum of Squares in one random order with
          1,024 open packs (the story: 0.03 % instead of 0.15 % above the bound, in a third of a second); where that is
          not enough, `"optimal"`.

    Args:
        lengths: integers[n], in tokens, fewer than 2**32 - 1 samples. Samples of length 0 are allowed: they occupy
            nothing and join packs that there are, but count for `max_samples`.
        capacity: the most tokens in a pack, 1 to 2**31 - 1. A hard limit.
        method: see above.
        max_samples: the most samples in a pack, or None.
        multiple_of: every sample occupies a multiple of this many tokens (2 x context-parallel ranks, say).
        overlong: what happens to a sample that is longer than a pack: `"error"`; `"drop"` it (listed in `dropped`);
            `"truncate"` it to its first `capacity` tokens; or `"split"` it into pieces of `capacity` tokens, whose
            remainder is packed with the rest, so that no other sample is cut (Ding et al., ICML 2024). Where
            `multiple_of` does not divide `capacity`, the largest multiple below takes its place.
        seed: 0 to 2**64 - 1: which sample takes which of the places of its size is drawn at random, with the same
            sizes in every pack (or the order of samples is, for the methods that pack in order); None for no chance.
        time_limit: about how many seconds `"optimal"` and `"auto"` may take, on one core of an ordinary machine. It is
            a limit of work, not of the clock, so that the result is the same on every machine and rank.
        limits: more hard limits, by name: (one count for each sample, the most in a pack). Images, or attention cost:
            `{"images": (counts, 8), "attention": (lengths.astype("u8") ** 2, 2**27)}`.
        groups: integers or strings[n]: samples of one label stay together in one pack (preference pairs, answers to one
            prompt); in it they stand next to each other.

        With `limits`, and with `groups` under a cap, packing goes sample by sample: the better of best fit and of
        worst fit; `method` must be `"best_fit"` or `"auto"`. With either, `overlong` must be `"error"`, `"drop"` (a
        whole group) or, without groups, `"truncate"`.

    Returns:
        Packs, deterministic: the same for the same arguments on every machine.

    Raises:
        LengthwiseError: an argument that cannot be used, or an over-long sample under `"error"`; the message says
            which.

    Cost: the decision is made on the distinct lengths and takes 1 to 25 ms for any number of samples (up to 0.2 s with
    `first_fit` on 100,000 distinct lengths or with `max_samples`); writing the packs takes 5 to 10 ns a sample.
    Memory: 8 bytes a sample and 8 a pack. The lower bound is the larger of the total and of Martello and Toth's L2
    (Discrete Applied Mathematics 28, 1990).

    Example:
        >>> import lengthwise as lw
        >>> packs = lw.pack([5, 4, 3, 2, 6], capacity=8)
        >>> packs
        Packs(3 packs of 8 tokens, 83.333 % full, lower bound 3, gap 0.000 %)
        >>> [pack.tolist() for pack in packs]
        [[4, 3], [0, 2], [1]]
    """
    lengths = as_lengths(lengths)
    capacity = as_integer(capacity, "capacity", 1, MAX_LENGTH, "pass the tokens of one row")
    options = as_options(
        capacity,
        method=method,
        max_samples=max_samples,
        multiple_of=multiple_of,
        overlong=one_of(overlong, "overlong", get_args(PackOverlong)),
        time_limit=time_limit,
    )
    seed = None if seed is None else as_integer(seed, "seed", 0, 2**64 - 1, "or None")
    if limits or groups is not None:
        packed = pack_items(lengths, capacity, options, limits=limits, groups=groups, seed=seed)
        indices, before = packed.items.expand(packed.indices)
        return Packs(
            indices,
            before[packed.offsets],
            packed.segments(indices),
            capacity,
            int(packed.tokens[indices].sum(dtype=np.uint64)),
            packed.lower_bound,
            packed.dropped,
            method,
        )
    packer = Packer(lengths, capacity=capacity, **options)
    indices, offsets, segments, dropped = packer.packs(lengths, seed)
    return Packs(indices, offsets, segments, capacity, packer.real_tokens, packer.lower_bound, dropped, method)


def one_of(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`; else a LengthwiseError lists them."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise LengthwiseError(f"{name} is {value!r:.60}, but must be one of {listed}")
    return value


def as_options(
    capacity: int, *, method: Any, max_samples: Any, multiple_of: Any, overlong: str, time_limit: Any
) -> dict[str, Any]:
    """Return the options of the core's packer, checked; `overlong` is."""
    return {
        "method": one_of(method, "method", get_args(PackMethod)),
        "max_samples": NO_CAP
        if max_samples is None
        else as_integer(max_samples, "max_samples", 1, NO_CAP - 1, "or None"),
        "multiple_of": as_integer(multiple_of, "multiple_of", 1, capacity, "pass 1 for no alignment"),
        "overlong": overlong,
        "work": as_work(time_limit),
    }


def as_work(time_limit: Any) -> int:
    """Return the steps that a time limit in seconds allows."""
    if isinstance(time_limit, bool) or not isinstance(time_limit, (int, float)) or not 0 <= time_limit <= 1e9:
        raise LengthwiseError(f"time_limit is {time_limit!r:.60}, but must be seconds from 0 to 1e9")
    return int(time_limit * STEPS_PER_SECOND)
