"""Plans as Arrow files: one row a batch, mapped into memory on reading."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
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
    import numpy.typing as npt
    import pyarrow as pa

#: The key of the schema's metadata, and the version of what it holds.
KEY: Final = b"lengthwise.plan"
VERSION: Final = 1
#: What a layout is called in `Layout.config`, and its class.
LAYOUTS: Final[dict[str, type[Any]]] = {"padded": Padded, "padded_pairs": PaddedPairs, "packed": Packed}


def write_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write `plan`; see `Plan.write`."""
    import pyarrow as pa

    batch = _record_batch(plan)
    target = Path(path)
    try:
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".lengthwise-")
        try:
            with os.fdopen(descriptor, "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
                writer.write_batch(batch)
            Path(temporary).replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise
    except OSError as error:
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
    return pa.record_batch(columns).replace_schema_metadata({KEY: json.dumps(about)})


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
    """Read a plan that `Plan.write` wrote. Its arrays are mapped into memory, not read.

    Args:
        path: an Arrow file.
        lengths: the lengths that were planned, to make sure that the plan is theirs; without them the plan has its
            batches, but no `summary`.

    Raises:
        LengthwiseError: not a plan, a damaged file, a newer version, or other lengths.

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
    config = about["config"]
    planner = None if lengths is None else _planner(lengths, config)
    if planner is not None and planner.fingerprint != about["fingerprint"]:
        raise LengthwiseError(
            f"lengths have fingerprint {planner.fingerprint} ({len(planner.lengths):,} samples), but the plan in "
            f"{path!s} was made for {about['fingerprint']} ({about['samples']:,} samples); plan again for these lengths"
        )
    offsets = batch["indices"].offsets.to_numpy()
    arrays = PlanArrays(
        indices=batch["indices"].values.to_numpy(),
        starts=offsets[:-1],
        sizes=np.diff(offsets).astype(np.uint32),
        padded_lengths=_as_array(batch["padded_length"]),
        segments=_as_array(batch["segments"].values) if "segments" in batch.schema.names else None,
        accounts=about["accounts"],
    )
    return Plan(arrays, epoch=about["epoch"], planner=planner, config=config, fingerprint=about["fingerprint"])


def _open(path: str | os.PathLike[str]) -> pa.RecordBatch:
    import pyarrow as pa

    try:
        batch = pa.ipc.open_file(pa.memory_map(os.fspath(path))).get_batch(0)
        batch.validate(full=True)
    except (pa.ArrowException, OSError, IndexError) as error:
        raise LengthwiseError(f"path is {path!s}, which cannot be read as an Arrow file: {error}") from error
    return batch


def _metadata(batch: pa.RecordBatch, path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        about: dict[str, Any] = json.loads((batch.schema.metadata or {})[KEY])
        version = about["version"]
    except (KeyError, ValueError, TypeError) as error:
        raise LengthwiseError(
            f"path is {path!s}, which is an Arrow file, but not a plan: no metadata {KEY!r}"
        ) from error
    if version != VERSION:
        raise LengthwiseError(
            f"path is {path!s}, a plan of version {version}, but this release reads version {VERSION}"
        )
    return about


def _planner(lengths: Any, config: dict[str, Any]) -> Planner:
    settings = {name: config[name] for name in SETTINGS}
    layout = {name: value for name, value in config.items() if name not in (*settings, "layout")}
    return Planner(lengths, LAYOUTS[config["layout"]](**layout), **settings)
