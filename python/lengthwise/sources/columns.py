"""Which column holds the lengths.

Stored lengths come first, since they cost one small column; then lists of tokens, whose offsets are lengths. Names are
tried in the order below; a dataset that has none of them but exactly one list column, or nothing but one integer
column, uses that one. Anything else is an error that names the columns: a wrong guess is worse than a question.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, Literal

from lengthwise._core import LengthwiseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lengthwise.sources.base import Field, Kind, Source

Unit = Literal["tokens", "bytes"]

#: Names of integer columns that hold lengths, first match wins.
INTEGER_NAMES: Final = (
    "seq_len",
    "seq_length",
    "sequence_length",
    "length",
    "lengths",
    "num_tokens",
    "n_tokens",
    "token_count",
    "num_tok",
    "input_length",
    "input_len",
    "input_ids_length",
    "total_length",
    "total_tokens",
    "len",
)
#: Names of list columns that hold tokens (or one value a token), first match wins.
LIST_NAMES: Final = (
    "input_ids",
    "tokens",
    "token_ids",
    "ids",
    "input_tokens",
    "attention_mask",
    "loss_mask",
    "labels",
)
#: Names of text columns, for lengths in bytes.
BYTES_NAMES: Final = ("text", "content", "document", "raw_content")

#: What to do about text, and about anything else that gives no lengths.
TEXT: Final = 'tokenise it first, or pass unit="bytes" to measure it in bytes'
NEEDED: Final = "lengths are integers or the sizes of lists"
#: Kinds of columns that have lengths in a unit.
WANTED: Final[dict[Unit, tuple[Kind, ...]]] = {"tokens": ("integer", "list"), "bytes": ("bytes",)}
#: What is looked for, in this order: a kind of column, its names, and what it holds.
_RANKS: Final[dict[Unit, tuple[tuple[Kind, tuple[str, ...], str], ...]]] = {
    "tokens": (
        ("integer", INTEGER_NAMES, "stored lengths"),
        ("list", LIST_NAMES, "lists, whose offsets are lengths"),
    ),
    "bytes": (("bytes", BYTES_NAMES, "text, measured in bytes"),),
}
#: The reasons where nothing had to be chosen.
ONLY: Final = "it is the only column"
NAMED: Final = "named by the caller"


def reason_for(name: str, kind: Kind) -> str:
    """Return the reason to use a column: what those of its name and kind hold."""
    why = next(why for ranks in _RANKS.values() for ranked, _, why in ranks if ranked == kind)
    return f"column {name!r} holds {why}"


def choose(source: Source, unit: Unit) -> tuple[Field, str]:
    """Return the field that `read_lengths` uses when none is named, and the reason in words."""
    fields = source.fields
    ranks = _RANKS[unit]
    # Of conversations stored as lists of messages, the sizes are how many there are, which is nobody's length.
    whole = [field for field in fields if not field.inner and field.holds != "records"]
    if len(fields) == len(whole) == 1 and fields[0].kind in WANTED[unit]:
        return fields[0], ONLY
    for kind, names, _ in ranks:
        paths = {field.path: field for field in reversed(whole) if field.kind == kind}
        for name in names if paths else ():
            if name in paths:
                return named(source, name, unit), reason_for(name, kind)
    only = [field for field in whole if field.kind == ranks[-1][0] and field.holds == "tokens"]
    if len(only) == 1:
        return only[0], f"{only[0].path!r} is the only column of {ranks[-1][2].partition(',')[0]}"
    if len(fields) == 1 and not fields[0].path:
        raise LengthwiseError(_unfit(source.where, fields[0], unit))
    kinds = {field.kind for field in fields}
    advice = TEXT if unit == "tokens" and "bytes" in kinds else NEEDED
    raise LengthwiseError(
        f"{source.where} has no column that is known to hold lengths; it has {listed(fields)}; "
        f"{'name one with column=...' if kinds.intersection(WANTED[unit]) else advice}"
    )


def named(source: Source, path: str, unit: Unit) -> Field:
    """Return the field called `path`, or say what there is instead."""
    matches = [field for field in source.fields if field.path == path]
    if not matches:
        names = {field.path.lower(): field.path for field in reversed(source.fields)}
        if not any(names):
            raise LengthwiseError(f"{source.where} has no column names, so no {path!r}; leave column out")
        close = [names[name] for name in get_close_matches(path.lower(), names, 1)]
        meant = f"; did you mean {close[0]!r}?" if close else ""
        raise LengthwiseError(f"{source.where} has no column {path!r}; it has {listed(source.fields)}{meant}")
    if len(matches) > 1:
        raise LengthwiseError(f"{source.where} has {len(matches)} columns called {path!r}; rename them")
    field = matches[0]
    if field.kind in WANTED[unit]:
        return field
    raise LengthwiseError(_unfit(f"column {path!r} of {source.where}", field, unit))


def _unfit(where: str, field: Field, unit: Unit) -> str:
    """Say why a column gives no lengths."""
    if unit == "bytes":
        return f'{where} holds {field.type}; unit="bytes" measures text only'
    if field.kind == "bytes":
        return f"{where} holds {field.type}, not tokens; {TEXT}"
    if field.holds == "records":
        return f"{where} holds {field.type}, records rather than tokens; pass their tokens, or how many there are"
    return f"{where} holds {field.type}; {NEEDED}"


def listed(fields: Sequence[Field], limit: int = 12) -> str:
    """Return the fields as words for a message."""
    if not fields:
        return "no columns"
    shown = ", ".join(f"{field.path} ({field.type})" for field in fields[:limit])
    return f"{shown} and {len(fields) - limit} more" if len(fields) > limit else shown
