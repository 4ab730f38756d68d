"""`lengthwise pack`: packed rows as a data set on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lengthwise.cli import options

if TYPE_CHECKING:
    from lengthwise.offline import Manifest

_EPILOG = """\b
Examples:
  lengthwise pack tokenized/ --capacity 8192 --out packed/
  lengthwise pack tokenized/ --capacity 8192 --format arrow --overlong split --out packed/
  lengthwise verify packed/ tokenized/
"""


@click.command(epilog=_EPILOG, short_help="Packed rows, written as a data set and checked.")
@options.all_of(
    options.dataset,
    options.column,
    click.option("--capacity", type=options.COUNT, required=True, metavar="C", help="The most tokens in a row."),
    click.option("--out", type=click.Path(file_okay=False), required=True, metavar="DIR", help="Where to write."),
    click.option(
        "--format",
        "kind",
        type=click.Choice(["parquet", "arrow"]),
        default="parquet",
        show_default=True,
        help="arrow: a folder for datasets.load_from_disk.",
    ),
    click.option(
        "--method",
        type=click.Choice(["best_fit", "first_fit", "next_fit"]),
        default="best_fit",
        show_default=True,
        help="How packs are decided.",
    ),
    click.option(
        "--overlong",
        type=click.Choice(["error", "drop", "truncate", "split"]),
        default="error",
        show_default=True,
        help="What happens to samples longer than a row.",
    ),
    options.seed,
    options.as_json,
)
def pack(
    *,
    dataset: str,
    column: str | None,
    capacity: int,
    out: str,
    kind: str,
    method: str,
    overlong: str,
    seed: int,
    as_json: bool,
) -> int:
    """Write the samples of DATASET end to end into rows of at most C tokens, and check every token.

    Each row has input_ids, position_ids, document_ids, labels, loss_mask, seq_lengths, sample_ids and sample_starts.
    A run that was interrupted is continued when it is started again with the same options.
    """
    import json
    from dataclasses import asdict

    from lengthwise.cli import screen
    from lengthwise.offline import verify_packed, write_packed

    with screen.progress("packing", "packs") as advance:
        manifest = write_packed(
            dataset,
            out,
            capacity,
            column=column,
            method=method,  # type: ignore[arg-type] # click has checked the choices
            overlong=overlong,  # type: ignore[arg-type]
            seed=seed,
            format=kind,  # type: ignore[arg-type]
            progress=advance,
        )
    with screen.progress("verifying", "files") as advance:
        problems = verify_packed(out, dataset, progress=advance)
    if as_json:
        click.echo(json.dumps({**asdict(manifest), "problems": problems}, indent=2))
    else:
        _print(out, manifest)
    for problem in problems:
        click.echo(f"lengthwise: {problem}", err=True)
    return 1 if problems else 0


def _print(out: str, manifest: Manifest) -> None:
    from lengthwise.cli import screen
    from lengthwise.report.panels import Columns

    facts = {
        "packs": f"{manifest.packs:,} of at most {manifest.capacity:,} tokens, in {manifest.files:,} files",
        "samples": f"{manifest.samples:,}, from column {manifest.column}",
        "tokens": f"{manifest.tokens:,}",
        "full": f"{manifest.tokens / max(manifest.packs * manifest.capacity, 1):.2%}",
    }
    facts |= {
        name: f"{getattr(manifest, name):,}" for name in ("dropped", "truncated", "split") if getattr(manifest, name)
    }
    table = Columns("", " ", text=("", " "))
    for name, value in facts.items():
        table.add(name, value)
    console = screen.results()
    screen.show_section(console, out, table.drawn(console.width))
