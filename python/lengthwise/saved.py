"""The folder that `datasets.Dataset.save_to_disk` writes, written without the `datasets` library.

Arrow IPC streams, and two JSON files that name them; the features are left to the Arrow schema, which every version of
`datasets` understands.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: Rows in a record batch, as `datasets` writes them.
ROWS_A_BATCH: Final = 1_000


def shard_name(shard: int, shards: int) -> str:
    """Return the name of one of the files.

    Example:
        >>> shard_name(2, 16)
        'data-00002-of-00016.arrow'
    """
    return f"data-{shard:05d}-of-{shards:05d}.arrow"


def describe(folder: Path, names: Sequence[str], fingerprint: str) -> None:
    """Write the files that make a folder of Arrow streams a data set.

    Args:
        folder: where the streams are.
        names: their names, in order.
        fingerprint: hexadecimal digits that change with the data; `datasets` caches by them.
    """
    _write_json(folder / "dataset_info.json", {"description": "", "features": None})
    state: dict[str, Any] = {
        "_data_files": [{"filename": name} for name in names],
        "_fingerprint": fingerprint[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    _write_json(folder / "state.json", state)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")
