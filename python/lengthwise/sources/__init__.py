"""Where lengths come from: one module a format, tried in order, and formats that users add by entry point.

To add a format, name an object with an `open(source)` function in the entry point group "lengthwise.sources". It
returns an object like `lengthwise.sources.base.Source`, or None for what is not its own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

from lengthwise._core import LengthwiseError
from lengthwise.sources.files import as_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lengthwise.sources.base import Format, Source

#: The modules of the formats that come with the package, in the order in which they are asked.
FORMATS: Final = ("huggingface", "arrow", "ipc", "parquet", "sequences")
ENTRY_POINTS: Final = "lengthwise.sources"


def open_source(source: Any) -> Source:
    """Return the source opened by the first format that knows it.

    Raises:
        LengthwiseError: no format does; the message says what was passed and what can be.
    """
    for format_ in _formats():
        opened = format_.open(source)
        if opened is not None:
            return opened
    path = as_path(source)
    if path is not None:
        if not path.exists():
            raise LengthwiseError(f"{path} does not exist; check the path")
        raise LengthwiseError(f"{path} is of no known format; see lengthwise.read_lengths for those that are")
    raise LengthwiseError(
        f"lengths cannot be read from {type(source).__module__}.{type(source).__name__}; pass a dataset, a path, "
        f"an Arrow table or array, a numpy array or a sequence"
    )


def _formats() -> Iterator[Format]:
    from importlib.metadata import entry_points

    for name in FORMATS:
        yield cast("Format", import_module(f"lengthwise.sources.{name}"))
    for entry in entry_points(group=ENTRY_POINTS):
        yield entry.load()
