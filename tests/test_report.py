"""The report's figures: against naive twins, against the planner, and against the sampler that it imitates."""

from __future__ import annotations

import ast
import itertools
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise import LengthwiseError
from lengthwise.report import draw, words
from lengthwise.report.analysis import analyse
from lengthwise.report.figures import figures, longest, truncations
from lengthwise.report.headline import headline
from lengthwise.report.json import schema, to_json
from lengthwise.report.measure import Measured
from lengthwise.speed import SpeedModel

if TYPE_CHECKING:
    from lengthwise.report.model import Report

batches = st.lists(st.lists(st.integers(1, 60), min_size=1, max_size=6), min_size=1, max_size=20)


@pytest.fixture(scope="module")
def report(story: Any) -> Report:
    return analyse(story[:20_000], max_tokens=65_536, world_size=4, accumulate=2, capacity=16_384)


@settings(max_examples=80, deadline=None)
@given(batches, st.integers(1, 3), st.integers(1, 3))
def test_measures_equal_their_naive_twin(rows: list[list[int]], world_size: int, accumulate: int) -> None:
    widths = [max(row) for row in rows]
    measured = Measured.padded_batches(list(itertools.chain(*rows)), [len(row) for row in rows], widths)
    padded = [len(row) * max(row) for row in rows]
    assert measured.padded_ratio == pytest.approx(sum(padded) / sum(map(sum, rows)))
    assert measured.shapes == len({(len(row), max(row)) for row in rows})
    assert measured.real.tolist() == [sum(row) for row in rows]

    each = world_size * accumulate
    steps = [padded[start : start + each] for start in range(0, len(padded), each)]
    loads = [[sum(step[rank::world_size]) for rank in range(world_size)] for step in steps]
    assert measured.imbalance(world_size, accumulate) == pytest.approx(
        sum(max(load) for load in loads) * world_size / sum(padded) - 1
    )
    model = SpeedModel(per_batch=1.0, per_token=0.5, per_square=0.25)
    costs = [1 + 0.5 * len(row) * max(row) + 0.25 * len(row) * max(row) ** 2 for row in rows]
    slowest = [
        max(sum(costs[start : start + each][rank::world_size]) for rank in range(world_size))
        for start in range(0, len(costs), each)
    ]
    assert measured.seconds(model, world_size, accumulate) == pytest.approx(sum(slowest))


def test_packs_attend_inside_samples_only() -> None:
    measured = Measured.packs([3, 4, 5], [2, 1], capacity=8)
    assert measured.squares.tolist() == [25.0, 25.0]
    assert measured.padded.tolist() == [8, 8]
    assert measured.padded_ratio == pytest.approx(16 / 12)


def test_figures_are_those_of_the_planner(story: Any, report: Report) -> None:
    lengths = story[:20_000]
    chosen = report.strategy(report.recommended)
    plan = lw.Planner(lengths, lw.Padded(65_536, boundaries=chosen.boundaries), seed=0, world_size=4).plan(0)
    assert chosen.padded_ratio == pytest.approx(plan.summary.ratio)
    assert (chosen.batches, chosen.shapes) == (plan.summary.batches, plan.summary.shapes)
    assert chosen.largest_batch == plan.summary.largest_tokens
    assert chosen.mixing == pytest.approx(plan.summary.mixing.neighbour_correlation)
    alone = analyse(lengths, max_tokens=65_536, world_size=4).strategy(report.recommended)
    assert alone.imbalance == pytest.approx(plan.summary.imbalance)
    assert chosen.boundaries == tuple(lw.optimal_boundaries(lengths, len(chosen.boundaries)))
    packed = lw.Planner(lengths, lw.Packed(16_384), seed=0, world_size=4).plan(0).summary
    assert report.strategy("best-fit").padded_ratio == pytest.approx(packed.ratio)
    assert report.strategy("bound").batches == lw.pack(lengths, 16_384).lower_bound


