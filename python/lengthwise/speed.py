"""How long batches take: seconds = per_batch + per_token * tokens + per_square * squares.

Problem: say before training what a layout does to the speed. Method: a batch costs a fixed overhead, a part in
proportion to the tokens it computes (padding included), and attention, in proportion to the sum of the squares of its
row lengths. Either one known rate gives `per_token` alone, or a few logged batches give all three by least squares with
no negative coefficient: with three terms every subset of them can be tried, exact where general solvers iterate.
Cost: microseconds a fit, one pass over the batches a prediction. When it is wrong: a loader that cannot keep up, shapes
that trigger recompilation, kernels slow at odd sizes; compare a prediction with a real measurement before trusting it.
Source: Lawson and Hanson, Solving Least Squares Problems (1974), chapter 23, for the condition that decides a subset.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lengthwise._core import LengthwiseError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

#: The fields of one line of a timings log; `squares` may stand in for `longest` where rows are packed.
FIELDS: Final = ("tokens", "longest", "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedModel:
    """Seconds for a batch from its tokens and the squares of its row lengths.

    Attributes:
        per_batch: seconds that every batch takes, whatever is in it.
        per_token: seconds for each token computed, padding included.
        per_square: seconds for each token squared (attention): a padded batch of r rows of L tokens has r * L * L, a
            pack the sum of the squares of its samples.
        rows: how many measured batches the model was fitted to; 0 where it came from one rate.
        error: root mean square of the fit's residuals over the mean measured seconds; 0.0 where nothing was fitted.

    Example:
        >>> model = SpeedModel.from_tokens_per_second(32_000)
        >>> model.seconds(tokens=[65_536, 64_000], longest=[8_192, 1_000])
        array([2.048, 2.   ])
    """

    per_batch: float = 0.0
    per_token: float = 0.0
    per_square: float = 0.0
    rows: int = 0
    error: float = 0.0

    def __post_init__(self) -> None:
        for name in ("per_batch", "per_token", "per_square"):
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise LengthwiseError(f"{name} is {value!r}, but a batch cannot take negative or infinite time")
        if not (self.per_batch or self.per_token or self.per_square):
            raise LengthwiseError("every coefficient is 0, so all work would take no time; give at least one")

    @classmethod
    def from_tokens_per_second(cls, tokens_per_second: float) -> SpeedModel:
        """Return the model of one rate: time in proportion to the tokens computed, padding included.

        Args:
            tokens_per_second: tokens a second that the run computes, padding included; where hardly anything is
                padded (sorted batches, packs) this is the rate of real tokens that a training log shows.

        Raises:
            LengthwiseError: the rate is not a positive number.

        Example:
            >>> SpeedModel.from_tokens_per_second(32_000).per_token
            3.125e-05
        """
        if not 0 < tokens_per_second < float("inf"):
            raise LengthwiseError(f"tokens_per_second is {tokens_per_second!r}, but a rate must be a positive number")
        return cls(per_token=1 / tokens_per_second)

    @classmethod
    def fit(cls, tokens: Any, longest: Any, seconds: Any) -> SpeedModel:
        """Fit the three coefficients to measured batches, by least squares with none of them negative.

        A term stays out where it does not lower the error, so rows of one shape give a plain rate. Means over many
        batches serve as well as single ones: the model is linear.

        Args:
            tokens: float[m], tokens computed in each batch, padding included.
            longest: float[m], tokens in each batch's longest row; for packs, the squares divided by the tokens.
            seconds: float[m], measured time of each batch.

        Raises:
            LengthwiseError: no rows, arrays of different lengths, values that are not finite, or not positive.

        Example:
            >>> model = SpeedModel.fit(tokens=[1e4, 2e4, 4e4], longest=[512, 1024, 512], seconds=[1.5, 3.0, 4.5])
            >>> round(float(model.seconds(tokens=2e4, longest=512)), 3)
            2.5
        """
        measured = _checked(tokens=tokens, longest=longest, seconds=seconds)
        tokens, longest, seconds = measured["tokens"], measured["longest"], measured["seconds"]
        terms = np.stack([np.ones_like(tokens), tokens, tokens * longest], axis=1)
        coefficients, residual = _nonnegative_least_squares(terms, seconds)
        error = float(np.sqrt(residual / len(seconds)) / seconds.mean())
        per_batch, per_token, per_square = map(float, coefficients)
        return cls(per_batch=per_batch, per_token=per_token, per_square=per_square, rows=len(seconds), error=error)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> SpeedModel:
        """Fit the model to a log with one JSON object a line: `{"tokens": ..., "longest": ..., "seconds": ...}`.

        Other fields are ignored, and `squares` (the sum of the squares of the row lengths) may replace `longest`.

        Raises:
            LengthwiseError: a line is not such an object, or the values cannot be fitted; the message names the line.
            OSError: the file cannot be read.
        """
        columns: dict[str, list[float]] = {field: [] for field in FIELDS}
        for row in _log_rows(path):
            for field, value in row.items():
                columns[field].append(value)
        return cls.fit(**columns)

    def seconds(self, *, tokens: Any, longest: Any) -> Floats:
        """Return float64[m], the seconds of batches of `tokens` tokens (with padding) in rows of `longest` tokens."""
        tokens = np.asarray(tokens, np.float64)
        result: Floats = self.per_batch + tokens * (self.per_token + self.per_square * np.asarray(longest, np.float64))
        return result


def _checked(**columns: Any) -> dict[str, Floats]:
    arrays = {name: np.atleast_1d(np.asarray(values, np.float64)) for name, values in columns.items()}
    sizes = {name: array.size for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        raise LengthwiseError(f"tokens, longest and seconds must have one value a batch each, got {sizes}")
    for name, array in arrays.items():
        if array.size == 0:
            raise LengthwiseError("no measured batches to fit; give at least one row of tokens, longest and seconds")
        bad = np.flatnonzero(~(np.isfinite(array) & (array > 0)))
        if bad.size:
            raise LengthwiseError(f"{name}[{bad[0]}] is {array[bad[0]]}, but a measured batch has positive values only")
    return arrays


def _nonnegative_least_squares(terms: Floats, target: Floats) -> tuple[Floats, float]:
    """Return the best coefficients >= 0 and the squared residual: every subset of terms, the small ones first."""
    scale = terms.max(axis=0)
    scaled = terms / scale
    best, best_residual = np.zeros(terms.shape[1]), float(target @ target)
    for size in range(1, terms.shape[1] + 1):
        # Among equals the term of tokens wins over the overhead and over attention.
        for subset in sorted(combinations(range(terms.shape[1]), size), key=lambda kept: 1 not in kept):
            columns = list(subset)
            solution, *_ = np.linalg.lstsq(scaled[:, columns], target, rcond=None)
            residual = float(np.square(scaled[:, columns] @ solution - target).sum())
            # A millionth: below it an added term explains rounding, not time.
            if (solution >= 0).all() and residual < best_residual * (1 - 1e-6) - 1e-18 * float(target @ target):
                best, best_residual = np.zeros(terms.shape[1]), residual
                best[columns] = solution
    result: Floats = best / scale
    return result, best_residual


def _log_rows(path: str | os.PathLike[str]) -> Iterator[dict[str, float]]:
    with open(path, encoding="utf-8") as lines:  # noqa: PTH123 (a path-like of any kind)
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield _log_row(line, f"{path} line {number}")


def _log_row(line: str, where: str) -> dict[str, float]:
    wanted = 'needs a JSON object with the numbers "tokens", "longest" and "seconds"'
    try:
        row = json.loads(line)
    except ValueError as error:
        raise LengthwiseError(f"{where} {wanted}: {error}") from error
    if not isinstance(row, dict):
        raise LengthwiseError(f"{where} {wanted}, got {line.strip():.40}")
    if "longest" not in row and "squares" in row and row.get("tokens"):
        row["longest"] = row["squares"] / row["tokens"]
    for field in FIELDS:
        if isinstance(row.get(field), bool) or not isinstance(row.get(field), (int, float)):
            raise LengthwiseError(f"{where} {wanted}; {field} is {row.get(field)!r}")
    return {field: float(row[field]) for field in FIELDS}
