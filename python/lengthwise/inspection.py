"""What is in a dataset, and which of its columns give lengths, from its metadata."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lengthwise._core import LengthwiseError
from lengthwise.sources import open_source
from lengthwise.sources.columns import choose


@dataclass(frozen=True)
class Inspection:
    """What is in a dataset; `print` it.

    Attributes:
        source: the path or the type of object.
        format: the format's name.
        rows: how many, or None where only reading can tell.
        columns: (path, what it can give, type) of each.
        column: the one that `read_lengths` would use, None where it would ask.
        reason: why.
        reads_values: whether that means to decode tokens, for want of stored lengths or offsets.
        tokens: (least, most) tokens by metadata alone, or None.
        description: percentiles and ranges, where asked for.
    """

    source: str
    format: str
    rows: int | None
    columns: tuple[tuple[str, str, str], ...]
    column: str | None
    reason: str
    reads_values: bool
    tokens: tuple[int, int] | None = None
    description: Any = None

    def __str__(self) -> str:
        rows = "rows unknown until read" if self.rows is None else f"{self.rows:,} rows"
        lines = [f"{self.source}: {self.format}, {rows}"]
        width = max((len(path) for path, _, _ in self.columns), default=0)
        for path, kind, type_ in self.columns:
            lines.append(f"{'*' if path == self.column else ' '} {path:<{width}}  {kind:<8}{type_}")
        cost = "; its values are decoded" if self.reads_values and self.column is not None else ""
        lines.append(f"{self.reason}{cost}")
        if self.tokens:
            lines.append(f"{self.tokens[0]:,} to {self.tokens[1]:,} tokens by the footers alone")
        if self.description is not None:
            lines.append(str(self.description))
        return "\n".join(lines)


def inspect(source: Any, *, percentiles: bool = False) -> Inspection:
    """Say what is in a dataset and which column `read_lengths` would use, from its metadata.

    Args:
        source: as in `read_lengths`.
        percentiles: whether to read the lengths and describe them.

    Raises:
        LengthwiseError: the source cannot be read.

    Examples:
        >>> import lengthwise as lw
        >>> import pyarrow as pa
        >>> print(lw.inspect(pa.table({"input_ids": [[5, 6, 7]], "num_tokens": [3]})))
        pyarrow.Table: Arrow, 1 rows
          input_ids   list    list<item: int64>
        * num_tokens  integer int64
        column 'num_tokens' holds stored lengths
    """
    opened = open_source(source)
    rows = len(opened.order) if opened.order is not None else opened.rows
    columns = tuple((field.path, field.kind, field.type) for field in opened.fields)
    result = Inspection(opened.where, opened.format, rows, columns, None, "", reads_values=False)
    try:
        field, reason = choose(opened, "tokens")
    except LengthwiseError as error:
        return replace(result, reason=str(error))
    result = replace(
        result,
        column=field.path,
        reason=reason,
        reads_values=opened.reads_values and field.kind == "list",
        tokens=opened.tokens(field),
    )
    if not percentiles:
        return result
    from lengthwise.histogram import Histogram

    return replace(result, description=Histogram.of(opened, field.path).describe())
