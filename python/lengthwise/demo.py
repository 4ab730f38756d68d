"""The demonstration: the story's lengths as a real data set, read back, and planned in six ways.

A folder in the layout of `datasets.Dataset.save_to_disk` is written with pyarrow alone (`lengthwise.saved`), so that
the demonstration takes the road that a user's data takes. Its only column is `seq_len`: the tokens of the story were
never published, and would be 7.6 GB.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise import saved
from lengthwise.speed import SpeedModel
from lengthwise.story import PUBLISHED_BOUNDARIES, story_lengths

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

#: The budget of the story, in padded tokens a batch.
MAX_TOKENS: Final = 65_536

#: What the story measured, in Ktok/s of real tokens; sorted is the rate from which the others are predicted.
MEASURED: Final = {"sorted": 32.0, "shuffled": 11.9, "bucketed, 6 by hand": 25.1}

#: The epochs of the story's run, and the days that it took.
EPOCHS: Final = 6
MEASURED_DAYS: Final = 5.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One way to batch the story's samples.

    Attributes:
        name: what it is called.
        boundaries: its buckets' inclusive upper bounds, in tokens; empty without buckets.
        padded_ratio: padded tokens over real tokens, one epoch.
        batches: batches an epoch.
        again: of all pairs of samples that share a batch, the share that meets again in the next epoch; 1.0 where
            every epoch has the same batches.
        longest: tokens in the row of a padded token, on average: what its attention looks at.
        speed: predicted Ktok/s of real tokens, where sorted makes 32.
        days: predicted days for the six epochs of the story.
        seconds: time to plan one epoch, boundaries included.
    """

    name: str
    boundaries: tuple[int, ...]
    padded_ratio: float
    batches: int
    again: float
    longest: float
    speed: float
    days: float
    seconds: float


def write_dataset(folder: str | os.PathLike[str]) -> Path:
    """Write the story's lengths, in a fixed random order, as a Hugging Face data set with the column `seq_len` (int32).

    Args:
        folder: where to write; made if it does not exist.

    Returns:
        The folder, which `datasets.load_from_disk` and `lengthwise.read_lengths` read.

    Raises:
        OSError: the folder cannot be written.

    Cost: 902,087 rows, 3.7 MB, about 50 ms.
    """
    import pyarrow as pa

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    lengths = np.random.default_rng(0).permutation(story_lengths()).astype(np.int32)
    table = pa.table({"seq_len": pa.array(lengths)})
    name = saved.shard_name(0, 1)
    with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=saved.ROWS_A_BATCH)
    saved.describe(folder, [name], "1e6e6774687769e5")
    return folder


def compare_orders(lengths: Any) -> list[Row]:
    """Plan two epochs of `lengths` in each order of the story, and predict the speed from the padding alone.

    Args:
        lengths: integers[n], in tokens.

    Returns:
        Sorted, shuffled, bucketed with the published boundaries, and with the optimal 6, 16 and 32.

    Raises:
        LengthwiseError: a length is negative or above the budget of 65,536 tokens.
    """
    return [
        _row(lengths, "sorted", order="sorted"),
        _row(lengths, "shuffled", order="shuffled"),
        _row(lengths, "bucketed, 6 by hand", boundaries=PUBLISHED_BOUNDARIES),
        *(_row(lengths, f"bucketed, {k} optimal", boundaries=k) for k in (6, 16, 32)),
    ]


def _row(lengths: Any, name: str, **layout: Any) -> Row:
    from lengthwise.boundaries import optimal_boundaries
    from lengthwise.layouts import Padded
    from lengthwise.planner import Planner

    started = perf_counter()
    if isinstance(layout.get("boundaries"), int):
        layout["boundaries"] = optimal_boundaries(lengths, layout["boundaries"])
    planner = Planner(lengths, Padded(max_tokens=MAX_TOKENS, **layout), seed=0)
    plan = planner.plan(epoch=0)
    seconds = perf_counter() - started
    real = int(np.sum(lengths, dtype=np.uint64))
    model = SpeedModel.from_tokens_per_second(MEASURED["sorted"] * 1000)
    epoch_seconds = float(model.seconds(tokens=plan.padded_tokens, longest=plan.padded_lengths).sum())
    return Row(
        name=name,
        boundaries=tuple(int(bound) for bound in layout.get("boundaries", ())),
        padded_ratio=plan.summary.ratio,
        batches=plan.summary.batches,
        again=plan.summary.mixing.batchmates_again,
        longest=float(np.average(plan.padded_lengths, weights=plan.padded_tokens)),
        speed=real / epoch_seconds / 1000,
        days=EPOCHS * epoch_seconds / 86_400,
        seconds=seconds,
    )


def fitted_speeds(rows: Sequence[Row]) -> dict[str, float]:
    """Return Ktok/s by name, from a model with attention that is fitted to what the story measured.

    Padding alone leaves a part of the slow shuffled run unexplained: its rows are also longer, and attention costs more
    for a token of a long row. Three measurements and two unknowns: the fit can fail, and its error says by how much.

    Args:
        rows: what `compare_orders` returned.
    """
    measured = [row for row in rows if row.name in MEASURED]
    model = SpeedModel.fit(
        [row.padded_ratio for row in measured],
        [row.longest for row in measured],
        [1 / MEASURED[row.name] for row in measured],
    )
    return {row.name: 1 / float(model.seconds(tokens=row.padded_ratio, longest=row.longest)) for row in rows}
