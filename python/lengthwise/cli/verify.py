"""`lengthwise verify`: a plan, or a packed data set, against the data that it was made from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lengthwise.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lengthwise.verification import Check


@click.command(short_help="Check a plan against its data.")
@options.all_of(
    click.argument("plan", metavar="PLAN", type=click.Path(exists=True)),
    options.dataset,
    options.column,
    options.as_json,
)
def verify(*, plan: str, dataset: str, column: str | None, as_json: bool) -> int:
    """Check that PLAN keeps its promises for DATASET; leave with code 1 if it does not.

    PLAN is a file that `lengthwise plan` wrote: every sample is used once or counted, no batch exceeds a limit, every
    rank has the same number of batches, and planning again gives the same. Or it is a folder that `lengthwise pack`
    wrote: every token, position and label is compared with its origin.
    """
    import json
    from pathlib import Path

    checks = _packs(plan, dataset) if Path(plan).is_dir() else _plan(plan, dataset, column)
    passed = all(check.passed for check in checks)
    if as_json:
        listed = [{"name": check.name, "passed": check.passed, "found": check.found} for check in checks]
        click.echo(json.dumps({"version": 1, "passed": passed, "checks": listed}, indent=2))
    else:
        _print(checks)
    return 0 if passed else 1


def _plan(plan: str, dataset: str, column: str | None) -> Sequence[Check]:
    from lengthwise.cli import screen
    from lengthwise.plan_file import read_plan
    from lengthwise.verification import verify_plan

    lengths, _ = options.read(dataset, column)
    with screen.working("verifying"):
        return verify_plan(read_plan(plan, lengths))


def _packs(folder: str, dataset: str) -> Sequence[Check]:
    from lengthwise.cli import screen
    from lengthwise.offline import read_manifest, verify_packed
    from lengthwise.verification import Check

    with screen.progress("verifying", "files") as advance:
        problems = verify_packed(folder, dataset, progress=advance)
    tokens = read_manifest(folder).tokens
    name = "every token, position and label is that of its sample"
    return [Check(name, passed=False, found=problem) for problem in problems] or [
        Check(name, True, f"{tokens:,} tokens")
    ]


def _print(checks: Sequence[Check]) -> None:
    from rich.text import Text

    from lengthwise.cli import screen
    from lengthwise.report.panels import GOOD, QUIET

    console = screen.results()
    for check in checks:
        mark = ("ok    ", GOOD) if check.passed else ("FAILED", "bold red")
        screen.show(console, Text.assemble("  ", mark, "  ", check.name, (f"   {check.found}", QUIET)))
