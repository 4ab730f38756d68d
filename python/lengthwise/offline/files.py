"""Packs written as a data set: for trainers that read packed rows, and for those who pack once and train often.

Problem: packing gathers samples from everywhere, of data sets larger than memory, for hours that may be interrupted.
Method: the packs are those of a plan, a pure function of the lengths and the settings; they are written file by file,
each appearing whole or not at all, beside a manifest of what was asked. Asked again, the files that are there are
kept. `verify_packed` compares every token with its origin. Cost: about as long as copying the tokens; memory for a few
million of them at a time (and for all of them where the source is Parquet; see `lengthwise.offline.tokens`).
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from lengthwise import saved
from lengthwise._core import LengthwiseError
from lengthwise.offline.rows import Pieces, table
from lengthwise.offline.tokens import Tokens
from lengthwise.packed import Packed
from lengthwise.planner import Planner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from lengthwise.packing import PackMethod

    Progress = Callable[[int, int], None]

Format = Literal["parquet", "arrow"]

MANIFEST: Final = "packs.json"
VERSION: Final = 1

#: Tokens in a file, and in what is gathered and written at a time.
_FILE_TOKENS: Final = 1 << 26
_PART_TOKENS: Final = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a folder of packs holds.

    Attributes:
        version: of this format.
        format: "parquet" or "arrow".
        column: the column of tokens in the source.
        fingerprint: of the lengths that were packed.
        capacity: the most tokens in a pack.
        method: how the packs were decided.
        overlong: what happened to samples longer than a pack.
        seed: names the random order.
        packs: how many there are.
        files: how many files hold them.
        samples: samples of the source.
        tokens: tokens in all packs.
        dropped: samples left out.
        truncated: samples cut to the capacity.
        split: samples in several pieces.
    """

    version: int
    format: str
    column: str
    fingerprint: str
    capacity: int
    method: str
    overlong: str
    seed: int
    packs: int
    files: int
    samples: int
    tokens: int
    dropped: int
    truncated: int
    split: int


def write_packed(
    source: Any,
    folder: str | os.PathLike[str],
    capacity: int,
    *,
    column: str | None = None,
    method: PackMethod = "best_fit",
    overlong: Literal["error", "drop", "truncate", "split"] = "error",
    seed: int = 0,
    format: Format = "parquet",  # noqa: A002 (what people call it)
    progress: Progress | None = None,
) -> Manifest:
    """Write the packs of a data set: one row a pack.

    Columns: `input_ids` (as stored), `position_ids` (int32, from 0 in every sample), `document_ids` (int32, the number
    of the sample within its pack, for every token), `labels` (int32: those of the source, else the tokens where its
    `loss_mask` is not 0; the first of every sample is -100, for what stands before it is another sample), `loss_mask`
    (uint8, where labels count), `seq_lengths` (int32, tokens of each sample), `sample_ids` (int64, its row in the
    source) and `sample_starts` (int32, its first token: above 0 in later pieces of a split sample).

    Args:
        source: a folder written by `save_to_disk`, Arrow or Parquet files, a table or a live data set.
        folder: where to write. What an interrupted run left there is continued.
        capacity: the most tokens in a pack. Rows have no padding: collators pad.
        column: the list column of tokens; by default `input_ids`, or another usual name.
        method: see `lengthwise.pack`.
        overlong: what happens to samples longer than a pack.
        seed: names the random order of the packs.
        format: "parquet", or "arrow" for a folder that `datasets.load_from_disk` opens.
        progress: called with the packs written and the packs in all.

    Raises:
        LengthwiseError: no tokens, bad settings, or a folder that holds something else.
        OSError: the folder cannot be written.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> from lengthwise.offline import verify_packed
        >>> table = pa.table({"input_ids": [[5, 6, 7], [8, 9], [3]]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = write_packed(table, folder, capacity=4)
        ...     problems = verify_packed(folder, table)
        >>> made.packs, made.tokens, problems
        (2, 6, ())
    """
    tokens = Tokens.open(source, column)
    lengths = tokens.ids.lengths
    plan = Planner(lengths, Packed(capacity, method=method), seed=seed, overlong=overlong).plan(epoch=0)
    each = max(_FILE_TOKENS // capacity, 1)
    manifest = Manifest(
        version=VERSION,
        format=format,
        column=tokens.ids.name,
        fingerprint=plan.fingerprint,
        capacity=capacity,
        method=method,
        overlong=overlong,
        seed=seed,
        packs=len(plan),
        files=-(-len(plan) // each),
        samples=len(lengths),
        tokens=int(plan.real_tokens.sum()),
        **{name: int(plan.accounts.get(name, 0)) for name in ("dropped", "truncated", "split")},
    )
    folder = Path(folder)
    _claim(folder, manifest)
    for number in range(manifest.files):
        first, stop = number * each, min((number + 1) * each, len(plan))
        target = folder / file_name(manifest, number)
        if not target.exists():
            tables = (table(tokens, Pieces.of(plan, tokens.ids, *part)) for part in _parts(first, stop, capacity))
            _write(target, tables, format)
        if progress:
            progress(stop, len(plan))
    if format == "arrow":
        saved.describe(folder, [file_name(manifest, number) for number in range(manifest.files)], plan.fingerprint)
    return manifest


def file_name(manifest: Manifest, number: int) -> str:
    """Return the name of a file of packs."""
    arrow = saved.shard_name(number, manifest.files)
    return arrow if manifest.format == "arrow" else arrow.replace("data-", "packs-").replace(".arrow", ".parquet")


def read_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """Return what a folder of packs holds.

    Raises:
        LengthwiseError: it is not one, or of another version.
    """
    path = Path(folder) / MANIFEST
    try:
        return Manifest(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError) as error:
        raise LengthwiseError(
            f"{folder} is not a folder of packs: {path.name} is missing or of another version"
        ) from error


def _claim(folder: Path, manifest: Manifest) -> None:
    """Make the folder this packing's own, or find that it is already."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / MANIFEST).exists():
        there, asked = asdict(read_manifest(folder)), asdict(manifest)
        differing = [name for name in asked if asked[name] != there[name]]
        if differing:
            name = differing[0]
            raise LengthwiseError(
                f"{folder} holds other packs: {name} is {there[name]!r} there, but {asked[name]!r} now; "
                "choose another folder"
            )
        return
    if any(folder.iterdir()):
        raise LengthwiseError(f"{folder} is not empty, and not a folder of packs; choose another folder")
    (folder / MANIFEST).write_text(json.dumps(asdict(manifest), indent=2), encoding="utf-8")


def _parts(first: int, stop: int, capacity: int) -> Iterator[tuple[int, int]]:
    each = max(_PART_TOKENS // capacity, 1)
    return ((start, min(start + each, stop)) for start in range(first, stop, each))


def _write(target: Path, tables: Iterator[pa.Table], format: Format) -> None:  # noqa: A002
    import pyarrow as pa
    import pyarrow.parquet as pq

    unfinished = target.with_suffix(f".unfinished-{os.getpid()}")
    try:
        first = next(tables)
        with contextlib.ExitStack() as stack:
            if format == "parquet":
                writer = stack.enter_context(pq.ParquetWriter(unfinished, first.schema, compression="zstd"))
            else:
                sink = stack.enter_context(pa.OSFile(str(unfinished), "wb"))
                writer = stack.enter_context(pa.ipc.new_stream(sink, first.schema))
            writer.write_table(first)
            for part in tables:
                writer.write_table(part)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