def test_strategies_rank_as_theory_says(report: Report) -> None:
    ratio = {strategy.key: strategy.padded_ratio for strategy in report.strategies}
    assert ratio["sorted"] < ratio["optimal"] < ratio["equal-count"] < ratio["fixed"]
    assert ratio["optimal"] < ratio["powers"]
    assert ratio["bound"] <= ratio["best-fit"] <= ratio["next-fit"]
    assert report.recommended == "optimal"
    assert report.strategies[0].key == "fixed"
    assert report.strategies[0].speed == pytest.approx(1.0)
    assert all(strategy.largest_batch is None or strategy.largest_batch <= 65_536 for strategy in report.strategies)
    assert all(strategy.steps == -(-strategy.batches // 8) for strategy in report.strategies)


def test_windows_are_those_of_the_trainer(story: Any) -> None:
    """The padding of `group_by_length` itself, on the same lengths and batch size."""
    trainer = pytest.importorskip("transformers.trainer_pt_utils")
    torch = pytest.importorskip("torch")
    lengths = story[:20_000]
    theirs = trainer.get_length_grouped_indices(
        lengths.tolist(), batch_size=16, generator=torch.Generator().manual_seed(0)
    )
    ordered = lengths[np.asarray(theirs)].astype(int)
    padded = sum(16 * ordered[start : start + 16].max() for start in range(0, 20_000, 16))
    ours = analyse(lengths, batch_size=16).strategy("windows")
    assert ours.padded_ratio == pytest.approx(padded / ordered.sum(), rel=0.005)
    assert ours.batches == 1250


def test_json_is_what_the_schema_says(report: Report) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    document = json.loads(to_json(report))
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(document, schema())
    assert document["version"] == 1
    # Every field is described, and nothing else is there.
    assert set(document) == set(schema()["properties"])
    for name in ("Strategy", "Settings", "LengthFigures"):
        assert all("description" in field for field in schema()["$defs"][name]["properties"].values())
    assert set(document["strategies"][0]) == set(schema()["$defs"]["Strategy"]["properties"])


def test_speed_and_time_come_from_the_model(story: Any) -> None:
    made = analyse(story[:5_000], max_tokens=65_536, speed=SpeedModel.from_tokens_per_second(32_000))
    assert made.speed is not None
    assert made.speed.source == "rate"
    for strategy in made.strategies:
        if not strategy.bound:
            assert strategy.seconds == pytest.approx(strategy.padded_ratio * made.lengths.tokens / 32_000)
    fitted = SpeedModel.fit([1e4, 2e4, 3e4], [512, 2048, 1024], [1.0, 2.4, 3.2])
    attention = analyse(story[:5_000], max_tokens=65_536, speed=fitted)
    assert attention.speed is not None
    assert attention.speed.source == "timings"
    # Attention punishes long rows: shuffled batches, whose rows are all as long as the longest, lose more than padding.
    plain, real = made.strategy("shuffled"), attention.strategy("shuffled")
    assert real.speed / attention.strategy("sorted").speed < plain.speed / made.strategy("sorted").speed


def test_the_story_in_days(story: Any) -> None:
    """Six epochs at 32 Ktok/s sorted: 5.1 days with the six published boundaries, by padding alone."""
    from lengthwise.story import PUBLISHED_BOUNDARIES

    plan = lw.Planner(story, lw.Padded(65_536, boundaries=PUBLISHED_BOUNDARIES), seed=0).plan(0)
    model = SpeedModel.from_tokens_per_second(32_000)
    seconds = model.seconds(tokens=plan.sizes * plan.padded_lengths.astype(float), longest=plan.padded_lengths).sum()
    assert 6 * seconds / 86_400 == pytest.approx(5.1, abs=0.1)


def test_over_long_samples_are_cut_and_said() -> None:
    made = analyse([100] * 50 + [5_000], max_tokens=1_000)
    assert "1 samples do not fit" in made.lengths.warnings[0]
    assert all((strategy.largest_batch or 0) <= 1_000 for strategy in made.strategies)
    assert made.lengths.percentiles[-1] == (100, 5_000)


def test_alignment_holds_in_every_strategy(story: Any) -> None:
    made = analyse(story[:3_000], max_tokens=65_536, multiple_of=64)
    for batch in made.pictures.batches:
        if batch.strategy != "best-fit":
            assert batch.padded_length % 64 == 0


@pytest.mark.parametrize(
    ("lengths", "said"),
    [
        ([7] * 500, "all 500 samples have length 7"),
        ([0, 1, 2, 3] * 300, "300 samples are empty"),
        ([3, 4, 5] * 400, "no sample is longer than 5"),
        ([*range(100, 300), *[512] * 100], "33.3% of the samples have exactly the longest length 512"),
        ([*range(100, 1_200), 90_000], "more than 10 times the 99th percentile"),
    ],
)
def test_suspicious_lengths_are_said(lengths: list[int], said: str) -> None:
    found = figures(np.array(lengths, np.uint32), lw.Histogram.of(lengths))
    assert any(said in warning for warning in found.warnings), found.warnings


def test_ordinary_lengths_are_not_suspicious(story: Any) -> None:
    assert figures(story, lw.Histogram.of(story)).warnings == ()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=200))
