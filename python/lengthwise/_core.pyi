"""The planning core in Rust. Private: the functions of the package check, convert and document."""

from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from lengthwise._arrays import Lengths

__all__ = [
    "Candidates",
    "LengthwiseError",
    "PackedPlanner",
    "Packer",
    "PaddedPlanner",
    "PairPlanner",
    "StreamPacker",
    "__version__",
    "arrange",
    "balance",
    "batchmates",
    "descend_cells",
    "fill_from_array",
    "fill_from_lengths",
    "fill_from_levels",
    "fill_from_stream",
    "fingerprint",
    "histogram",
    "in_running_order",
    "of_one_shape",
    "pack_limited",
    "plan_chunks",
    "real_tokens",
    "squared_lengths",
    "stripes",
    "unset_bits",
]

#: Null rows or None, the bits that some length has, those that all have.
_Filled: TypeAlias = tuple[npt.NDArray[np.int64] | None, int, int]
#: Indices, starts, sizes, padded lengths (of pairs [b, 2]), segments or None, accounts.
_PlanArrays: TypeAlias = tuple[
    npt.NDArray[np.uint32] | npt.NDArray[np.uint64],
    npt.NDArray[np.int64],
    npt.NDArray[np.uint32],
    npt.NDArray[np.uint32],
    npt.NDArray[np.uint32] | None,
    dict[str, int],
    npt.NDArray[np.uint64] | None,
]
__version__: str

class LengthwiseError(ValueError):
    """An argument or a file that lengthwise cannot use: the message says which, where, what it is, and what to do."""

@final
class Candidates:
    """Where boundaries may lie; every question about boundaries is asked of it."""

    def __new__(
        cls, lengths: npt.NDArray[np.uint32], counts: npt.NDArray[np.uint64], multiple_of: int, include: list[int]
    ) -> Candidates: ...
    def arrays(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
        """The bounds and the samples at each."""
    def solve(
        self,
        objective: str,
        costs: npt.NDArray[np.uint64] | None,
        limits: tuple[int, int, int, int],
        *,
        k: int | None,
        overhead: int,
        min_count: int,
        max_ratio: float,
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64], int, int | None]:
        """The best `k` boundaries, or as many as are worth `overhead` each."""
    def descend(self, limits: tuple[int, int, int, int], k: int | None, overhead: int) -> npt.NDArray[np.uint32]:
        """Boundaries for batches padded to their longest sample: nearly the best ones, found much sooner."""
    def curve(
        self,
        objective: str,
        costs: npt.NDArray[np.uint64] | None,
        limits: tuple[int, int, int, int],
        *,
        most: int,
        min_count: int,
        max_ratio: float,
    ) -> list[tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64], int, int | None]]:
        """The best boundaries of every number up to `most` that the constraints allow."""
    @property
    def real_tokens(self) -> int:
        """The sum of all lengths."""

@final
class Packer:
    """A packing that has been decided, ready to name samples as often as is wanted."""

    def __new__(
        cls,
        lengths: Lengths,
        *,
        capacity: int,
        method: str,
        max_samples: int,
        multiple_of: int,
        overlong: str,
        work: int,
    ) -> Packer: ...
    @staticmethod
    def given(
        kinds: npt.NDArray[np.uint32],
        indices: npt.NDArray[np.uint32],
        offsets: npt.NDArray[np.int64],
        *,
        capacity: int,
    ) -> Packer:
        """Packs that were decided elsewhere; samples of one kind may take each other's places."""

    def packs(
        self, lengths: Lengths, seed: int | None
    ) -> tuple[
        npt.NDArray[np.uint32], npt.NDArray[np.int64], npt.NDArray[np.uint32] | None, npt.NDArray[np.uint32]
    ]: ...
    @property
    def lower_bound(self) -> int: ...
    @property
    def real_tokens(self) -> int: ...

@final
class PackedPlanner:
    """Everything about the packed epochs of one set of lengths that is the same in each."""

    def __new__(
        cls,
        packer: Packer,
        *,
        pad_to: str,
        seed: int,
        world_size: int,
        accumulate: int,
        remainder: str,
        count_tokens: bool,
    ) -> PackedPlanner: ...
    def plan(self, lengths: Lengths, epoch: int) -> _PlanArrays:
        """One epoch: indices, starts, sizes, padded lengths, segments, accounts, real tokens if they are counted."""

@final
class StreamPacker:
    """Packs a stream of lengths in bounded memory."""

    def __new__(cls, *, capacity: int, open_packs: int, max_samples: int, multiple_of: int) -> StreamPacker: ...
    def extend(self, lengths: Lengths) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]: ...
    def finish(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]: ...
    def state(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], npt.NDArray[np.uint64], int]: ...
    def resume(
        self,
        fills: npt.NDArray[np.uint32],
        offsets: npt.NDArray[np.int64],
        samples: npt.NDArray[np.uint64],
        next: int,
    ) -> None: ...

def plan_chunks(
    lengths: Lengths, max_tokens: int, chunk: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.int64], int]: ...
def pack_limited(
    limits: list[tuple[npt.NDArray[np.uint64], int]], seed: int | None
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], int]: ...

