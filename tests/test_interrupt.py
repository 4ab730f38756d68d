"""Ctrl-C stops a call into the core while it runs, and other threads of Python run meanwhile."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest

import lengthwise as lw
from lengthwise import _core

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lengthwise.layouts import PadTo

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers that signal")


@contextmanager
def alarms(heard: Callable[[], None]) -> Iterator[None]:
    """Call `heard` about every 5 ms, wherever Python looks for signals."""

    def handler(_number: int, _frame: Any) -> None:
        heard()

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class ThirdTime:
    """Raises the third time it is called. The first could be on the way in and the second on the way out of a call."""

    def __init__(self) -> None:
        self.heard = 0

    def __call__(self) -> None:
        """Count, and raise."""
        self.heard += 1
        if self.heard == 3:
            raise KeyboardInterrupt


def test_a_long_call_hears_signals_and_stops(story: npt.NDArray[np.uint16]) -> None:
    counted = lw.Histogram.of(story)
    third_time = ThirdTime()
    # Seconds of work, if nothing stops it.
    with pytest.raises(KeyboardInterrupt), alarms(third_time):
        lw.optimal_boundaries(counted, 128, objective="longest", max_tokens=65_536)
    assert len(lw.optimal_boundaries(counted, 128)) == 128


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("pad_to", ["longest", "boundary"])
def test_a_plan_is_interrupted_and_the_planner_stays_whole(threads: int, pad_to: PadTo) -> None:
    lengths = np.tile(np.random.default_rng(0).integers(1, 4096, 1_000_000, np.uint16), 128)
    planner = lw.Planner(lengths, lw.Padded(65_536, pad_to=pad_to), threads=threads)
    expected = _core.fingerprint(planner.plan(3).indices.view(np.uint32))
    # One call of some tenths of a second: signals are looked at every 50 ms.
    with pytest.raises(KeyboardInterrupt), alarms(ThirdTime()):
        planner.plan(3)
    assert _core.fingerprint(planner.plan(3).indices.view(np.uint32)) == expected


def test_other_threads_run_during_a_long_call(story: npt.NDArray[np.uint16]) -> None:
    counted = lw.Histogram.of(story)
    turns: list[int] = []
    started, done = threading.Event(), threading.Event()

    def count() -> None:
        started.set()
        while not done.wait(0.001):
            turns.append(len(turns))

    thread = threading.Thread(target=count)
    thread.start()
    started.wait()
    before = len(turns)
    lw.optimal_boundaries(counted, 40, objective="longest", max_tokens=65_536)
    after = len(turns)
    done.set()
    thread.join()
    # The GIL changes hands on the way in and out at most; more turns than that were taken meanwhile.
    assert after - before > 3
