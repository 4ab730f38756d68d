"""The lines to paste: the chosen boundaries in this library's terms and in those of others."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

from lengthwise.report.model import Snippet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lengthwise.report.model import Dataset, Settings


def snippets(boundaries: Sequence[int], settings: Settings, dataset: Dataset | None) -> tuple[Snippet, ...]:
    """Return the lines for lengthwise with PyTorch, lhotse, tf.data and NeMo.

    Args:
        boundaries: inclusive upper bounds, ascending.
        settings: budget, ranks, alignment.
        dataset: where the lengths came from, to name it.
    """
    bounds = [int(bound) for bound in boundaries]
    sizes = [max(settings.max_tokens // aligned(bound, settings.multiple_of), 1) for bound in bounds]
    return (
        Snippet(tool="lengthwise, PyTorch", language="python", code=_ours(bounds, settings, dataset)),
        Snippet(tool="lhotse", language="python", code=_lhotse(bounds, settings)),
        Snippet(tool="tf.data", language="python", code=_tensorflow(bounds, sizes)),
        Snippet(tool="NeMo", language="yaml", code=_nemo(bounds, sizes)),
    )


def aligned(length: int, multiple_of: int) -> int:
    """Return a length rounded up to a multiple."""
    return -(-length // multiple_of) * multiple_of


def _ours(bounds: list[int], settings: Settings, dataset: Dataset | None) -> str:
    source = repr(dataset.source) if dataset else "dataset"
    column = f", {dataset.column!r}" if dataset and dataset.column else ""
    layout = f"max_tokens={settings.max_tokens}, boundaries=boundaries"
    layout += f", multiple_of={settings.multiple_of}" if settings.multiple_of > 1 else ""
    ranks = f", world_size={settings.world_size}" if settings.world_size > 1 else ""
    rank = ", rank=rank" if settings.world_size > 1 else ""
    return dedent(f"""\
        import lengthwise as lw
        from lengthwise.torch import BatchSampler

        lengths = lw.read_lengths({source}{column})
        boundaries = {bounds}
        layout = lw.Padded({layout})
        planner = lw.Planner(lengths, layout, seed=0{ranks})
        sampler = BatchSampler(planner{rank})
        loader = DataLoader(dataset, batch_sampler=sampler, collate_fn=collate)
        for epoch in range(epochs):
            sampler.set_epoch(epoch)
            for batch in loader: ...
        """)


def _lhotse(bounds: list[int], settings: Settings) -> str:
    inner = ", ".join(str(bound) for bound in bounds[:-1])
    return dedent(f"""\
        from lhotse.dataset import DynamicBucketingSampler
        from lhotse.dataset.sampling.base import TokenConstraint

        # For text examples, whose length is num_tokens; the last bucket has no bound.
        sampler = DynamicBucketingSampler(
            examples,
            shuffle=True,
            duration_bins=[{inner}],
            constraint=TokenConstraint(max_tokens={settings.max_tokens}),
        )
        """)


def _tensorflow(bounds: list[int], sizes: list[int]) -> str:
    inner = ", ".join(str(bound + 1) for bound in bounds[:-1])
    return dedent(f"""\
        # tf.data's boundaries are exclusive upper bounds, so each is one more than ours.
        dataset = dataset.bucket_by_sequence_length(
            element_length_func=lambda sample: tf.shape(sample["input_ids"])[0],
            bucket_boundaries=[{inner}],
            bucket_batch_sizes={sizes},
        )
        """)


def _nemo(bounds: list[int], sizes: list[int]) -> str:
    return dedent(f"""\
        use_bucketing: true
        num_buckets: {len(bounds)}
        bucket_duration_bins: {bounds}
        bucket_batch_size: {sizes}
        """)
