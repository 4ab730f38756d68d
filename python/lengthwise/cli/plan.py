"""`lengthwise plan`: an epoch written down, for any other tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from lengthwise.cli import options

if TYPE_CHECKING:
    from lengthwise.layouts import Layout
    from lengthwise.plan import Plan

_EPILOG = """\b
Examples:
  lengthwise plan tokenized/ --max-tokens 65536 --boundaries 8 --world-size 8 --out plan.arrow
  lengthwise plan tokenized/ --capacity 8192 --world-size 8 --out plan.arrow
  lengthwise plan tokenized/ --max-tokens 65536 --boundaries 770,1216,1728,2432,3296,8192
  lengthwise verify plan.arrow tokenized/
"""


class Boundaries(click.ParamType):  # type: ignore[type-arg] # generic in its stubs only
    """How many optimal buckets, "auto", or their inclusive upper bounds with commas between."""

    name = "K or LIST"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a number, a tuple of numbers, or "auto"."""
        if value == "auto":
            return value
        try:
            bounds = tuple(int(part) for part in str(value).strip("[]").split(","))
        except ValueError:
            self.fail(f"{value!r} is neither a number of buckets, nor auto, nor bounds like 512,1024,8192", param, ctx)
        return bounds[0] if len(bounds) == 1 else bounds


@click.command(epilog=_EPILOG, short_help="One epoch, planned and written down.")
@options.all_of(
    options.dataset,
    options.column,
    click.option("--max-tokens", type=options.COUNT, metavar="N", help="Padded batches of at most N tokens."),
    click.option("--capacity", type=options.COUNT, metavar="C", help="Packs of at most C tokens, instead of batches."),
    click.option(
        "--boundaries", type=Boundaries(), help="How many optimal buckets, auto, or bounds like 512,1024,8192."
    ),
    click.option(
        "--order",
        type=click.Choice(["bucketed", "shuffled", "sorted"]),
        help="How batches are filled; bucketed by default.",
    ),
    options.multiple_of,
    options.world_size,
    options.seed,
    click.option("--epoch", type=click.IntRange(min=0), default=0, show_default=True, help="Which epoch to plan."),
    click.option(
        "--overlong",
        type=click.Choice(["error", "drop", "truncate", "split", "alone"]),
        default="error",
        show_default=True,
        help="What happens to samples that fit no batch.",
    ),
    click.option("--out", type=click.Path(dir_okay=False), metavar="FILE", help="Write the plan as an Arrow file."),
    options.as_json,
)
def plan(
    *,
    dataset: str,
    column: str | None,
    max_tokens: int | None,
    capacity: int | None,
    boundaries: int | tuple[int, ...] | Literal["auto"] | None,
    order: str | None,
    multiple_of: int,
    world_size: int,
    seed: int,
    epoch: int,
    overlong: str,
    out: str | None,
    as_json: bool,
) -> None:
    """Plan one epoch, show what it costs, and write it down.

    The file has one row a batch: step, rank, padded_length, indices. Any tool that reads Arrow can train from it.
    """
    from dataclasses import asdict

    from lengthwise.cli import screen
    from lengthwise.planner import Planner

    batched = {"boundaries": boundaries, "order": order}
    layout = _layout(max_tokens, capacity, multiple_of, {name: value for name, value in batched.items() if value})
    lengths, _ = options.read(dataset, column)
    with screen.working("planning"):
        planner = Planner(lengths, layout, seed=seed, world_size=world_size, overlong=overlong)  # type: ignore[arg-type]
        made = planner.plan(epoch)
        if out is not None:
            made.write(out)
    if as_json:
        import json

        document = {"version": 1, "config": made.config, "epoch": epoch, "fingerprint": made.fingerprint}
        click.echo(json.dumps({**document, "summary": asdict(made.summary)}, indent=2))
    else:
        _print(made)
    if out is not None:
        click.echo(f"wrote {out}", err=True)


def _layout(max_tokens: int | None, capacity: int | None, multiple_of: int, batched: dict[str, Any]) -> Layout:
    from lengthwise.layouts import Padded
    from lengthwise.packed import Packed

    context = click.get_current_context()
    if (max_tokens is None) == (capacity is None):
        raise click.UsageError("give --max-tokens for batches, or --capacity for packs", context)
    if max_tokens is not None:
        return Padded(max_tokens, multiple_of=multiple_of, **batched)
    if batched:
        raise click.UsageError(f"--{next(iter(batched))} is for batches: packs have none", context)
    assert capacity is not None  # noqa: S101 (narrowed above)
    return Packed(capacity, multiple_of=multiple_of)


def _print(made: Plan) -> None:
    from lengthwise.cli import screen
    from lengthwise.report import words
    from lengthwise.report.panels import Columns

    summary = made.summary
    worst_step = summary.largest_batch // made.world_size
    facts = {
        "batches": f"{summary.batches:,}",
        "steps": f"{summary.steps:,} on each of {made.world_size} ranks",
        "padded/real": words.ratio(summary.ratio),
        "largest batch": f"{summary.largest_tokens:,} padded tokens, in step {worst_step:,}",
        "shapes": f"{summary.shapes:,}",
        "waiting": f"{summary.imbalance:.2%}",
        "meeting again": f"{summary.mixing.batchmates_again:.2%} of batchmates in the next epoch",
    }
    if made.config.get("boundaries"):
        facts["boundaries"] = ", ".join(map(str, made.config["boundaries"]))
    counted = ("dropped", "truncated", "split", "alone", "repeated", "cut_batches")
    facts |= {name.replace("_", " "): f"{getattr(summary, name):,}" for name in counted if getattr(summary, name)}
    table = Columns("", " ", text=("", " "))
    for name, value in facts.items():
        table.add(name, value)
    console = screen.results()
    screen.show_section(console, f"Epoch {made.epoch}", table.drawn(console.width))
