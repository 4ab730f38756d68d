"""Packs on disk against the data that they came from, token for token."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lengthwise._core import LengthwiseError
from lengthwise.offline.files import Manifest, file_name, read_manifest
from lengthwise.offline.rows import Pieces, per_token
from lengthwise.offline.tokens import Tokens

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    import numpy.typing as npt
    import pyarrow as pa


def verify_packed(
    folder: str | os.PathLike[str], source: Any, *, progress: Callable[[int, int], None] | None = None
) -> tuple[str, ...]:
    """Compare a folder of packs with its source: every token, position, label and limit, and what is missing.

    Args:
        folder: what `write_packed` wrote.
        source: what it was written from.
        progress: called with the files checked and the files in all.

    Returns:
        What is wrong, a sentence each, at most one a file; nothing where all is well.

    Raises:
        LengthwiseError: not a folder of packs, or the source cannot be read.

    Cost: reads both once.
    """
    manifest = read_manifest(folder)
    tokens = Tokens.open(source, manifest.column)
    if len(tokens.ids.lengths) != manifest.samples:
        return (f"the source has {len(tokens.ids.lengths):,} samples, but {manifest.samples:,} were packed",)
    covered = np.zeros(manifest.samples, np.int64)
    used = np.zeros(manifest.samples, np.int64)
    problems: list[str] = []
    packs = 0
    for number in range(manifest.files):
        path = Path(folder) / file_name(manifest, number)
        try:
            for part in _parts(path):
                pieces, problem = _compare(part, tokens, manifest)
                if problem:
                    problems.append(f"{path.name}, from pack {packs:,}: {problem}")
                    break
                np.add.at(covered, pieces.samples, pieces.lengths)
                np.add.at(used, pieces.samples, 1)
                packs += len(part)
        except LengthwiseError as error:
            problems.append(str(error))
        if progress:
            progress(number + 1, manifest.files)
    return (*problems, *(() if problems else _missing(tokens.ids.lengths, covered, used, packs, manifest)))


def _parts(path: Path) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if path.suffix == ".parquet":
            with pq.ParquetFile(path) as file:
                yield from file.iter_batches(batch_size=1 << 10)
        else:
            with pa.memory_map(str(path)) as mapped, pa.ipc.open_stream(mapped) as stream:
                yield from stream
    except (pa.ArrowException, OSError) as error:
        raise LengthwiseError(
            f"{path.name} is missing or cannot be read; pack again to complete it ({error})"
        ) from error


def _compare(part: pa.RecordBatch, tokens: Tokens, manifest: Manifest) -> tuple[Pieces, str | None]:
    """Return what a part says that it holds, and the first way in which that is not true."""
    samples, starts, lengths = (_flat(part, name) for name in ("sample_ids", "sample_starts", "seq_lengths"))
    offsets = _offsets(part, "sample_ids")
    pieces = Pieces(samples, starts, starts + lengths, offsets)
    if samples.size and not (samples.min() >= 0 and samples.max() < manifest.samples):
        return pieces, "a sample that the source does not have"
    if (starts < 0).any() or (pieces.stops > tokens.ids.lengths[samples]).any():
        return pieces, "more tokens of a sample than the source has"
    if (np.diff(pieces.places[offsets]) > manifest.capacity).any():
        return pieces, f"a pack of more than {manifest.capacity:,} tokens"
    if not np.array_equal(_offsets(part, "input_ids"), pieces.places[offsets]):
        return pieces, "packs whose tokens are not those of seq_lengths"
    for name, expected in per_token(tokens, pieces).items():
        found = _flat(part, name)
        if not np.array_equal(found, expected):
            at = int(np.argmax(found != expected)) if found.shape == expected.shape else 0
            return pieces, f"{name} of token {at:,} is not that of the source"
    return pieces, None


def _missing(
    lengths: npt.NDArray[np.int64],
    covered: npt.NDArray[np.int64],
    used: npt.NDArray[np.int64],
    packs: int,
    manifest: Manifest,
) -> Iterator[str]:
    if packs != manifest.packs:
        yield f"{packs:,} packs instead of {manifest.packs:,}"
    unused = int(np.count_nonzero(used == 0))
    if unused != manifest.dropped:
        yield f"{unused:,} samples are in no pack, but {manifest.dropped:,} were dropped"
    short = int(np.count_nonzero((covered < lengths) & (used > 0)))
    if short != manifest.truncated:
        yield f"{short:,} samples lack tokens, but {manifest.truncated:,} were truncated"
    twice = int(np.count_nonzero(covered > lengths))
    if twice:
        yield f"{twice:,} samples are there more than once"


def _flat(part: pa.RecordBatch, name: str) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = np.from_dlpack(part.column(name).flatten())
    return values if name not in {"sample_ids", "sample_starts", "seq_lengths"} else values.astype(np.int64)


def _offsets(part: pa.RecordBatch, name: str) -> npt.NDArray[np.int64]:
    offsets = np.from_dlpack(part.column(name).offsets).astype(np.int64)
    relative: npt.NDArray[np.int64] = offsets - offsets[0]
    return relative
