"""TRL trains data sets that were packed beforehand, and padded batches as planned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling, SFTTrainer

import lengthwise as lw
from lengthwise.integrations.transformers import PlannedTrainer
from lengthwise.integrations.trl import packed_dataset

if TYPE_CHECKING:
    from pathlib import Path

    import torch

RNG = np.random.default_rng(7)
ROWS = [RNG.integers(1, 99, n).tolist() for n in RNG.integers(1, 30, 60)]


def naive(rows: list[list[int]], packs: lw.Packs) -> list[dict[str, list[int]]]:
    """The packs, one token list after another."""
    result = []
    for pack in range(len(packs)):
        entries = range(int(packs.offsets[pack]), int(packs.offsets[pack + 1]))
        parts = [rows[packs.indices[entry]] for entry in entries]
        if packs.segments is not None:
            parts = [part[slice(*packs.segments[entry].tolist())] for part, entry in zip(parts, entries, strict=True)]
        tokens = [token for part in parts for token in part]
        result.append({"input_ids": tokens, "labels": tokens, "seq_lengths": [len(part) for part in parts if part]})
    return result


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=12), min_size=1, max_size=30),
    st.sampled_from(["split", "truncate", "drop"]),
)
@settings(deadline=None, max_examples=30)
def test_packs_become_rows(rows: list[list[int]], overlong: Any) -> None:
    dataset = Dataset.from_dict({"input_ids": [[1], *rows]}).select(range(1, len(rows) + 1))
    packs = lw.pack([len(row) for row in rows], capacity=8, overlong=overlong)
    if len(packs):
        assert packed_dataset(dataset, packs).to_list() == naive(rows, packs)


@pytest.mark.parametrize("column", ["labels", "loss_mask", "completion_mask"])
def test_labels_come_from_the_data_set(column: str, tmp_path: Path) -> None:
    masks = [[token % 2 for token in row] for row in ROWS]
    labels = [[token if token % 2 else -100 for token in row] for row in ROWS]
    dataset = Dataset.from_dict({"input_ids": ROWS, column: labels if column == "labels" else masks, "id": ROWS})
    packs = lw.pack([len(row) for row in ROWS], capacity=40)
    packed = packed_dataset(dataset, packs, tmp_path / "packed.arrow")
    assert packed.column_names == ["input_ids", "labels", "seq_lengths"]
    assert packed["labels"][:] == [row["labels"] for row in naive(labels, packs)]
    assert packed["input_ids"][:] == [row["input_ids"] for row in naive(ROWS, packs)]


def test_the_collator_of_trl_sees_every_sample_for_itself() -> None:
    packs = lw.pack([len(row) for row in ROWS], capacity=40)
    packed = packed_dataset(Dataset.from_dict({"input_ids": ROWS}), packs)
    collator = DataCollatorForLanguageModeling(pad_token_id=0, padding_free=True)
    for pack, row in zip(packs, packed, strict=True):
        batch = collator([row])
        expected = np.cumsum([0, *(len(ROWS[sample]) for sample in pack)])
        assert batch["cu_seq_lens_q"].tolist() == expected.tolist()
        assert "attention_mask" not in batch
        assert (batch["labels"][0][expected[:-1]] == -100).all()


def test_misfits_are_refused() -> None:
    packs = lw.pack([len(row) for row in ROWS], capacity=40)
    with pytest.raises(lw.LengthwiseError, match=r"no column input_ids, but \['tokens'\]"):
        packed_dataset(Dataset.from_dict({"tokens": ROWS}), packs)
    with pytest.raises(lw.LengthwiseError, match="packs name sample 59, but the data set has 30 rows"):
        packed_dataset(Dataset.from_dict({"input_ids": ROWS[:30]}), packs)
    with pytest.raises(lw.LengthwiseError, match="longer than when they were packed"):
        packed_dataset(Dataset.from_dict({"input_ids": [row * 3 for row in ROWS]}), packs)


trl_warns = pytest.mark.filterwarnings(
    "ignore:`gradient_checkpointing` is deprecated:FutureWarning"  # TRL 1.16 sets it beside transformers 5.24
)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    vocabulary = {"<pad>": 0, **{f"w{token}": token for token in range(1, 100)}}
    make: Any = PreTrainedTokenizerFast
    return make(
        tokenizer_object=Tokenizer(WordLevel(vocabulary, unk_token="<pad>")),  # noqa: S106 (no password)
        pad_token="<pad>",  # noqa: S106
        eos_token="<pad>",  # noqa: S106
    )


@pytest.fixture
def model() -> LlamaForCausalLM:
    sizes: Any = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    return LlamaForCausalLM(LlamaConfig(vocab_size=100, **sizes))


class Recorder:
    """Remembers the batches that a model is given."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.batches: list[dict[str, Any]] = []
        model.register_forward_pre_hook(lambda _, __, batch: self.batches.append(batch), with_kwargs=True)


def config(folder: Path, **options: Any) -> SFTConfig:
    return SFTConfig(
        output_dir=str(folder),
        use_cpu=True,
        bf16=False,
        report_to=[],
        disable_tqdm=True,
        num_train_epochs=1,
        save_strategy="no",
        logging_strategy="no",
        dataset_kwargs={"skip_prepare_dataset": True},
        **options,
    )


@trl_warns
def test_sft_trains_the_packs(tmp_path: Path, model: Any, tokenizer: Any) -> None:
    packs = lw.pack([len(row) for row in ROWS], capacity=200)
    packed = packed_dataset(Dataset.from_dict({"input_ids": ROWS}), packs)
    args = config(tmp_path, padding_free=True, per_device_train_batch_size=1, max_length=None)
    recorder = Recorder(model)
    SFTTrainer(model, args, train_dataset=packed, processing_class=tokenizer).train()
    assert sorted(tuple(batch["input_ids"][0].tolist()) for batch in recorder.batches) == sorted(
        tuple(row["input_ids"]) for row in packed
    )
    assert all("cu_seq_lens_q" in batch and "attention_mask" not in batch for batch in recorder.batches)


class PlannedSFT(PlannedTrainer, SFTTrainer):
    """What a user writes."""


@trl_warns
def test_sft_trains_padded_batches_as_planned(tmp_path: Path, model: Any, tokenizer: Any) -> None:
    planner = lw.Planner([len(row) for row in ROWS], lw.Padded(max_tokens=200))
    dataset = Dataset.from_dict({"input_ids": ROWS, "labels": ROWS})
    recorder = Recorder(model)
    PlannedSFT(
        model, config(tmp_path, max_length=None), train_dataset=dataset, processing_class=tokenizer, planner=planner
    ).train()
    assert [len(batch["input_ids"]) for batch in recorder.batches] == planner.plan(0).sizes.tolist()
    assert all(batch["input_ids"].numel() <= 200 for batch in recorder.batches)
