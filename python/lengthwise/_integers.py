"""Integers as the core takes them, checked where they enter."""

from __future__ import annotations

import operator
from typing import Any

from lengthwise._core import LengthwiseError


def as_integer(value: Any, name: str, low: int, high: int, hint: str = "") -> int:
    """Return `value` as an int from `low` to `high`; numpy integers are integers, floats and booleans are not.

    Raises:
        LengthwiseError: not an integer, or out of range; `hint` says what to do.
    """
    advice = f"; {hint}" if hint else ""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise LengthwiseError(f"{name} is {value!r:.60}, but must be an integer from {low} to {high}{advice}")
    if not low <= number <= high:
        raise LengthwiseError(f"{name} is {number}, but must be from {low} to {high}{advice}")
    return number
