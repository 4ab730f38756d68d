"""Progress of a long read: a bar on a terminal, a callback otherwise, nothing for what is over in a moment."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Final

#: Called with the rows read so far and the rows in all, None where that is not known.
Callback = Callable[[int, int | None], None]
Progress = bool | Callback | None

#: Seconds before a bar appears, and between two of its updates.
PATIENCE: Final = 1.0
INTERVAL: Final = 0.1
WIDTH: Final = 30


def reporter(progress: Progress, total: int | None, what: str) -> Callback:
    """Return what to call after each block of rows.

    Args:
        progress: a callback; True for a bar, False for none, None for a bar where standard error is a terminal.
        total: rows in all, or None.
        what: what is read, for the bar.
    """
    if callable(progress):
        return progress
    return nobody if progress is False else Bar(total, what, anywhere=progress is True)


def nobody(done: int, total: int | None) -> None:
    """Be called with progress that nobody wants to see."""


class Bar:
    """A line on standard error: rows, share, rows a second and the time that is left.

    Args:
        total: rows in all, or None.
        what: what is read.
        anywhere: whether to draw it where standard error is no terminal, too.
    """

    def __init__(self, total: int | None, what: str, *, anywhere: bool) -> None:
        self.total = total
        self.what = what
        self.anywhere = anywhere
        self.start = time.monotonic()
        self.due = self.start + PATIENCE
        self.shown = False

    def __call__(self, done: int, total: int | None) -> None:
        """Draw the bar if it is due, and end the line when all is done."""
        now = time.monotonic()
        over = total is not None and done >= total
        if (now < self.due and not (over and self.shown)) or (over and not self.shown):
            return
        if not self.shown and not self.anywhere and not sys.stderr.isatty():
            self.due = math.inf
            return
        self.due = now + INTERVAL
        self.shown = True
        rate = done / max(now - self.start, 1e-9)
        line = f"reading {self.what}: {done:,} rows, {rate:,.0f} rows/s"
        if total:
            filled = WIDTH * done // total
            left = (total - done) / max(rate, 1e-9)
            line = f"{line} [{'#' * filled:<{WIDTH}}] {done / total:.0%}, {left:.0f} s left"
        sys.stderr.write(f"\r\033[K{line}{chr(10) if over else ''}")
        sys.stderr.flush()
