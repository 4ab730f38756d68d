"""Hugging Face datasets: folders written by `save_to_disk`, and live `Dataset` objects.

A folder holds `state.json`, which lists its Arrow files in order, so it is read without the `datasets` library. A live
dataset is a table and, after `select`, `shuffle`, `filter` or `sort`, a list of row numbers, by which the lengths are
gathered in one go; its format ("torch", "numpy", ...) plays no part, as its items are never made.

Source: `Dataset.save_to_disk` and `Dataset._indices` in https://github.com/huggingface/datasets
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lengthwise._core import LengthwiseError
from lengthwise.sources.arrow import ArrowSource
from lengthwise.sources.base import reading
from lengthwise.sources.files import as_path
from lengthwise.sources.ipc import IpcSource

FORMAT = "Hugging Face dataset"
ADVICE = "it may be damaged: save the dataset again"


class DatasetSource(ArrowSource):
    """A live `datasets.Dataset`."""

    format = FORMAT

    def __init__(self, dataset: Any) -> None:
        super().__init__(f"datasets.{type(dataset).__name__}", dataset.data.table)
        self.rows = len(dataset)
        indices = dataset._indices  # noqa: SLF001 - the library has no public name for it
        if indices is not None:
            self.order = indices.column(0).to_numpy()


def open(source: Any) -> IpcSource | DatasetSource | None:  # noqa: A001 - the name of the format's entry point
    """Open a folder that holds `state.json`, or a `datasets.Dataset`."""
    if type(source).__module__.startswith("datasets."):
        return _open_live(source)
    path = as_path(source)
    if path is None or not path.is_dir():
        return None
    if (path / "state.json").is_file():
        return IpcSource(str(path), _data_files(path), FORMAT)
    if (path / "dataset_dict.json").is_file():
        splits = _load(path / "dataset_dict.json").get("splits", [])
        if len(splits) == 1:
            return open(path / str(splits[0]))
        choices = ", ".join(str(path / str(split)) for split in splits) or "none"
        raise LengthwiseError(f"{path} holds {len(splits)} splits; pass the folder of one: {choices}")
    return None


def _open_live(source: Any) -> DatasetSource | None:
    kind = type(source).__name__
    if kind == "Dataset":
        return DatasetSource(source)
    if kind == "DatasetDict":
        splits = list(source)
        if len(splits) == 1:
            return DatasetSource(source[splits[0]])
        raise LengthwiseError(f"datasets.DatasetDict holds the splits {splits}; pass one: dataset[{splits[:1]}]")
    return None


def _data_files(folder: Path) -> list[Path]:
    state = folder / "state.json"
    with reading(str(state), ADVICE):
        names = [Path(entry["filename"]) for entry in _load(state)["_data_files"]]
    for name in names:
        if name.is_absolute() or ".." in name.parts:
            raise LengthwiseError(f"{state} names {name}, which is outside its folder; save the dataset again")
    return [folder / name for name in names]


def _load(path: Path) -> dict[str, Any]:
    with reading(str(path), ADVICE):
        value = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise LengthwiseError(f"{path} does not hold a JSON object; {ADVICE}")
    return value