def test_longest_and_truncated_equal_their_naive_twins(lengths: list[int]) -> None:
    array, found = np.array(lengths, np.uint32), lw.Histogram.of(lengths)
    assert list(longest(array, found)) == sorted(enumerate(lengths), key=lambda pair: (-pair[1], pair[0]))[:10]
    for cut in truncations(found):
        assert cut.samples == sum(length > cut.max_length for length in lengths)
        assert cut.tokens == sum(max(length - cut.max_length, 0) for length in lengths)


@pytest.mark.parametrize(
    ("lengths", "options", "message"),
    [
        ([], {}, "no tokens to report on"),
        ([0, 0], {}, "no tokens to report on"),
        ([1, 2], {"max_tokens": 0}, "max_tokens is 0"),
        ([1, 2], {"capacity": 0}, "capacity is 0"),
        ([1, 2], {"world_size": 0}, "world_size is 0"),
        ([1, 2], {"max_tokens": 8, "multiple_of": 16}, "one token already takes multiple_of=16"),
    ],
)
def test_bad_settings_are_refused(lengths: list[int], options: dict[str, Any], message: str) -> None:
    with pytest.raises(LengthwiseError, match=message):
        analyse(lengths, **options)


@pytest.mark.parametrize("lengths", [[1], [5], [0, 1], [1, 1], [3, 3, 3], [1, 2], list(range(1, 40)), [2**20, 1]])
def test_small_data_sets_have_a_report(lengths: list[int]) -> None:
    made = analyse(lengths)
    json.loads(to_json(made))
    assert len(headline(made)) == 3
    assert made.lengths.samples == len(lengths)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 4_000), min_size=1, max_size=100), st.integers(1, 90))
def test_columns_keep_every_sample(lengths: list[int], width: int) -> None:
    found = lw.Histogram.of(lengths)
    edges = draw.edges(int(found.lengths[0]), int(found.lengths[-1]), width)
    heights = draw.spread(found.lengths, found.counts, edges)
    assert len(heights) == width
    assert heights.sum() == pytest.approx(len(lengths))
    lines = draw.columns(heights, 4)
    assert len(lines) == 4
    assert all(len(line) == width for line in lines)
    # What is there is seen.
    assert all(block != " " for block, height in zip(lines[-1], heights, strict=True) if height > 0)


def test_numbers_as_people_read_them() -> None:
    assert words.short(65_536) == "64k"
    assert words.duration(0.5) == "500.0 ms"
    assert words.ratio(1.0) == "1.0000"


def test_snippets_are_code_with_our_boundaries(report: Report) -> None:
    bounds = list(report.strategy(report.recommended).boundaries)
    by_tool = {snippet.tool: snippet for snippet in report.snippets}
    for snippet in report.snippets:
        if snippet.language == "python":
            ast.parse(snippet.code)
    ours = by_tool["lengthwise, PyTorch"].code
    assert f"boundaries = {bounds}" in ours
    assert "max_tokens=65536" in ours
    # tf.data's bounds are exclusive; lhotse's are inclusive, and leave the last one out.
    assert f"bucket_boundaries={[bound + 1 for bound in bounds[:-1]]}" in by_tool["tf.data"].code
    assert f"duration_bins={bounds[:-1]}" in by_tool["lhotse"].code
    yaml = pytest.importorskip("yaml")
    settings = yaml.safe_load(by_tool["NeMo"].code)
    assert settings["bucket_duration_bins"] == bounds
    assert settings["bucket_batch_size"] == [65_536 // bound for bound in bounds]
