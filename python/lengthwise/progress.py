"""Progress of a long read: a bar on a terminal, a callback otherwise, nothing for what is over in a moment."""

from __future__ import annotations

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
    if progress or (progress is None and sys.stderr.isatty()):
        return Bar(total, what)
    return lambda done, total: None  # noqa: ARG005 - nobody looks


class Bar:
    """A line on standard error: rows, share, rows a second and the time that is left."""

    def __init__(self, total: int | None, what: str) -> None:
        self.total = total
        self.what = what
        self.start = time.monotonic()
        self.due = self.start + PATIENCE
        self.shown = False

    def __call__(self, done: int, total: int | None) -> None:
        """Draw the bar if it is due, and end the line when all is done."""
        now = time.monotonic()
        over = total is not None and done >= total
        if (now < self.due and not (over and self.shown)) or (over and not self.shown):
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
