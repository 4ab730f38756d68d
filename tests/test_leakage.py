"""Packed samples do not see each other: real attention on the CPU gives each the logits that it has alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from lengthwise.torch import PackedCollator, block_mask, dense_mask, nested

HEADS, WIDTH, WORDS = 2, 32, 101
Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


class Model(torch.nn.Module):
    """Two attention layers over tokens and positions; how it attends is given with each call."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.places = torch.nn.Embedding(WORDS, WIDTH), torch.nn.Embedding(256, WIDTH)
        self.mixers = torch.nn.ModuleList(torch.nn.Linear(WIDTH, 3 * WIDTH) for _ in range(2))
        self.head = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, ids: torch.Tensor, positions: torch.Tensor, attend: Attend) -> torch.Tensor:
        """Logits of every token."""
        hidden = self.words(ids) + self.places(positions)
        for mix in self.mixers:
            query, key, value = (part.unflatten(-1, (HEADS, -1)) for part in mix(hidden).chunk(3, -1))
            hidden = hidden + attend(query, key, value).flatten(-2)
        logits: torch.Tensor = self.head(hidden)
        return logits


def whole(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    query, key, value = (part.transpose(1, 2) for part in (query, key, value))
    return scaled_dot_product_attention(query, key, value, is_causal=True).transpose(1, 2)


def sdpa(batch: dict[str, Any]) -> Attend:
    mask = dense_mask(batch["document_ids"])

    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        query, key, value = (part.transpose(1, 2) for part in (query, key, value))
        return scaled_dot_product_attention(query, key, value, attn_mask=mask).transpose(1, 2)

    return attend


def flex(batch: dict[str, Any]) -> Attend:
    from torch.nn.attention.flex_attention import flex_attention

    mask = block_mask(batch["document_ids"])

    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        query, key, value = (part.transpose(1, 2) for part in (query, key, value))
        return flex_attention(query, key, value, block_mask=mask).transpose(1, 2)

    return attend


def jagged(batch: dict[str, Any]) -> Attend:
    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        parts = [nested(part, batch["cu_seqlens"], batch["max_seqlen"]) for part in (query, key, value)]
        # One sample at a time: the CPU has no fused kernel for nested tensors.
        made = [whole(*(part[None] for part in sample))[0] for sample in zip(*(p.unbind() for p in parts), strict=True)]
        return torch.cat(made)[None]

    return attend


def rows_of(lengths: list[int]) -> list[dict[str, Any]]:
    rng = np.random.default_rng(1)
    return [{"input_ids": rng.integers(0, WORDS, n)} for n in lengths]


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("how", [sdpa, flex, jagged])
@pytest.mark.parametrize("options", [{}, {"capacity": 128}, {"capacity": 128, "multiple_of": 8}])
def test_each_packed_sample_has_the_logits_that_it_has_alone(
    how: Callable[[dict[str, Any]], Attend], options: dict[str, int]
) -> None:
    rows = rows_of([17, 1, 40, 23, 8])
    emit = ["position_ids", "document_ids", "cu_seqlens", "max_seqlen"]
    batch = PackedCollator(emit=emit, **options)(rows)  # type: ignore[arg-type]
    model = Model()
    with torch.no_grad():
        packed = model(batch["input_ids"], batch["position_ids"], how(batch))[0]
        assert packed.isfinite().all()
        for row, start in zip(rows, batch["cu_seqlens"].tolist(), strict=False):
            ids = torch.from_numpy(row["input_ids"])[None]
            alone = model(ids, torch.arange(ids.shape[1])[None], whole)[0]
            torch.testing.assert_close(packed[start : start + ids.shape[1]], alone, rtol=1e-4, atol=1e-5)


def test_without_a_mask_the_samples_would_see_each_other() -> None:
    rows = rows_of([17, 40])
    batch = PackedCollator()(rows)
    model = Model()
    with torch.no_grad():
        packed = model(batch["input_ids"], batch["position_ids"], whole)[0, 17:]
        ids = torch.from_numpy(rows[1]["input_ids"])[None]
        alone = model(ids, torch.arange(40)[None], whole)[0]
    assert (packed - alone).abs().max() > 0.01


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("options", [{}, {"capacity": 96}])
def test_a_model_of_transformers_keeps_packed_samples_apart(attention: str, options: dict[str, int]) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    tiny: Any = LlamaConfig
    config = tiny(
        vocab_size=WORDS,
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        attn_implementation=attention,
    )
    model: Any = LlamaForCausalLM(config)
    model.eval()
    rows = rows_of([17, 1, 40, 23])
    batch = PackedCollator(emit=["position_ids"], **options)(rows)  # type: ignore[arg-type]
    with torch.no_grad():
        packed = model(**{k: batch[k] for k in ("input_ids", "position_ids")}, use_cache=False).logits[0]
        start = 0
        for row in rows:
            ids = torch.from_numpy(row["input_ids"])[None]
            alone = model(input_ids=ids).logits[0]
            torch.testing.assert_close(packed[start : start + ids.shape[1]], alone, rtol=1e-4, atol=1e-5)
            start += ids.shape[1]
    assert packed.isfinite().all()


def test_attention_in_both_directions_stays_inside_samples() -> None:
    ids = PackedCollator(emit=["document_ids"], capacity=8, multiple_of=2)(rows_of([3, 2]))["document_ids"]
    assert ids.tolist() == [[0, 0, 0, -1, 1, 1, -1, -1]]
    mask = dense_mask(ids, causal=False)[0, 0]
    assert torch.equal(mask, mask.T)
    assert mask.sum(1).tolist() == [3, 3, 3, 3, 2, 2, 3, 3]
