"""The two consoles: results on standard output, progress on standard error; plain text where nobody watches."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from rich.console import Console, RenderableType

#: The widest screen that is used: longer lines are hard to read.
WIDEST: Final = 120

#: Blank columns left and right of everything.
MARGIN: Final = 2

#: The width of output that is not a terminal; every table fits.
PIPED: Final = 104


def results() -> Console:
    """Return the console for results: colours on a terminal, plain text in a pipe or a file."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    console = Console(highlight=False, soft_wrap=False, width=None if terminal else PIPED)
    if terminal:
        console.width = min(console.width, WIDEST)
    return console


def working(message: str) -> AbstractContextManager[object]:
    """Return a context that shows a spinner with `message` on a terminal, and nothing elsewhere."""
    from rich.console import Console

    return Console(stderr=True, highlight=False).status(message, spinner="dots")


def show(console: Console, *parts: RenderableType) -> None:
    """Print parts; lines of plain output end where their text ends."""
    if console.is_terminal:
        console.print(*parts)
        return
    with console.capture() as captured:
        console.print(*parts)
    for line in captured.get().splitlines():
        console.file.write(line.rstrip() + "\n")


def show_section(console: Console, title: str, *parts: RenderableType, remark: str = "") -> None:
    """Print a titled section inside the margins, with a blank line after it."""
    from rich.console import Group
    from rich.padding import Padding

    from lengthwise.report.panels import heading

    show(console, Padding(Group(heading(title, remark), *parts), (1, 0, 1, MARGIN), expand=False))


@contextmanager
def progress(what: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar with the time that is left on a terminal; yield what to call with (done, in all)."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    console = Console(stderr=True, highlight=False)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task(what, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
