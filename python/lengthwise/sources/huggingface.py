"""Hugging Face datasets: folders written by `save_to_disk`, and live `Dataset` and `IterableDataset` objects.

A folder holds `state.json`, which lists its Arrow files in order, so it is read without the `datasets` library. A live
dataset is a table and, after `select`, `shuffle`, `filter` or `sort`, a list of row numbers, by which the lengths are
gathered in one go; its format ("torch", "numpy", ...) plays no part, as its items are never made. An iterable dataset
has no columns on disk: it is passed over once, in Arrow batches of the one column.

Source: `Dataset.save_to_disk` and `Dataset._indices` in https://github.com/huggingface/datasets
"""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from lengthwise._core import LengthwiseError
from lengthwise.sources.arrow import ArrowSource
from lengthwise.sources.base import Field, Kind, Source, reading
from lengthwise.sources.files import Location, Paths
from lengthwise.sources.ipc import IpcSource
from lengthwise.sources.nested import nested
from lengthwise.sources.schema import schema_fields, top_level
from lengthwise.sources.sequences import SequenceSource

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT = "Hugging Face dataset"
ADVICE = "it may be damaged: save the dataset again"
#: Rows that an iterable dataset yields at a time.
BATCH = 1_000


class LiveSource(ArrowSource):
    """A `datasets.Dataset`."""

    format = FORMAT

    def __init__(self, dataset: Any) -> None:
        super().__init__("datasets.Dataset", dataset.data.table)
        self.dataset = dataset
        indices = dataset._indices  # noqa: SLF001 - the library has no public name for it
        if indices is not None:
            from lengthwise.sources.arrays import as_numpy, whole

            self.order = as_numpy(whole(indices.column(0)))

    def stamp(self) -> str:
        """Return the fingerprint that the library keeps."""
        return str(self.dataset._fingerprint)  # noqa: SLF001 - likewise

    def folder(self) -> str | None:
        """Return the folder of the first cache file; a dataset in memory has none."""
        files = self.dataset.cache_files
        return str(Path(files[0]["filename"]).parent) if files else None


class IterableSource(Source):
    """A `datasets.IterableDataset`: as Arrow where its features are known, else as Python objects."""

    format = "Hugging Face iterable dataset"
    reads_values = True

    def __init__(self, dataset: Any) -> None:
        self.where = "datasets.IterableDataset"
        self.dataset = dataset
        self.typed = dataset.features is not None
        if self.typed:
            self.fields = schema_fields(dataset.features.arrow_schema)
        else:
            with reading(self.where, "check that it yields rows"):
                first: dict[str, Any] = next(iter(dataset.with_format(None).iter(1)), {})
            self.fields = SequenceSource(self.where, first).fields

    def read(self, field: Field, skip: int = 0) -> Iterator[Any]:
        """Yield the column of each batch; a length pass over the whole stream."""
        schema = self.dataset.features.arrow_schema if self.typed else None
        top = schema.names[top_level(schema, field.path)] if schema else field.path
        with reading(self.where, "check that every row has the column"):
            dataset = self.dataset.select_columns([top]).with_format("arrow" if self.typed else None)
            for batch in dataset.skip(skip * BATCH).iter(BATCH):
                yield from [nested(batch, field.path)] if self.typed else SequenceSource(self.where, batch).read(field)


def open(source: Any) -> Source | None:  # noqa: A001 - the name of the format's entry point
    """Open a folder that holds `state.json`, or a dataset of the library."""
    if type(source).__module__.startswith("datasets."):
        return _open_live(source)
    if not isinstance(source, Paths) or source.folder is None:
        return None
    folder = source.folder
    if folder.child("state.json").is_file():
        opened = IpcSource(str(folder), _data_files(folder), FORMAT)
        if not opened.items:
            opened.fields, opened.rows = _declared(folder), 0
        return opened
    if folder.child("dataset_dict.json").is_file():
        splits = _load(folder.child("dataset_dict.json")).get("splits", [])
        if len(splits) == 1:
            return open(Paths(str(folder), [folder.child(str(splits[0]))]))
        choices = ", ".join(str(folder.child(str(split))) for split in splits) or "none"
        raise LengthwiseError(f"{folder} holds {len(splits)} splits; pass the folder of one: {choices}")
    return None


def _open_live(source: Any) -> Source | None:
    kinds = {base.__name__ for base in type(source).__mro__}
    # An iterable dataset is made a subclass of torch's Dataset when it is used in torch's format.
    if "IterableDataset" in kinds:
        return IterableSource(source)
    if "Dataset" in kinds:
        return LiveSource(source)
    if kinds & {"DatasetDict", "IterableDatasetDict"}:
        splits = list(source)
        if len(splits) == 1:
            return _open_live(source[splits[0]])
        one = f"; pass one: dataset[{splits[0]!r}]" if splits else ""
        raise LengthwiseError(f"{type(source).__name__} holds the splits {splits}{one}")
    return None


def _data_files(folder: Location) -> list[Location]:
    state = folder.child("state.json")
    with reading(str(state), ADVICE):
        names = [PurePosixPath(entry["filename"]) for entry in _load(state)["_data_files"]]
    for name in names:
        if name.is_absolute() or ".." in name.parts:
            raise LengthwiseError(f"{state} names {name}, which is outside of its folder; save the dataset again")
    return [folder.child(str(name)) for name in names]


def _declared(folder: Location) -> list[Field]:
    """Return the columns of a dataset without rows, which is saved without data files."""
    info = folder.child("dataset_info.json")
    features = _load(info).get("features") if info.is_file() else None
    fields = []
    for name, feature in (features or {}).items():
        type_ = str(feature.get("dtype", "")) if isinstance(feature, dict) else ""
        kind: Kind = "integer" if "int" in type_ else "bytes" if type_ in {"string", "binary"} else "list"
        fields.append(Field(name, kind, type_ or "list"))
    return fields


def _load(location: Location) -> dict[str, Any]:
    with reading(str(location), ADVICE):
        value = json.loads(location.bytes())
    if not isinstance(value, dict):
        raise LengthwiseError(f"{location} does not hold a JSON object; {ADVICE}")
    return value
