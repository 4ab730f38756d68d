"""What a run must remember to go on with an epoch: one small dict of plain values, the same size at any position.

The state is absolute (it says where to go on, not how far since when) and counts over all ranks, so that it is the same
on every rank and holds for another number of them. It names what it belongs to: the lengths by their fingerprint, the
planner by its configuration. What does not fit is refused by the name of the field.

| field | meaning |
|---|---|
| `version` | of this layout: 1 |
| `epoch` | the epoch of the next batch |
| `batch`, `sample` | the next batch of that epoch's plan, and how many of its samples were dealt already (0, but between the pieces of a batch that was cut to give every rank the same count) |
| `dealt` | batches handed out in that epoch, over all ranks |
| `world_size` | the number of ranks that the epoch is planned for |
| `samples`, `fingerprint` | how many lengths, and the hash of them |
| `config` | the planner's configuration, `world_size` apart |
"""  # noqa: E501

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lengthwise import LengthwiseError
from lengthwise.torch.deal import Position

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lengthwise.planner import Planner

VERSION: Final = 1

_COUNTS: Final = ("epoch", "batch", "sample", "dealt", "world_size", "samples")
_FIELDS: Final = ("version", *_COUNTS, "fingerprint", "config")
_START_OVER: Final = "start the epoch over with set_epoch(), or load with strict=False to go on regardless"


class Identity(NamedTuple):
    """What a state belongs to: worked out once, since a state is asked for at every step."""

    samples: int
    fingerprint: str
    config: dict[str, Any]

    @classmethod
    def of(cls, planner: Planner) -> Identity:
        """Return the identity of a planner; the number of ranks is no part of it."""
        config = {name: value for name, value in planner.config.items() if name != "world_size"}
        return cls(len(planner.lengths), planner.fingerprint, plain(config))


def plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration as JSON gives it back: with lists for tuples."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in config.items()}


class Resume(NamedTuple):
    """Where to go on."""

    epoch: int
    position: Position
    planned_for: int


def make_state(identity: Identity, resume: Resume) -> dict[str, Any]:
    """Return a fresh dict of plain values; about a microsecond."""
    position = resume.position
    return {
        "version": VERSION,
        "epoch": resume.epoch,
        "batch": position.batch,
        "sample": position.sample,
        "dealt": position.dealt,
        "world_size": resume.planned_for,
        "samples": identity.samples,
        "fingerprint": identity.fingerprint,
        "config": dict(identity.config),
    }


def read_state(state: Mapping[str, Any], identity: Identity, *, strict: bool) -> Resume:
    """Check a state and return where it goes on.

    Raises:
        LengthwiseError: not such a dict, damaged, newer, or of other lengths or another configuration; the message
            names the field. With `strict=False` only what cannot be used at all is refused.
    """
    counts = _read_counts(state)
    if strict:
        _check_identity(state, identity)
    return Resume(
        counts["epoch"], Position(counts["batch"], counts["sample"], counts["dealt"]), max(1, counts["world_size"])
    )


def _read_counts(state: Mapping[str, Any]) -> dict[str, int]:
    try:
        missing = [name for name in _FIELDS if name not in state]
    except TypeError:
        raise LengthwiseError(
            f"state is a {type(state).__name__}, but must be the dict that state_dict() gave"
        ) from None
    if missing:
        raise LengthwiseError(
            f'state["{missing[0]}"] is missing; it must be the dict that state_dict() gave, with {", ".join(_FIELDS)}'
        )
    for name in ("version", *_COUNTS):
        value = state[name]
        if isinstance(value, bool) or not isinstance(value, int) or value < (name in ("version", "world_size")):
            raise LengthwiseError(
                f'state["{name}"] is {value!r}, but must be a whole number of at least 0; it is damaged'
            )
    return {name: state[name] for name in _COUNTS}


def _check_identity(state: Mapping[str, Any], identity: Identity) -> None:
    if state["version"] > VERSION:
        raise LengthwiseError(
            f'state["version"] is {state["version"]}, but this lengthwise reads up to {VERSION}; '
            f"install the lengthwise that wrote it, or {_START_OVER}"
        )
    if state["samples"] != identity.samples:
        raise LengthwiseError(
            f'state["samples"] is {state["samples"]}, but the planner has {identity.samples} lengths; '
            f"give it the lengths of the saved run, or {_START_OVER}"
        )
    if state["fingerprint"] != identity.fingerprint:
        raise LengthwiseError(
            f'state["fingerprint"] is {state["fingerprint"]!r}, but the planner\'s lengths have '
            f"{identity.fingerprint!r}: they are others, or in another order; {_START_OVER}"
        )
    saved, mine = state["config"], identity.config
    if not isinstance(saved, dict):
        raise LengthwiseError(f'state["config"] is {saved!r:.60}, but must be a dict; it is damaged')
    for name in [*mine, *(name for name in saved if name not in mine)]:
        if saved.get(name, _ABSENT) != mine.get(name, _ABSENT):
            raise LengthwiseError(
                f'state["config"]["{name}"] is {saved.get(name, _ABSENT)!r:.80}, but the planner has '
                f"{mine.get(name, _ABSENT)!r:.80}; make the planner as the saved run did, or {_START_OVER}"
            )


class _Absent:
    def __repr__(self) -> str:
        return "absent"


_ABSENT: Final = _Absent()
