"""What `pack` does beyond one limit and single samples: several limits at once, and samples that stay together."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from lengthwise._arrays import as_lengths
from lengthwise._core import LengthwiseError, Packer, pack_limited
from lengthwise._integers import as_integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from lengthwise._arrays import Lengths

#: "No cap" for the core.
NO_CAP: Final = 2**32 - 1


class PerSample:
    """One value a sample as a part of a layout: compares, hashes and prints by its fingerprint.

    Attributes:
        values: [n].
    """

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    @classmethod
    def of(cls, values: Any, name: str) -> PerSample:
        """Return `values` as such a part.

        Raises:
            LengthwiseError: it is a fingerprint, which a plan's file has in place of the values.
        """
        if isinstance(values, str):
            raise LengthwiseError(
                f"{name} is {values!r}, a fingerprint, but must have one value for each sample; read the plan without "
                "lengths, or plan again with the values"
            )
        return values if isinstance(values, PerSample) else cls(values)

    @cached_property
    def fingerprint(self) -> str:
        """32 hexadecimal digits: the same for the same integers of any type, or for labels with the same order."""
        labels = self.values if self.values.dtype.kind in "iu" else np.unique(self.values, return_inverse=True)[1]
        return hashlib.sha256(labels.astype("<i8" if labels.dtype.kind == "i" else "<u8").tobytes()).hexdigest()[:32]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PerSample) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"<{self.values.size:,} values {self.fingerprint}>"


class Items(NamedTuple):
    """What is packed as one: single samples, or groups of them.

    Attributes:
        tokens: uint64[k], what each item occupies.
        first: int64[k + 1], where its samples start in `samples`.
        samples: int64[n], sample numbers, item after item.
        names: what an item is called in messages: the group labels, or None for single samples.
    """

    tokens: npt.NDArray[np.uint64]
    first: npt.NDArray[np.int64]
    samples: npt.NDArray[np.int64]
    names: npt.NDArray[Any] | None

    def total(self, values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """uint64[k]: the sum of one value a sample over each item."""
        return np.add.reduceat(values[self.samples], self.first[:-1]) if self.tokens.size else values[:0]

    def keep(self, kept: npt.NDArray[np.bool_]) -> Items:
        """Return the items that are kept."""
        sizes = np.diff(self.first)
        first = np.concatenate([[0], np.cumsum(sizes[kept])])
        names = None if self.names is None else self.names[kept]
        return Items(self.tokens[kept], first, self.samples[np.repeat(kept, sizes)], names)

    def expand(self, indices: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Return the samples of the items `indices` one after another, and where each item's start."""
        sizes = np.diff(self.first)[indices]
        before = np.concatenate([[0], np.cumsum(sizes)])
        within = np.arange(before[-1]) - np.repeat(before[:-1], sizes)
        samples = self.samples[np.repeat(self.first[:-1][indices], sizes) + within]
        return samples.astype(np.uint32), before


class ItemPacks(NamedTuple):
    """Packs of items, before their samples are named.

    Attributes:
        items: what is packed.
        totals: uint64[k] of everything that is limited, the tokens first.
        indices: uint32[k], items, pack after pack.
        offsets: int64[p + 1], where each pack starts.
        lower_bound: no packing has fewer packs.
        tokens: integers[n], the tokens of each sample that are used.
        dropped: uint32[d], ascending: samples of no item.
        truncated: samples of which only a part is used.
    """

    items: Items
    totals: list[npt.NDArray[np.uint64]]
    indices: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int64]
    lower_bound: int
    tokens: npt.NDArray[Any]
    dropped: npt.NDArray[np.uint32]
    truncated: int

    @property
    def kinds(self) -> npt.NDArray[np.uint32]:
        """uint32[k]: items of one number have the same totals, so that they can take each other's places."""
        kinds = np.zeros(self.items.tokens.size, np.int64)
        for total in self.totals:
            values, value = np.unique(total, return_inverse=True)
            kinds = np.unique(kinds * values.size + value, return_inverse=True)[1]
        return kinds.astype(np.uint32)

    def segments(self, samples: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32] | None:
        """uint32[m, 2], the tokens used of each of `samples`; None where all are used whole."""
        if not self.truncated:
            return None
        stops = self.tokens[samples].astype(np.uint32)
        return np.stack([np.zeros_like(stops), stops], axis=1)


def as_items(tokens: npt.NDArray[np.uint64], groups: Any) -> Items:
    """Single samples, or those of one label in `groups` together, in the order of first labels."""
    n = tokens.size
    if groups is None:
        return Items(tokens, np.arange(n + 1), np.arange(n), None)
    labels = PerSample.of(groups, "groups").values
    if labels.shape != (n,) or labels.dtype.kind not in "iuUSb":
        raise LengthwiseError(
            f"groups must be {n} integers or strings, one for each sample, got {labels.dtype}{list(labels.shape)}"
        )
    names, group = np.unique(labels, return_inverse=True)
    samples = np.argsort(group, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=names.size))]) if n else np.zeros(1, np.int64)
    items = Items(np.zeros(names.size, np.uint64), first, samples, names)
    return items._replace(tokens=items.total(tokens))


