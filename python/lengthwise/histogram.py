"""How many samples have each length.

Planning functions that need only counts take a histogram in place of lengths. Histograms of shards add up to that of
the dataset, in any order, so a dataset of any size is counted in memory for its distinct lengths alone.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import pairwise
from operator import mul
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise._arrays import MAX_LENGTH, as_lengths
from lengthwise._core import LengthwiseError, histogram
from lengthwise.progress import Progress, reporter
from lengthwise.sources.base import reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

#: So many samples and more are refused: sums of two histograms then fit 64 bits.
MAX_SAMPLES: Final = 2**62
PERCENTILES: Final = (0, 10, 25, 50, 75, 90, 95, 99, 100)


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts by length.

    Attributes:
        lengths: uint32[m], distinct, ascending, in tokens.
        counts: uint64[m], how many samples have each, at least 1.

    Raises:
        LengthwiseError: the arrays are not as above.

    Examples:
        >>> import lengthwise as lw
        >>> lw.Histogram.of([7, 3, 7]) + lw.Histogram.of([3, 9])
        Histogram(5 samples, 29 tokens, 3 distinct lengths from 3 to 9)
    """

    lengths: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.uint64]

    def __post_init__(self) -> None:
        lengths = as_lengths(self.lengths, "Histogram.lengths").astype(np.uint32)
        counts = np.asarray(self.counts)
        if counts.dtype.kind not in "iu" and counts.size:
            raise LengthwiseError(f"Histogram.counts must be integers, got dtype {counts.dtype}")
        if lengths.shape != counts.shape:
            raise LengthwiseError(f"Histogram has {lengths.shape} lengths, but {counts.shape} counts")
        if np.any(lengths[1:] <= lengths[:-1]):
            raise LengthwiseError("Histogram.lengths must ascend without repeats; see Histogram.of")
        if np.any(counts < 1):
            raise LengthwiseError(f"Histogram.counts[{int(np.argmax(counts < 1))}] must be at least 1")
        counts = counts.astype(np.uint64)
        if counts.sum(dtype=np.float64) >= MAX_SAMPLES:
            raise LengthwiseError("Histogram.counts sum to more than the limit of 2^62 samples")
        for name, array in (("lengths", lengths), ("counts", counts)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def of(cls, source: Any, column: str | Sequence[str] | None = None, *, progress: Progress = None) -> Histogram:
        """Count lengths, part by part: memory is bounded by the largest part and the distinct lengths.

        Args:
            source: lengths, or anything that `read_lengths` reads; a histogram is returned as it is.
            column: as in `read_lengths`.
            progress: as in `read_lengths`.

        Raises:
            LengthwiseError: as `read_lengths`.

        Examples:
            >>> import lengthwise as lw
            >>> lw.Histogram.of([7, 3, 7]).counts
            array([1, 2], dtype=uint64)
        """
        if isinstance(source, cls):
            return source
        if isinstance(source, np.ndarray):
            return cls._count(source)
        from lengthwise.lengths import read_lengths
        from lengthwise.sources import open_source
        from lengthwise.sources.collect import blocks
        from lengthwise.sources.columns import choose, named

        opened = open_source(source)
        if opened.order is not None or not isinstance(column, str | None):
            return cls._count(read_lengths(opened, column, progress=progress))
        field = choose(opened, "tokens")[0] if column is None else named(opened, column, "tokens")
        report = reporter(progress, opened.rows, opened.where)
        total = cls(np.empty(0, np.uint32), np.empty(0, np.uint64))
        rows = 0
        for part in opened.read(field):
            for block in blocks(part, opened.where, rows):
                if block.nulls.size:
                    raise LengthwiseError(
                        f"row {rows + block.nulls[0]} of {opened.where} is null in {field.path!r}; read it with "
                        f"read_lengths and nulls=, then count"
                    )
                total += cls._count(block.values)
                rows += len(block.values)
                report(rows, opened.rows)
        return total

    @classmethod
    def _count(cls, array: npt.NDArray[Any]) -> Histogram:
        return cls(*histogram(as_lengths(array)))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the counts as an Arrow IPC file with the columns length (uint32) and count (uint64).

        Raises:
            LengthwiseError: the file cannot be written.
        """
        import pyarrow as pa
        from pyarrow import feather

        table = pa.table({"length": self.lengths, "count": self.counts})
        with reading(os.fspath(path), "pass a path that can be written"):
            feather.write_feather(table, os.fspath(path), compression="uncompressed")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Histogram:
        """Read what `write` wrote.

        Raises:
            LengthwiseError: the file is of another kind, or damaged.

        Examples:
            >>> import lengthwise as lw
            >>> from pathlib import Path
            >>> from tempfile import TemporaryDirectory
            >>> with TemporaryDirectory() as folder:
            ...     lw.Histogram.of([7, 3, 7]).write(Path(folder) / "counts.arrow")
            ...     lw.Histogram.read(Path(folder) / "counts.arrow")
            Histogram(3 samples, 17 tokens, 2 distinct lengths from 3 to 7)
        """
        from lengthwise.sources.arrays import as_numpy, whole
        from lengthwise.sources.ipc import open_file

        where = os.fspath(path)
        with reading(where, "it may be damaged: write it again with Histogram.write"):
            table = open_file(where).read_all()
            table.validate(full=True)
            lengths, counts = (as_numpy(whole(table.column(name))) for name in ("length", "count"))
            return cls(lengths, counts)

    @property
    def samples(self) -> int:
        """How many samples were counted."""
        return int(self.counts.sum())

    @property
    def tokens(self) -> int:
        """The sum of their lengths."""
        return sum(map(mul, self.lengths.tolist(), self.counts.tolist()))

    def __len__(self) -> int:
        """How many distinct lengths there are."""
        return len(self.lengths)

    def __add__(self, other: object) -> Histogram:
        if not isinstance(other, Histogram):
            return NotImplemented
        both = np.concatenate([self.lengths, other.lengths])
        lengths, where = np.unique(both, return_inverse=True)
        counts = np.zeros(len(lengths), np.uint64)
        np.add.at(counts, where, np.concatenate([self.counts, other.counts]))
        return Histogram(lengths, counts)

    def __radd__(self, other: object) -> Histogram:
        # sum() starts from 0.
        return self if other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Histogram):
            return NotImplemented
        return np.array_equal(self.lengths, other.lengths) and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if not len(self):
            return "Histogram(0 samples)"
        span = f"{len(self)} distinct lengths from {self.lengths[0]} to {self.lengths[-1]}"
        return f"Histogram({self.samples} samples, {self.tokens} tokens, {span})"

    def expand(self) -> npt.NDArray[np.uint32]:
        """Return uint32[samples], ascending: lengths that have this histogram."""
        return np.repeat(self.lengths, self.counts.astype(np.int64))

    def percentile(self, percent: float) -> int:
        """Return the length at rank floor(percent / 100 * (samples - 1)) of the sorted lengths.

        Raises:
            LengthwiseError: no samples, or `percent` outside 0 to 100.
        """
        if not len(self):
            raise LengthwiseError("an empty histogram has no percentiles")
        if not 0 <= percent <= 100:
            raise LengthwiseError(f"percent is {percent}, but must be from 0 to 100")
        rank = int(percent / 100 * (self.samples - 1))
        return int(self.lengths[np.searchsorted(np.cumsum(self.counts), rank, side="right")])

    def describe(self, edges: Any = None) -> Description:
        """Return percentiles and the number of samples in ranges of length.

        Args:
            edges: ascending lengths at which ranges begin and end; powers of two from 256 by default.

        Raises:
            LengthwiseError: the edges do not ascend, or are no lengths.

        Examples:
            >>> import lengthwise as lw
            >>> print(lw.Histogram.of([65, 637, 1035, 1727, 8191]).describe())
            5 samples, 11,655 tokens, mean 2331.0
            min 65 · P10 65 · P25 637 · P50 1,035 · P75 1,727 · P90 1,727 · P95 1,727 · P99 1,727 · max 8,191
            [0, 256)             1   20.0%
            [512, 1,024)         1   20.0%
            [1,024, 2,048)       2   40.0%
            [4,096, 8,192)       1   20.0%
        """
        percentiles = {percent: self.percentile(percent) for percent in PERCENTILES} if len(self) else {}
        bounds = self._edges() if edges is None else as_lengths(edges, "edges").tolist()
        if any(low >= high for low, high in pairwise(bounds)):
            raise LengthwiseError(f"edges must ascend without repeats, got {bounds}")
        below = np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int64)
        at = below[np.searchsorted(self.lengths, bounds)]
        ranges = [
            (low, high, int(count)) for low, high, count in zip(bounds, bounds[1:], np.diff(at), strict=False) if count
        ]
        return Description(self.samples, self.tokens, percentiles, tuple(ranges))

    def _edges(self) -> list[int]:
        edges = [0, 256]
        while len(self) and edges[-1] <= int(self.lengths[-1]) <= MAX_LENGTH:
            edges.append(edges[-1] * 2)
        return edges


@dataclass(frozen=True)
class Description:
    """A length distribution in a few numbers; `print` it.

    Attributes:
        samples: how many.
        tokens: the sum of their lengths.
        percentiles: length by percent (0 and 100 are the shortest and the longest).
        ranges: (from, to, samples), `to` exclusive, ranges without samples left out.
    """

    samples: int
    tokens: int
    percentiles: dict[int, int]
    ranges: tuple[tuple[int, int, int], ...]

    @property
    def mean(self) -> float:
        """Tokens a sample, 0 where there are none."""
        return self.tokens / self.samples if self.samples else 0.0

    def __str__(self) -> str:
        lines = [f"{self.samples:,} samples, {self.tokens:,} tokens, mean {self.mean:.1f}"]
        if self.percentiles:
            names = {0: "min", 100: "max"}
            shown = (f"{names.get(at, f'P{at}')} {value:,}" for at, value in self.percentiles.items())
            lines.append(" · ".join(shown))
        for low, high, count in self.ranges:
            span = f"[{low:,}, {high:,})"
            lines.append(f"{span:<16}{count:>6,}  {count / self.samples:>6.1%}")
        return "\n".join(lines)
