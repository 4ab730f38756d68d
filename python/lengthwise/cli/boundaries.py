"""`lengthwise boundaries`: the list to paste, and the proof that no other pads less."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lengthwise.cli import options

if TYPE_CHECKING:
    from rich.text import Text

    from lengthwise.boundaries import BoundarySolution
    from lengthwise.report.panels import Columns

_EPILOG = """\b
Examples:
  lengthwise boundaries tokenized/
  lengthwise boundaries tokenized/ -k 6
  lengthwise boundaries tokenized/ -k 8 --multiple-of 64 --json
"""


@click.command(epilog=_EPILOG, short_help="The bucket boundaries that pad least, exactly.")
@options.all_of(
    options.dataset,
    options.column,
    click.option("-k", "--buckets", type=options.COUNT, help="How many buckets; by default as many as pay."),
    options.multiple_of,
    options.as_json,
)
def boundaries(*, dataset: str, column: str | None, buckets: int | None, multiple_of: int, as_json: bool) -> None:
    """Print the bucket boundaries that pad least, exactly.

    A boundary is an inclusive upper bound: every sample is padded to the first one that is not below its length. In a
    pipe the list is all that is printed.
    """
    import json
    import sys

    from lengthwise.boundaries import solve_boundaries
    from lengthwise.cli import screen

    lengths, source = options.read(dataset, column)
    solution = solve_boundaries(lengths, buckets or "auto", multiple_of=multiple_of)
    bounds = solution.boundaries.tolist()
    if as_json:
        document = {
            "version": 1,
            "source": source.source,
            "column": source.column,
            "boundaries": bounds,
            "counts": solution.counts.tolist(),
            "padding_tokens": solution.padding_tokens,
            "padded_ratio": 1 + solution.padding,
            "real_tokens": solution.real_tokens,
            "proven_optimal": solution.cost == solution.lower_bound,
        }
        click.echo(json.dumps(document, indent=2))
        return
    if sys.stdout.isatty():
        console = screen.results()
        width = console.width - 2 * screen.MARGIN
        screen.show_section(console, f"{len(bounds)} buckets", _table(solution).drawn(width), _proof(solution))
    click.echo(str(bounds))


def _table(solution: BoundarySolution) -> Columns:
    from rich.text import Text

    from lengthwise.report.draw import bar
    from lengthwise.report.panels import QUIET, REAL, Columns

    table = Columns("lengths", "samples", "share", " ", text=(" ",))
    samples = max(int(solution.counts.sum()), 1)
    most = max(int(solution.counts.max()), 1)
    below = 0
    for bound, count in zip(solution.boundaries.tolist(), solution.counts.tolist(), strict=True):
        share = Text(f"{count / samples:.1%}", style=QUIET)
        table.add(f"{below + 1:,} to {bound:,}", f"{count:,}", share, Text(bar(count / most, 30), style=REAL))
        below = bound
    return table


def _proof(solution: BoundarySolution) -> Text:
    from rich.text import Text

    from lengthwise.report.panels import QUIET

    proven = ", proven optimal: no others of this number pad less" if solution.cost == solution.lower_bound else ""
    padding = f"{solution.padding_tokens:,} padding tokens, {solution.padding:.1%} of the real ones"
    return Text(f"{padding}{proven}", style=QUIET)
