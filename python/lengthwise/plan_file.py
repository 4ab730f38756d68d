"""Plans as Arrow files: one row a batch, mapped into memory on reading.

Problem: hours of training follow a file that another process wrote. Method: a checksum over all columns and the
metadata is written beside them and compared on reading, so that what is damaged is refused rather than trained on. Cost
of reading: one pass over the file, 2 ns a sample where it is in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise import _core
from lengthwise._core import LengthwiseError
from lengthwise.layouts import Padded, PlanArrays
from lengthwise.packed import Packed
from lengthwise.pairs import PaddedPairs
from lengthwise.plan import Plan
from lengthwise.planner import SETTINGS, Planner

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    import pyarrow as pa

#: The key of the schema's metadata, that of the checksum, and the version of what they hold.
KEY: Final = b"lengthwise.plan"
CHECKSUM: Final = b"lengthwise.plan.checksum"
VERSION: Final = 1
#: What a layout is called in `Layout.config`, and its class.
LAYOUTS: Final[dict[str, type[Any]]] = {"padded": Padded, "padded_pairs": PaddedPairs, "packed": Packed}


def write_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write `plan`; see `Plan.write`."""
    import pyarrow as pa

    batch = _record_batch(plan)
    target = Path(os.fsdecode(path))
    try:
        unfinished = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            with unfinished.open("wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
                writer.write_batch(batch)
            unfinished.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                unfinished.unlink()
            raise
    except (OSError, ValueError) as error:
        raise LengthwiseError(f"path is {target}, which cannot be written: {error}") from error


def _record_batch(plan: Plan) -> pa.RecordBatch:
    import pyarrow as pa

    running = np.arange(len(plan))
    offsets = pa.array(np.concatenate([[0], np.cumsum(plan.sizes, dtype=np.int64)]))
    table = (plan.starts, plan.sizes)
    columns = {
        "step": pa.array(running // (plan.world_size * plan.accumulate), pa.int64()),
        "rank": pa.array(running % plan.world_size, pa.int32()),
        "padded_length": _as_column(plan.padded_lengths),
        "indices": pa.LargeListArray.from_arrays(offsets, pa.array(_core.in_running_order((plan.indices, *table)))),
    }
    if plan.segments is not None:
        pairs = np.ascontiguousarray(plan.segments).view(np.uint64).ravel()
        flat = _core.in_running_order((pairs, *table)).view(np.uint32)
        columns["segments"] = pa.LargeListArray.from_arrays(offsets, _as_column(flat.reshape(-1, 2)))
    about = {
        "version": VERSION,
        "epoch": plan.epoch,
        "samples": len(plan.planner.lengths),
        "fingerprint": plan.fingerprint,
        "accounts": plan.accounts,
        "config": plan.config,
    }
    batch = pa.record_batch(columns)
    text = json.dumps(about).encode()
    return batch.replace_schema_metadata({KEY: text, CHECKSUM: _checksum(batch, text)})


def _checksum(batch: pa.RecordBatch, text: bytes) -> bytes:
    """32 hexadecimal digits that tell these columns and this metadata from others."""
    digest = hashlib.blake2b(text, digest_size=16)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        digest.update(f"{name}: {column.type}".encode())
        for array in _flat(column):
            digest.update(_core.fingerprint(array.view(np.uint32)).encode())
    return digest.hexdigest().encode()


def _flat(column: pa.Array) -> Iterator[npt.NDArray[Any]]:
    """The plain arrays that make up a column, without a copy."""
    import pyarrow as pa

    if isinstance(column, pa.LargeListArray):
        yield column.offsets.to_numpy()
        column = column.values
    yield _as_array(column).ravel()


def _as_column(values: npt.NDArray[np.uint32]) -> pa.Array:
    """[n] as integers, [n, 2] as lists of two."""
    import pyarrow as pa

    flat = pa.array(values.ravel())
    return flat if values.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, 2)


def _as_array(column: pa.Array) -> npt.NDArray[np.uint32]:
    """What `_as_column` was given, without a copy."""
    import pyarrow as pa

    pairs = isinstance(column, pa.FixedSizeListArray)
    array: npt.NDArray[np.uint32] = column.flatten().to_numpy().reshape(-1, 2) if pairs else column.to_numpy()
    return array


def read_plan(path: str | os.PathLike[str], lengths: Any = None) -> Plan:
    """Read a plan that `Plan.write` wrote. Its arrays are mapped into memory.

    Args:
        path: an Arrow file.
        lengths: the lengths that were planned, to make sure that the plan is theirs; without them the plan has its
            batches, but no `summary`.

    Raises:
        LengthwiseError: not a plan, a damaged file, a newer version, or other lengths.

    Cost: one pass over the file for its checksum, another over the lengths for theirs.

    Example:
        >>> import tempfile

        >>> import lengthwise as lw
        >>> lengths = [5, 6, 7, 8]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     lw.Planner(lengths, lw.Padded(16, order="sorted")).plan(epoch=2).write(f"{folder}/plan.arrow")
        ...     plan = lw.read_plan(f"{folder}/plan.arrow", lengths)
        >>> plan
        <Plan of epoch 2: 2 batches, 2 steps of 1 ranks>
    """
    batch = _open(path)
    about = _metadata(batch, path)
    planner = None if lengths is None else _planner(lengths, about, path)
    offsets = batch["indices"].offsets.to_numpy()
    arrays = PlanArrays(
        indices=batch["indices"].values.to_numpy(),
        starts=offsets[:-1],
        sizes=np.diff(offsets).astype(np.uint32),
        padded_lengths=_as_array(batch["padded_length"]),
        segments=_as_array(batch["segments"].values) if "segments" in batch.schema.names else None,
        accounts=about["accounts"],
    )
    return Plan(arrays, epoch=about["epoch"], planner=planner, config=about["config"], fingerprint=about["fingerprint"])


def _open(path: str | os.PathLike[str]) -> pa.RecordBatch:
    import pyarrow as pa

    try:
        file = pa.ipc.open_file(pa.memory_map(os.fsdecode(path)))
        batch = file.get_batch(0)
        batch.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, IndexError, KeyError) as error:
        raise LengthwiseError(f"path is {path!s}, which cannot be read as an Arrow file: {error}") from error
    return batch


