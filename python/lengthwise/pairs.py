"""Samples with two lengths as a layout: source and target, audio and text."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from lengthwise import _core
from lengthwise._arrays import MAX_LENGTH, as_pairs
from lengthwise._choices import as_choice, as_flag
from lengthwise._core import LengthwiseError
from lengthwise._integers import as_integer
from lengthwise.cells import choose_cells
from lengthwise.layouts import UNLIMITED, EpochPlanner, PadTo, PlanArrays, Settings, full_batch, set_integers
from lengthwise.stripes import Stripes

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from lengthwise._arrays import Lengths

#: Cells of a plan with `cells=None`.
DEFAULT_CELLS: Final = 32
#: Samples that are looked at together: what is computed of them fits a cache.
BLOCK: Final = 2**18
#: A larger weight would let sums of tokens leave 64 bits.
MAX_WEIGHT: Final = 2**16 - 1


@dataclass(frozen=True)
class PaddedPairs:
    """Batches of samples with two lengths, padded in both, under one budget.

    A sample that is padded to x by y counts as x + y tokens. Samples are shuffled inside cells of similar lengths, and
    every batch is of one cell. The lengths are integers[n, 2], as `read_lengths(..., combine="stack")` returns them;
    `plan.padded_lengths` is uint32[b, 2], `plan.real_tokens` and all of `plan.summary` count both lengths together.

    Args:
        max_tokens: the budget: the most padded tokens in a batch, of both lengths, after rounding. A hard limit.
        cells: how many cells to use at most, up to 1,024, by default 32 (torch's compiler recompiles at most 8 shapes
            by default); they are chosen for samples to be padded least: see `lengthwise.cells`. Or the cells
            themselves: integers[k, 2], inclusive upper bounds, or `Stripes`. A sample is of the cheapest cell that
            holds it; one that fits no cell is over-long.
        weights: how many tokens one unit of each length counts as, so that (1, 8) counts a token as much as eight
            frames. Integers from 1 to 65,535.
        max_samples: the most samples in a batch.
        multiple_of: padded lengths are rounded up to a multiple of this; one number, or one for each length.
        samples_multiple_of: batch sizes are multiples of this, or less than it where fewer samples fit or are left.
        pad_to: "longest" pads each length to the longest of the batch; "boundary" to the bounds of the cell, so that a
            cell has one shape (`batch_size` tells its batch size), for compilers and CUDA graphs.
        last_batch: what happens to the last batch of a cell when more samples would fit: "keep" it, or "drop" it.
        longest_first: whether the step with the batch whose samples occupy most tokens comes first, so that what does
            not fit the memory fails at once.

    Over-long samples are settled by the planner: "error", "drop" or "alone"; a pair has no one place to cut at. The
    second coefficient of the planner's `cost` counts the squares of both lengths.

    Raises:
        LengthwiseError: an argument of the wrong type or out of range, by name.

    Cost: once, 0.1 to 1 s to choose cells; then 5 to 10 ns a sample for each plan. 2 bytes a sample are kept.

    Example:
        >>> import lengthwise as lw
        >>> pairs = [[10, 5], [11, 5], [10, 40], [11, 39], [30, 6], [31, 50]]
        >>> layout = lw.PaddedPairs(110, cells=[[11, 5], [11, 40], [31, 50]], pad_to="boundary")
        >>> plan = lw.Planner(pairs, layout).plan(epoch=0)
        >>> sorted(zip(plan.padded_lengths.tolist(), [sorted(batch.tolist()) for batch in plan]))
        [([11, 5], [0, 1]), ([11, 40], [2, 3]), ([31, 50], [4]), ([31, 50], [5])]
    """

    max_tokens: int
    _: KW_ONLY
    cells: Any = None
    weights: tuple[int, int] = (1, 1)
    max_samples: int | None = None
    multiple_of: int | tuple[int, int] = 1
    samples_multiple_of: int = 1
    pad_to: PadTo = "longest"
    last_batch: Literal["keep", "drop"] = "keep"
    longest_first: bool = True

    def __post_init__(self) -> None:
        set_integers(self, max_tokens=2**63 - 1, max_samples=UNLIMITED, samples_multiple_of=UNLIMITED)
        as_choice(self.pad_to, "pad_to", get_args(PadTo))
        as_choice(self.last_batch, "last_batch", ("keep", "drop"))
        as_flag(self.longest_first, "longest_first")
        if isinstance(self.multiple_of, (tuple, list)):
            object.__setattr__(self, "multiple_of", _as_two(self.multiple_of, "multiple_of", MAX_LENGTH))
        else:
            set_integers(self, multiple_of=MAX_LENGTH)
        object.__setattr__(self, "weights", _as_two(self.weights, "weights", MAX_WEIGHT))
        object.__setattr__(self, "cells", _as_cells(self.cells))
        least = int(self.tokens_of(np.array(self.multiples)))
        if least > self.max_tokens:
            raise LengthwiseError(
                f"max_tokens is {self.max_tokens}, but the shortest padded sample is {least} tokens; no sample fits"
            )

    @property
    def multiples(self) -> tuple[int, int]:
        """What each padded length is a multiple of."""
        return self.multiple_of if isinstance(self.multiple_of, tuple) else (self.multiple_of, self.multiple_of)

    @property
    def config(self) -> dict[str, Any]:
        """The layout as plain values: numbers, strings, lists and None."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
        if isinstance(self.cells, tuple):
            values["cells"] = [list(cell) for cell in self.cells]
        return {"layout": "padded_pairs", **values}

    def batch_size(self, padded_lengths: tuple[int, int]) -> int:
        """Return how many samples of one padded shape a full batch holds.

        Example:
            >>> PaddedPairs(65_536, weights=(1, 8)).batch_size((1600, 80))
            29
        """
        return full_batch(self, int(self.tokens_of(np.array(padded_lengths))))

    def as_lengths(self, lengths: Any) -> Lengths:
        """Return lengths as this layout takes them: integers[n, 2]."""
        return as_pairs(lengths)

    def sample_tokens(self, lengths: Lengths) -> Lengths:
        """uint32[n]: both lengths of each sample together."""
        tokens = np.empty(len(lengths), np.uint32)
        for start in range(0, len(lengths), BLOCK):
            block = slice(start, start + BLOCK)
            # What is longer is dropped, or refused by the planner.
            tokens[block] = np.minimum(self.tokens_of(lengths[block]), MAX_LENGTH)
        return tokens

    def tokens_of(self, shapes: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
        """uint64[...]: what a sample of each shape [..., 2] counts in the budget."""
        first, second = (np.uint64(weight) for weight in self.weights)
        tokens: npt.NDArray[np.uint64] = shapes[..., 0].astype(np.uint64) * first
        tokens += shapes[..., 1].astype(np.uint64) * second
        return tokens

    def prepare(self, lengths: Lengths, settings: Settings) -> EpochPlanner:
        """Look at the lengths once and check everything that can be wrong."""
        return _PairPlanner(self, lengths, settings)

    def batch_tokens(
        self, sizes: npt.NDArray[np.uint32], padded_lengths: npt.NDArray[np.uint32]
    ) -> npt.NDArray[np.uint64]:
        """Padded tokens of each batch, of both lengths together."""
        return np.multiply(sizes, self.tokens_of(padded_lengths), dtype=np.uint64)

    def batch_squares(self, batches: Any, lengths: Lengths) -> npt.NDArray[np.float64]:
        """float64[b]: the sum of the squares of both lengths of each batch: attention computes the padding too."""
        del lengths
        squares: npt.NDArray[np.float64] = batches.sizes * (batches.padded_lengths.astype(np.float64) ** 2).sum(axis=1)
        return squares


def _as_two(values: Any, name: str, high: int) -> tuple[int, int]:
    if not isinstance(values, (tuple, list, np.ndarray)) or len(values) != 2:
        raise LengthwiseError(f"{name} is {values!r:.60}, but must be two integers, one for each length")
    first, second = (as_integer(value, f"{name}[{side}]", 1, high) for side, value in enumerate(values))
    return first, second


def _as_cells(cells: Any) -> Any:
    """Cells as a value that compares, hashes and prints: a tuple of pairs, a number or None."""
    if cells is None:
        return None
    if isinstance(cells, Stripes):
        cells = cells.shapes
    array = cells if isinstance(cells, (tuple, list)) else np.asarray(cells)
    if isinstance(array, np.ndarray) and array.ndim == 0:
        return as_integer(cells, "cells", 1, 1024, "or integers[k, 2], or what optimal_stripes returned")
    return tuple((first, second) for first, second in as_pairs(array, "cells").tolist())


class _PairPlanner:
    """`PaddedPairs` made ready for one set of lengths."""

    def __init__(self, layout: PaddedPairs, lengths: Lengths, settings: Settings) -> None:
        self._core = _core.PairPlanner(
            lengths.ravel(),
            cells=_cells(layout, lengths, settings.overlong).tolist(),
            max_tokens=layout.max_tokens,
            max_samples=UNLIMITED if layout.max_samples is None else layout.max_samples,
            multiple_of=layout.multiples,
            samples_multiple_of=layout.samples_multiple_of,
            weights=layout.weights,
            pad_to=layout.pad_to,
            last_batch=layout.last_batch,
            longest_first=layout.longest_first,
            **settings._asdict(),
        )
        self.boundaries = self._core.cells

    def plan(self, lengths: Lengths, epoch: int) -> PlanArrays:
        return PlanArrays(*self._core.plan(lengths.ravel(), epoch))


def _rounded(shapes: npt.NDArray[Any], layout: PaddedPairs) -> npt.NDArray[np.int64]:
    """int64[..., 2]: what these lengths are padded to where they are the longest of their batch."""
    multiples = np.array(layout.multiples)
    rounded: npt.NDArray[np.int64] = -(-np.maximum(shapes.astype(np.int64), 1) // multiples) * multiples
    return rounded


def _cells(layout: PaddedPairs, lengths: Lengths, overlong: str) -> npt.NDArray[np.uint32]:
    """The cells in use; where the layout leaves the choice, good ones for the samples that fit a batch."""
    if isinstance(layout.cells, tuple):
        return np.array(layout.cells, dtype=np.uint32).reshape(-1, 2)
    if not len(lengths):
        raise LengthwiseError("lengths is empty, but a plan needs at least one sample")
    limit = min(layout.max_tokens, MAX_LENGTH)

    def blocks() -> Iterator[npt.NDArray[np.int64]]:
        """Padded lengths of the samples that fit a batch."""
        for start in range(0, len(lengths), BLOCK):
            padded = _rounded(lengths[start : start + BLOCK], layout)
            fits = layout.tokens_of(padded) <= limit
            if fits.any():
                yield padded[fits]

    counted = [(len(block), block.max(axis=0)) for block in blocks()]
    if not counted:
        return np.array([layout.multiples], dtype=np.uint32)
    # With an over-long sample that is an error, there is no plan: the core says which sample it is.
    if overlong == "error" and sum(samples for samples, _ in counted) < len(lengths):
        return np.array([np.max([longest for _, longest in counted], axis=0)], dtype=np.uint32)
    wanted = DEFAULT_CELLS if layout.cells is None else layout.cells
    fixed = layout.pad_to == "boundary"
    cells, unheld = choose_cells(blocks, wanted, weights=layout.weights, limit=limit if fixed else None)
    if unheld:
        raise LengthwiseError(
            f"cells is {wanted}, but then samples ({unheld:,}) would need a cell of more than max_tokens="
            f'{layout.max_tokens}; use more cells, a larger budget or pad_to="longest"'
        )
    return cells
