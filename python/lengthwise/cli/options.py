"""Arguments and options that several commands share."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from lengthwise.lengths import Lengths
    from lengthwise.report.model import Dataset

    Command = Callable[..., Any]

COUNT = click.IntRange(min=1)

dataset = click.argument("dataset", metavar="DATASET")
column = click.option("--column", metavar="NAME", help="The column that holds the lengths, or the lists of tokens.")
max_tokens = click.option("--max-tokens", type=COUNT, metavar="N", help="The most padded tokens in a batch.")
multiple_of = click.option(
    "--multiple-of", type=COUNT, default=1, metavar="M", help="Round padded lengths up to a multiple of this."
)
world_size = click.option("--world-size", type=COUNT, default=1, metavar="W", help="Ranks that train together.")
seed = click.option("--seed", type=click.IntRange(min=0), default=0, help="Names the random order.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a screen.")


def all_of(*options: Command) -> Command:
    """Return the decorator that applies several, the first one first in the help."""
    return lambda command: reduce(lambda wrapped, option: option(wrapped), reversed(options), command)


def read(source: str, column_name: str | None) -> tuple[Lengths, Dataset]:
    """Read the lengths of a data set, and say where they came from; what looks wrong is a line on standard error.

    Raises:
        LengthwiseError: the data set cannot be read.
    """
    import warnings
    from time import perf_counter

    from lengthwise.lengths import read_lengths
    from lengthwise.report.model import Dataset

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        started = perf_counter()
        lengths = read_lengths(source, column_name)
        seconds = perf_counter() - started
    said = tuple(" ".join(str(warning.message).split()) for warning in caught)
    for line in said:
        click.echo(f"{click.style('lengthwise: warning:', fg='yellow', bold=True)} {line}", err=True)
    reason = lengths.info.reason if lengths.info else ""
    return lengths, Dataset(source=source, column=lengths.column, reason=reason, read_seconds=seconds, warnings=said)