def _metadata(batch: pa.RecordBatch, path: str | os.PathLike[str]) -> dict[str, Any]:
    """What the metadata say, once the checksum has shown that they and the columns are as they were written."""
    text = (batch.schema.metadata or {}).get(KEY, b"")
    try:
        about: dict[str, Any] = json.loads(text)
        version = about["version"]
    except (KeyError, ValueError, TypeError) as error:
        raise LengthwiseError(
            f"path is {path!s}, which is an Arrow file, but not a plan: no metadata {KEY.decode()!r}"
        ) from error
    if version != VERSION:
        raise LengthwiseError(
            f"path is {path!s}, a plan of version {version}, but this release reads version {VERSION}"
        )
    try:
        whole = batch.schema.metadata[CHECKSUM] == _checksum(batch, text)
    except (KeyError, ValueError, TypeError, AttributeError, NotImplementedError):
        whole = False
    if not whole:
        raise LengthwiseError(f"path is {path!s}, a plan that was damaged or changed: write it again with Plan.write")
    return about


def _planner(lengths: Any, about: dict[str, Any], path: str | os.PathLike[str]) -> Planner:
    config = about["config"]
    settings = {name: config[name] for name in SETTINGS}
    arguments = {name: value for name, value in config.items() if name not in (*settings, "layout")}
    layout = LAYOUTS[config["layout"]](**arguments)
    # Before anything is planned: other lengths may be over-long, which is not what is wrong with them.
    lengths = layout.as_lengths(lengths)
    fingerprint = _core.fingerprint(lengths.ravel())
    if fingerprint != about["fingerprint"]:
        raise LengthwiseError(
            f"lengths have fingerprint {fingerprint} ({len(lengths):,} samples), but the plan in {path!s} was made for "
            f"{about['fingerprint']} ({about['samples']:,} samples); plan again for these lengths"
        )
    return Planner(lengths, layout, **settings)
