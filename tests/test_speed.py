"""The speed model: one rate, a fit, a log, and the measurements of the story."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise import LengthwiseError
from lengthwise.speed import SpeedModel

if TYPE_CHECKING:
    from pathlib import Path


def test_one_rate_divides_by_the_padding() -> None:
    """The story's arithmetic: 32 Ktok/s sorted is 14.9 at 2.15 padded tokens for each real one, and 26.1 at 1.224."""
    model = SpeedModel.from_tokens_per_second(32_000)
    real = 1e6
    rates = [real / float(model.seconds(tokens=real * ratio, longest=1)) for ratio in (1.0, 2.15, 1.224)]
    assert [round(rate / 1000, 1) for rate in rates] == [32.0, 14.9, 26.1]


def test_attention_explains_what_padding_leaves() -> None:
    """Padding alone predicts 14.9 where 11.9 was measured; long rows also cost more for each token."""
    real = 1_896_425_587
    padded = real * np.array([1.0001, 2.1494, 1.2243])
    longest = np.array([2948.8, 4655.4, 3703.6])  # squares / tokens of the three plans
    measured = real / np.array([32_000, 11_900, 25_100])
    model = SpeedModel.fit(padded, longest, measured)
    predicted = real / model.seconds(tokens=padded, longest=longest) / 1000
    assert model.per_token > 0
    assert model.per_square > 0
    assert np.abs(predicted / [32.0, 11.9, 25.1] - 1).max() < 0.05
    assert model.error < 0.05


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.floats(0, 1), st.floats(1e-6, 1e-3), st.floats(0, 1e-7)),
    st.lists(st.tuples(st.integers(1_000, 100_000), st.integers(64, 8_192)), min_size=4, max_size=30, unique=True),
)
def test_an_exact_log_is_predicted_exactly(
    coefficients: tuple[float, float, float], batches: list[tuple[int, int]]
) -> None:
    tokens, longest = np.array(batches, float).T
    seconds = coefficients[0] + coefficients[1] * tokens + coefficients[2] * tokens * longest
    model = SpeedModel.fit(tokens, longest, seconds)
    np.testing.assert_allclose(model.seconds(tokens=tokens, longest=longest), seconds, rtol=5e-3)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_no_nonnegative_model_fits_better(seed: int) -> None:
    """Twin: coefficients on a grid around the answer, none of which may have a smaller error."""
    rng = np.random.default_rng(seed)
    tokens, longest = rng.uniform(1e3, 1e5, 12), rng.uniform(64, 8192, 12)
    seconds = rng.uniform(0.1, 5, 12)
    model = SpeedModel.fit(tokens, longest, seconds)

    def error(per_batch: float, per_token: float, per_square: float) -> float:
        return float(np.square(per_batch + tokens * (per_token + per_square * longest) - seconds).sum())

    found = error(model.per_batch, model.per_token, model.per_square)
    steps = (0.0, -1e-2, 1e-2)
    units = (seconds.mean(), seconds.mean() / tokens.mean(), seconds.mean() / (tokens * longest).mean())
    for moves in itertools.product(steps, repeat=3):
        other = [
            max(0.0, value + move * unit)
            for value, move, unit in zip(
                (model.per_batch, model.per_token, model.per_square), moves, units, strict=True
            )
        ]
        assert error(*other) >= found * (1 - 1e-5)


def test_rows_of_one_shape_give_a_rate() -> None:
    model = SpeedModel.fit([1_000, 1_000], [10, 10], [2.0, 2.0])
    assert (model.per_batch, model.per_square, model.rows) == (0.0, 0.0, 2)
    assert model.error == pytest.approx(0, abs=1e-9)
    assert model.per_token == pytest.approx(2e-3)


def test_read_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    rows: list[dict[str, Any]] = [
        {"step": 1, "tokens": 1000, "longest": 100, "seconds": 1.0, "loss": 2.5},
        {"tokens": 2000, "squares": 200_000, "seconds": 2.0},
    ]
    log.write_text("\n\n".join(map(json.dumps, rows)))
    model = SpeedModel.read(log)
    assert model.rows == 2
    assert float(model.seconds(tokens=4000, longest=100)) == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no measured batches"),
        ('{"tokens": 1, "longest": 1, "seconds": 1}\nnot json', "line 2 needs a JSON object"),
        ("[1, 2, 3]", "got \\[1, 2, 3\\]"),
        ('{"tokens": 5, "longest": 3}', "seconds is None"),
        ('{"tokens": true, "longest": 3, "seconds": 1}', "tokens is True"),
        ('{"tokens": 5, "longest": 3, "seconds": -1}', "seconds\\[0\\] is -1.0"),
        ('{"tokens": 5, "longest": 3, "seconds": NaN}', "seconds\\[0\\] is nan"),
    ],
)
def test_a_bad_log_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(text)
    with pytest.raises(LengthwiseError, match=message):
        SpeedModel.read(log)


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_a_rate_is_positive(rate: float) -> None:
    with pytest.raises(LengthwiseError, match="a rate must be a positive number"):
        SpeedModel.from_tokens_per_second(rate)


def test_columns_of_different_lengths() -> None:
    with pytest.raises(LengthwiseError, match="one value a batch each"):
        SpeedModel.fit([1, 2], [1], [1, 2])


def test_coefficients_are_checked() -> None:
    with pytest.raises(LengthwiseError, match="per_token is -1"):
        SpeedModel(per_token=-1.0)
    with pytest.raises(LengthwiseError, match="every coefficient is 0"):
        SpeedModel()