def as_pairs(limits: Mapping[str, Any]) -> Iterator[tuple[str, PerSample, Any]]:
    """Yield (name, counts, the most in a pack) of every limit as it was given."""
    for name, pair in dict(limits).items():
        try:
            counts, most = pair
        except (TypeError, ValueError) as error:
            raise LengthwiseError(
                f"limits[{name!r}] must be (one count for each sample, the most in a pack)"
            ) from error
        yield name, PerSample.of(counts, f"limits[{name!r}][0]"), most


def as_limits(limits: Mapping[str, tuple[Any, int]] | None, n: int) -> list[tuple[str, npt.NDArray[np.uint64], int]]:
    """(name, uint64[n], the most in a pack) of every limit beside the tokens."""
    checked = []
    for name, counts, given in as_pairs(limits or {}):
        most = as_integer(given, f"limits[{name!r}][1]", 1, 2**63 - 1)
        array = counts.values
        if array.dtype != np.uint64 or array.ndim != 1:
            array = as_lengths(array, f"limits[{name!r}][0]")
        if array.size != n:
            raise LengthwiseError(f"limits[{name!r}][0] has {array.size} counts, but there are {n} samples")
        over = np.flatnonzero(array > np.uint64(most))
        if over.size:
            raise LengthwiseError(
                f"limits[{name!r}][0][{over[0]}] is {array[over[0]]}, but a pack holds {most}; "
                "raise the limit or leave the sample out"
            )
        checked.append((name, np.ascontiguousarray(array, np.uint64), most))
    return checked


def pack_items(
    lengths: Lengths,
    capacity: int,
    options: Mapping[str, Any],
    *,
    limits: Mapping[str, tuple[Any, int]] | None,
    groups: Any,
    seed: int | None,
) -> ItemPacks:
    """Pack under several limits, or with samples that stay together; `options` as the core's packer takes them."""
    step, cap, overlong = options["multiple_of"], options["max_samples"], options["overlong"]
    usable = capacity // step * step
    checked = as_limits(limits, lengths.size)
    if overlong not in ("error", "drop") and (overlong != "truncate" or groups is not None):
        allowed = '"error", "drop" or "truncate"' if groups is None else '"error" or "drop"'
        raise LengthwiseError(f"overlong is {overlong!r}, but with limits or groups it must be {allowed}")
    kept = np.minimum(lengths, usable) if overlong == "truncate" else lengths
    aligned = (kept.astype(np.uint64) + np.uint64(step - 1)) // np.uint64(step) * np.uint64(step)
    items = as_items(aligned, groups)
    fits = items.tokens <= usable
    if overlong == "error" and not fits.all():
        raise LengthwiseError(_too_long(items, int(np.argmin(fits)), lengths, usable))
    dropped = np.sort(items.samples[~np.repeat(fits, np.diff(items.first))]).astype(np.uint32)
    items = items.keep(fits)
    limited = [("max_samples", np.ones(lengths.size, np.uint64), cap)] if cap < NO_CAP else []
    totals = [
        ("capacity", items.tokens, usable),
        *((name, items.total(v), most) for name, v, most in limited + checked),
    ]
    if len(totals) > 1:
        indices, offsets, lower_bound = _by_limits(items, totals, options["method"], seed)
    else:
        tokens = items.tokens.astype(np.uint32)
        packer = Packer(tokens, capacity=usable, **{**options, "multiple_of": 1, "overlong": "error"})
        indices, offsets, _, _ = packer.packs(tokens, seed)
        lower_bound = packer.lower_bound
    return ItemPacks(
        items=items,
        totals=[total for _, total, _ in totals],
        indices=indices,
        offsets=offsets,
        lower_bound=lower_bound,
        tokens=kept,
        dropped=dropped,
        truncated=int((lengths > usable).sum()) if overlong == "truncate" else 0,
    )


def _by_limits(
    items: Items, totals: list[tuple[str, npt.NDArray[np.uint64], int]], method: str, seed: int | None
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], int]:
    if method not in ("best_fit", "auto"):
        raise LengthwiseError(f'method is {method!r}, but several limits are packed in one way; choose "auto"')
    for name, values, most in totals:
        over = np.flatnonzero(values > np.uint64(most))
        if over.size and items.names is not None:
            raise LengthwiseError(
                f"groups has label {items.names[over[0]]} with {values[over[0]]} of {name} together, "
                f"but a pack holds {most}; split the group or raise the limit"
            )
    return pack_limited([(np.ascontiguousarray(values), most) for _, values, most in totals], seed)


def _too_long(items: Items, item: int, lengths: Lengths, usable: int) -> str:
    if items.names is None:
        return (
            f"lengths[{item}] is {lengths[item]} tokens, but a pack holds {usable}; "
            'choose overlong="truncate" or "drop", or a larger capacity'
        )
    samples = items.first[item + 1] - items.first[item]
    return (
        f"groups has label {items.names[item]} on {samples} samples of {items.tokens[item]} tokens together, "
        f'but a pack holds {usable}; choose overlong="drop", split the group, or raise the capacity'
    )
