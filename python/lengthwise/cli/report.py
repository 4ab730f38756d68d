"""`lengthwise report`: what padding costs now, what would be gained, what to paste."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lengthwise.cli import options

if TYPE_CHECKING:
    from lengthwise.report.model import Report
    from lengthwise.speed import SpeedModel

_EPILOG = """\b
Examples:
  lengthwise report tokenized/
  lengthwise report tokenized/ --max-tokens 65536 --world-size 8 --html report.html
  lengthwise report "data/*.parquet" --column input_ids --timings log.jsonl
  lengthwise report tokenized/ --json | jq '.strategies[] | {name, padded_ratio}'
"""


@click.command(epilog=_EPILOG, short_help="What padding costs now, what would be gained, what to paste.")
@options.all_of(
    options.dataset,
    options.column,
    options.max_tokens,
    click.option("--batch-size", type=options.COUNT, metavar="N", help="Samples in your batches today, if fixed."),
    click.option("--capacity", type=options.COUNT, metavar="C", help="Tokens in a pack; the budget by default."),
    options.world_size,
    click.option("--accumulate", type=options.COUNT, default=1, metavar="G", help="Batches of a rank in a step."),
    options.multiple_of,
    click.option(
        "--tokens-per-second",
        type=click.FloatRange(min=0, min_open=True),
        metavar="T",
        help="Tokens that one rank computes a second, padding included: predicts times.",
    ),
    click.option(
        "--timings",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help='Measured batches, a line each: {"tokens": 65000, "longest": 4096, "seconds": 1.9}.',
    ),
    click.option("--html", type=click.Path(dir_okay=False), metavar="FILE", help="Write one self-contained page."),
    click.option("--save-plots", type=click.Path(file_okay=False), metavar="DIR", help="Write charts as SVG and PNG."),
    options.as_json,
)
def report(
    *,
    dataset: str,
    column: str | None,
    tokens_per_second: float | None,
    timings: str | None,
    html: str | None,
    save_plots: str | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Show what padding costs now, what would be gained, and what to paste.

    Reads the lengths of DATASET, plans an epoch in a dozen ways (batches of a fixed size as a baseline, sorted,
    shuffled, buckets, packs), and puts them side by side. No token is read.
    """
    from lengthwise.cli import screen
    from lengthwise.report.analysis import analyse

    # What is asked of the batches goes on as it is: `analyse` has arguments of the same names.
    if asked["max_tokens"] is not None and asked["batch_size"] is not None:
        raise click.UsageError("give --max-tokens or --batch-size, not both", click.get_current_context())
    if html is not None or save_plots is not None:
        _require("vl_convert", "jinja2")
    model = _speed(tokens_per_second, timings)
    lengths, source = options.read(dataset, column)
    with screen.working("planning an epoch in a dozen ways"):
        made = analyse(lengths, speed=model, dataset=source, **asked)
    if as_json:
        from lengthwise.report.json import to_json

        click.echo(to_json(made))
    else:
        _print(made)
    _write(made, html, save_plots)


def _speed(tokens_per_second: float | None, timings: str | None) -> SpeedModel | None:
    from lengthwise.speed import SpeedModel

    if tokens_per_second is not None and timings is not None:
        raise click.UsageError("give --tokens-per-second or --timings, not both", click.get_current_context())
    if timings is not None:
        return SpeedModel.read(timings)
    return SpeedModel.from_tokens_per_second(tokens_per_second) if tokens_per_second is not None else None


def _require(*modules: str) -> None:
    """Complain about missing packages before the work, not after it."""
    from importlib.util import find_spec

    for module in modules:
        if find_spec(module) is None:
            raise click.ClickException(f"pages and plots need {module}: pip install 'lengthwise[report]'")


def _print(made: Report) -> None:
    from lengthwise.cli import screen
    from lengthwise.report.terminal import screens

    console = screen.results()
    for part in screens(made, console.width - 2 * screen.MARGIN):
        screen.show(console, part)


def _write(made: Report, html: str | None, save_plots: str | None) -> None:
    from pathlib import Path

    from lengthwise.cli import screen
    from lengthwise.report import words

    if html is not None:
        from lengthwise.report.html import to_html

        with screen.working("writing the page"):
            page = to_html(made).encode()
            Path(html).write_bytes(page)
        click.echo(f"wrote {html} ({words.size(len(page))})", err=True)
    if save_plots is not None:
        from lengthwise.report.plots import save

        with screen.working("drawing the charts"):
            files = save(made, save_plots)
        click.echo(f"wrote {len(files)} files into {save_plots}", err=True)
