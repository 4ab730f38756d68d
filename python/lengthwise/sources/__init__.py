"""Where lengths come from: one module a format, tried in order, and formats that users add by entry point.

To add a format, name an object with an `open(source)` function in the entry point group "lengthwise.sources". It
returns a subclass of `lengthwise.sources.base.Source`, or None for what is not its own. It is asked after the formats
that come with the package, and is passed what the user passed.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

from lengthwise._core import LengthwiseError
from lengthwise.sources.base import Source
from lengthwise.sources.folders import described
from lengthwise.sources.paths import paths

if TYPE_CHECKING:
    from lengthwise.sources.base import Format

#: Formats of files and folders, in the order in which they are asked: the first that recognises its own wins.
FILE_FORMATS: Final = (
    "huggingface",
    "mds",
    "lance",
    "megatron",
    "datatrove",
    "parquet",
    "ipc",
    "numpy_files",
    "webdataset",
    "jsonlines",
)
#: Formats of objects, likewise.
OBJECT_FORMATS: Final = ("huggingface", "frames", "arrow", "sequences")
#: Modules whose types are of one format, which saves asking the others.
FORMAT_OF_MODULE: Final = {"pyarrow.lib": "arrow"}
#: What is tried last, since it takes whatever can be iterated over.
LAST_RESORT: Final = "iterables"
ENTRY_POINTS: Final = "lengthwise.sources"


def open_source(source: Any) -> Source:
    """Return the source opened by the first format that knows it.

    Raises:
        LengthwiseError: no format does; the message says what was passed and what can be.
    """
    known = FORMAT_OF_MODULE.get(type(source).__module__)
    if known is not None and (opened := _format(known).open(source)) is not None:
        return opened
    if isinstance(source, Source):
        return source
    named = paths(source)
    for name in OBJECT_FORMATS if named is None else FILE_FORMATS:
        opened = _format(name).open(source if named is None else named)
        if opened is not None:
            return opened
    for format_ in _added():
        opened = format_.open(source)
        if opened is not None:
            return opened
    if named is None:
        opened = _format(LAST_RESORT).open(source)
        if opened is not None:
            return opened
    else:
        folder = named.folder
        what = f"holds no file of a known format ({described(folder)})" if folder else "is of no known format"
        raise LengthwiseError(
            f"{named.where} {what}; save it as Parquet, Arrow, JSON lines (.jsonl), or save its lengths with numpy.save"
        )
    raise LengthwiseError(
        f"lengths cannot be read from {type(source).__module__}.{type(source).__name__}; pass a dataset, a path, "
        f"an Arrow table or array, a numpy array or a sequence"
    )


@cache
def _format(name: str) -> Format:
    return cast("Format", import_module(f"lengthwise.sources.{name}"))


@cache
def _added() -> tuple[Format, ...]:
    from importlib.metadata import entry_points

    return tuple(entry.load() for entry in entry_points(group=ENTRY_POINTS))
