"""What `pack` does beyond one limit and single samples: several limits at once, and samples that stay together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lengthwise._arrays import as_lengths
from lengthwise._core import LengthwiseError
from lengthwise._integers import as_integer

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt


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

    def expand(
        self, indices: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Packs of items as packs of samples."""
        sizes = np.diff(self.first)[indices]
        before = np.concatenate([[0], np.cumsum(sizes)])
        within = np.arange(before[-1]) - np.repeat(before[:-1], sizes)
        samples = self.samples[np.repeat(self.first[:-1][indices], sizes) + within]
        return samples.astype(np.uint32), before[offsets]


def as_items(tokens: npt.NDArray[np.uint64], groups: Any) -> Items:
    """Single samples, or those of one label in `groups` together, in the order of first labels."""
    n = tokens.size
    if groups is None:
        return Items(tokens, np.arange(n + 1), np.arange(n), None)
    labels = np.asarray(groups)
    if labels.shape != (n,) or labels.dtype.kind not in "iuUSb":
        raise LengthwiseError(
            f"groups must be {n} integers or strings, one for each sample, got {labels.dtype}{list(labels.shape)}"
        )
    names, group = np.unique(labels, return_inverse=True)
    samples = np.argsort(group, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=names.size))]) if n else np.zeros(1, np.int64)
    items = Items(np.zeros(names.size, np.uint64), first, samples, names)
    return items._replace(tokens=items.total(tokens))


def as_limits(limits: Mapping[str, tuple[Any, int]] | None, n: int) -> list[tuple[str, npt.NDArray[np.uint64], int]]:
    """(name, uint64[n], the most in a pack) of every limit beside the tokens."""
    checked = []
    for name, pair in (limits or {}).items():
        try:
            values, most = pair
        except (TypeError, ValueError) as error:
            raise LengthwiseError(
                f"limits[{name!r}] must be (one count for each sample, the most in a pack)"
            ) from error
        most = as_integer(most, f"limits[{name!r}][1]", 1, 2**63 - 1)
        array = np.asarray(values)
        if array.dtype != np.uint64 or array.ndim != 1:
            array = as_lengths(values, f"limits[{name!r}][0]")
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
