"""Choices as the core takes them, checked where they enter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lengthwise._core import LengthwiseError

if TYPE_CHECKING:
    from collections.abc import Sequence


def as_flag(value: Any, name: str) -> bool:
    """Return `value` if it is True or False.

    Raises:
        LengthwiseError: it is neither.
    """
    if not isinstance(value, bool):
        raise LengthwiseError(f"{name} is {value!r:.60}, but must be True or False")
    return value


def as_choice(value: Any, name: str, choices: Sequence[str]) -> str:
    """Return `value` if it is one of `choices`.

    Raises:
        LengthwiseError: it is none of them.
    """
    if isinstance(value, str) and value in choices:
        return value
    words = ", ".join(f'"{choice}"' for choice in choices)
    raise LengthwiseError(f"{name} is {value!r:.60}, but must be one of {words}")
