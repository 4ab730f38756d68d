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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


def test_a_long_call_hears_signals_and_stops(story: npt.NDArray[np.uint16]) -> None:
    counted = lw.Histogram.of(story)
    heard: list[int] = []

    def third_time() -> None:
        heard.append(len(heard))
        if len(heard) == 3:
            raise KeyboardInterrupt

    # Seconds of work, if nothing stops it. Heard once it could be on the way out; a third time is within.
    with pytest.raises(KeyboardInterrupt), alarms(third_time):
        lw.optimal_boundaries(counted, 128, objective="longest", max_tokens=65_536)
    assert len(heard) == 3
    assert len(lw.optimal_boundaries(counted, 128)) == 128


def test_a_plan_is_interrupted_and_the_planner_stays_whole() -> None:
    lengths = np.random.default_rng(0).integers(1, 4096, 5_000_000).astype(np.uint16)
    planner = lw.Planner(lengths, lw.Padded(65_536))
    expected = planner.plan(3).indices

    def at_once() -> None:
        raise KeyboardInterrupt

    def plan_on() -> None:
        for epoch in range(1000):
            planner.plan(epoch)

    with pytest.raises(KeyboardInterrupt), alarms(at_once):
        plan_on()
    np.testing.assert_array_equal(planner.plan(3).indices, expected)


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