@final
class PaddedPlanner:
    """Everything about the epochs of one layout over one set of lengths that is the same in each."""

    def __new__(
        cls,
        lengths: Lengths,
        *,
        boundaries: npt.NDArray[np.uint32],
        max_tokens: int,
        max_samples: int,
        multiple_of: int,
        samples_multiple_of: int,
        pad_to: str,
        order: str,
        last_batch: str,
        longest_first: bool,
        seed: int,
        world_size: int,
        accumulate: int,
        overlong: str,
        remainder: str,
        threads: int,
        count_tokens: bool,
    ) -> PaddedPlanner: ...
    def plan(self, lengths: Lengths, epoch: int) -> _PlanArrays:
        """One epoch: indices, starts, sizes, padded lengths, segments, accounts, real tokens if they are counted."""

@final
class PairPlanner:
    """Everything about the epochs of pairs of lengths that is the same in each."""

    def __new__(
        cls,
        lengths: Lengths,
        *,
        cells: list[list[int]],
        max_tokens: int,
        max_samples: int,
        multiple_of: tuple[int, int],
        samples_multiple_of: int,
        weights: tuple[int, int],
        pad_to: str,
        last_batch: str,
        longest_first: bool,
        seed: int,
        world_size: int,
        accumulate: int,
        overlong: str,
        remainder: str,
        threads: int,
        count_tokens: bool,
    ) -> PairPlanner:
        """`lengths` are both lengths of one sample after those of another."""
    @property
    def cells(self) -> npt.NDArray[np.uint32]:
        """uint32[k, 2]: the bounds of the cells, the cheapest first: the first that holds a sample is its own."""
    def plan(self, lengths: Lengths, epoch: int) -> _PlanArrays:
        """One epoch; padded lengths are uint32[b, 2]."""

def balance(
    costs: npt.NDArray[np.uint64],
    parts: int,
    equal_count: bool,
    sizes: npt.NDArray[np.uint64] | None,
    most: int,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], npt.NDArray[np.uint64], int]:
    """Divide items into parts of near-equal cost; `sizes` beside `most` limits what a part holds."""

def fill_from_array(out: npt.NDArray[np.uint32], array: object, format: str) -> _Filled:
    """Lengths of the lists in a pyarrow array, of a type named as in Arrow's C interface, into `out`."""

def fill_from_lengths(out: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> None:
    """Lengths in another width, checked, into `out`."""

def fill_from_levels(
    out: npt.NDArray[np.uint32],
    done: int,
    repetition: npt.NDArray[np.uint8],
    definition: npt.NDArray[np.uint8],
    entries: int,
    levels: tuple[int, int, int, int, int],
) -> int:
    """Lengths of a page's rows into `out[done:]`; how many rows are done by then comes back."""

def fill_from_stream(out: npt.NDArray[np.uint32], stream: object, format: str) -> _Filled:
    """The same of the chunks in an `arrow_array_stream` capsule of pyarrow."""

def fingerprint(lengths: Lengths) -> str:
    """32 hexadecimal digits that tell these lengths from others, whatever integers store them."""

def histogram(lengths: Lengths) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]: ...
def stripes(
    counts: npt.NDArray[np.uint64], costs: npt.NDArray[np.uint64], width: int, k: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint32], int, int]:
    """The cheapest `k` cells in stripes of rows; rows and columns are counted from 1."""

def descend_cells(
    counts: npt.NDArray[np.uint64], costs: npt.NDArray[np.uint64], width: int, cells: list[list[int]]
) -> tuple[list[list[int]], int, int]:
    """Cells of a grid whose bounds are moved while that saves anything: (cells, samples that none holds, cost)."""

def real_tokens(
    table: tuple[npt.NDArray[np.uint32] | npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.uint32]],
    lengths: Lengths,
) -> npt.NDArray[np.uint64]:
    """Real tokens of every batch of the table (indices, starts, sizes)."""

def squared_lengths(
    table: tuple[npt.NDArray[np.uint32] | npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.uint32]],
    lengths: Lengths,
) -> npt.NDArray[np.float64]:
    """The sum of the squared lengths of every batch of the table."""

def batchmates(
    now: tuple[npt.NDArray[np.uint32] | npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.uint32]],
    next: tuple[npt.NDArray[np.uint32] | npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.uint32]],
    samples: int,
) -> tuple[int, int]:
    """Of the pairs of samples that share a batch now: (how many share one in the next table too, how many pairs)."""

def in_running_order(
    table: tuple[npt.NDArray[np.uint32] | npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.uint32]],
) -> npt.NDArray[np.uint32] | npt.NDArray[np.uint64]:
    """The samples of all batches in running order."""

def arrange(
    sizes: npt.NDArray[np.uint32],
    padded_lengths: npt.NDArray[np.uint32],
    tokens: npt.NDArray[np.uint64],
    costs: npt.NDArray[np.float64],
    *,
    world_size: int,
    accumulate: int,
    speeds: list[float],
    method: str,
    window: int,
    longest_first: bool,
    seed: int,
    epoch: int,
) -> npt.NDArray[np.uint32]:
    """The order in which batches run; `window` counts the steps of a window of equal cost."""

def of_one_shape(
    starts: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.uint32],
    padded_lengths: npt.NDArray[np.uint32],
    world_size: int,
    accumulate: int,
    remainder: str,
    samples_multiple_of: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], npt.NDArray[np.uint32], int, int, int]:
    """Batches made whole steps of every padded length: (starts, sizes, padded lengths, cut, repeated, dropped)."""

def unset_bits(bitmap: npt.NDArray[np.uint8], start: int, count: int) -> npt.NDArray[np.int64]:
    """The rows that are null among `count` from bit `start` of a validity bitmap on."""
