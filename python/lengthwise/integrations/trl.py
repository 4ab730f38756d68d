"""TRL's `SFTTrainer`: a data set packed beforehand, in the form that it takes as it is.

`SFTTrainer(packing=True)` packs each thousand rows for themselves, truncates what is longer than a row, and packs
again whenever it starts. A data set whose rows are packs, with the lengths of the samples in each, is trained as it is:

    config = SFTConfig(padding_free=True, per_device_train_batch_size=1,
                       dataset_kwargs={"skip_prepare_dataset": True}, max_length=None, ...)

For batches of padded samples use `lengthwise.integrations.transformers.PlannedTrainer` with `SFTTrainer`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import datasets
import numpy as np
import pyarrow as pa
from datasets.arrow_writer import ArrowWriter

from lengthwise import LengthwiseError
from lengthwise.collate.fields import IGNORE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    from lengthwise.packing import Packs

    Array = npt.NDArray[Any]

#: Packs that are built at once: enough to forget the cost of a chunk, a few megabytes of tokens.
CHUNK: Final = 1000

#: Columns that say which tokens are learnt from, where there are no labels.
MASKS: Final = ("loss_mask", "completion_mask", "assistant_masks")


def packed_dataset(dataset: datasets.Dataset, packs: Packs, path: str | Path | None = None) -> datasets.Dataset:
    """Return a data set of one row a pack: `input_ids`, `labels` and `seq_lengths`.

    Labels are those of the data set, else its tokens with -100 where a `loss_mask`, `completion_mask` or
    `assistant_masks` is 0, else its tokens. The first label of each sample is left to the collator, which ignores it.

    Args:
        dataset: with `input_ids`; the one whose lengths were packed.
        packs: from `lengthwise.pack`; pieces of samples are cut as they say.
        path: an Arrow file to write and map, so that memory stays small; by default the result is in memory.

    Raises:
        LengthwiseError: no `input_ids`, samples that the packs name and the data set has not, or other lengths.

    Cost: one pass over the tokens.

    Example:
        >>> import lengthwise as lw
        >>> rows = datasets.Dataset.from_dict({"input_ids": [[1, 2], [3, 4, 5], [6]]})
        >>> max(packed_dataset(rows, lw.pack([2, 3, 1], capacity=3)), key=lambda row: len(row["seq_lengths"]))
        {'input_ids': [1, 2, 6], 'labels': [1, 2, 6], 'seq_lengths': [2, 1]}
    """
    if "input_ids" not in dataset.column_names:
        raise LengthwiseError(f"the data set has no column input_ids, but {dataset.column_names}; rename its tokens")
    if packs.indices.size and int(packs.indices.max()) >= len(dataset):
        raise LengthwiseError(
            f"packs name sample {int(packs.indices.max())}, but the data set has {len(dataset)} rows; "
            "pack the lengths of the data set that is trained on"
        )
    masks = [name for name in ("labels", *MASKS) if name in dataset.column_names]
    columns = dataset.select_columns(["input_ids", *masks[:1]]).with_format("arrow")
    tables = _tables(columns, packs)
    if path is None:
        return datasets.Dataset(pa.concat_tables(tables))
    with ArrowWriter(path=str(path)) as writer:
        for table in tables:
            writer.write_table(table)
        writer.finalize()
    return datasets.Dataset.from_file(str(path))


def _tables(columns: datasets.Dataset, packs: Packs) -> Iterator[pa.Table]:
    for first in range(0, max(1, len(packs)), CHUNK):
        offsets = packs.offsets[first : first + CHUNK + 1]
        entries = slice(int(offsets[0]), int(offsets[-1]))
        segments = None if packs.segments is None else packs.segments[entries].astype(np.int64)
        yield _table(columns[packs.indices[entries]], offsets - offsets[0], segments, packs)


def _table(rows: pa.Table, offsets: Array, segments: Array | None, packs: Packs) -> pa.Table:
    values, bounds = _flat(rows["input_ids"])
    lengths = np.diff(bounds)
    if segments is None:
        segments = np.stack([np.zeros_like(lengths), lengths], axis=1)
    kept = segments[:, 1] - segments[:, 0]
    if (segments[:, 1] > lengths).any() or _tokens(kept, offsets).max(initial=0) > packs.capacity:
        raise LengthwiseError("samples are longer than when they were packed; pack the lengths of this data set")
    starts = np.cumsum(kept) - kept
    take = np.repeat(bounds[:-1] + segments[:, 0] - starts, kept) + np.arange(kept.sum())
    tokens = values[take]
    labels = tokens.astype(np.int64)
    for name in rows.column_names[1:]:
        given = _flat(rows[name])[0][take]
        labels = given.astype(np.int64) if name == "labels" else np.where(given == 0, IGNORE, labels)
    token_offsets = np.concatenate([[0], np.cumsum(_tokens(kept, offsets))])
    some = kept > 0  # a sample without tokens has no place in a row, and TRL's positions would be wrong with it
    sample_offsets = np.concatenate([[0], np.cumsum(some)])[offsets]
    return pa.table(
        {
            "input_ids": _lists(token_offsets, tokens),
            "labels": _lists(token_offsets, labels),
            "seq_lengths": _lists(sample_offsets, kept[some]),
        }
    )


def _flat(column: pa.ChunkedArray) -> tuple[Array, Array]:
    """Return a column of lists as its values and where each row starts."""
    rows = column.combine_chunks()
    if rows.null_count:
        raise LengthwiseError("the data set has rows without tokens (null); leave them out before packing")
    lengths = rows.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    return rows.flatten().to_numpy(zero_copy_only=False), np.concatenate([[0], np.cumsum(lengths)])


def _tokens(kept: Array, offsets: Array) -> Array:
    """Return the tokens of each pack."""
    before: Array = np.concatenate([[0], np.cumsum(kept)])
    tokens: Array = before[offsets[1:]] - before[offsets[:-1]]
    return tokens


def _lists(offsets: Array, values: Array) -> pa.Array:
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(values)).cast(
        pa.list_(pa.from_numpy_dtype(values.dtype))
    )
