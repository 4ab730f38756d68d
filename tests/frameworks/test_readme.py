"""The snippets of the README run as they stand, on a small dataset."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import datasets
import lightning
import numpy as np
import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from lightning.fabric import Fabric
from torch.utils.data import DataLoader  # noqa: F401
from transformers import Trainer, TrainingArguments  # noqa: F401

import lengthwise
import lengthwise.integrations.accelerate
import lengthwise.integrations.lightning
import lengthwise.integrations.transformers
import lengthwise.integrations.trl
from lengthwise.torch import BatchSampler, PaddedCollator, Resumable  # noqa: F401 (for the snippets)

README = Path(__file__).parents[2] / "README.md"
LENGTHS = np.random.default_rng(7).integers(1, 30, 60)

pytestmark = [
    pytest.mark.skipif(not README.is_file(), reason="the README is not beside the tests here"),
    pytest.mark.filterwarnings("ignore:The 'train_dataloader' does not have many workers"),
    pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*does not have a .configure_callbacks."),
]


def snippets() -> list[str]:
    """Return every block of Python in the README."""
    text = README.read_text(encoding="utf-8") if README.is_file() else ""
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


class Model(torch.nn.Module):
    """A model for the Trainer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor, attention_mask: torch.Tensor) -> Any:  # noqa: D102
        assert input_ids.shape == labels.shape == attention_mask.shape
        return {"loss": self.weight * 0}


class LitModel(lightning.LightningModule):
    """The same for Lightning."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()

    def training_step(self, batch: dict[str, Any], _: int) -> torch.Tensor:  # noqa: D102
        loss: torch.Tensor = self.model(**batch)["loss"]
        return loss

    def configure_optimizers(self) -> Any:  # noqa: D102
        return torch.optim.SGD(self.parameters(), 0.1)


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the snippets take for granted."""
    monkeypatch.chdir(tmp_path)
    AcceleratorState._reset_state(reset_partial_state=True)
    rows = [list(range(1, n + 1)) for n in LENGTHS.tolist()]
    dataset = datasets.Dataset.from_dict({"input_ids": rows, "labels": rows})
    dataset.save_to_disk("my_dataset")
    quiet: dict[str, Any] = dict.fromkeys(
        ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
    )
    return {
        **globals(),
        "lw": lengthwise,
        "dataset": dataset,
        "lengths": LENGTHS,
        "world_size": 1,
        "epochs": 1,
        "planner": lengthwise.Planner(LENGTHS, lengthwise.Padded(200)),
        "args": TrainingArguments("out", use_cpu=True, report_to=[], num_train_epochs=1, save_strategy="no"),
        "accelerator": Accelerator(cpu=True),  # after the arguments, which begin the state that all accelerators share
        "trainer": lightning.Trainer(max_epochs=1, accelerator="cpu", **quiet),
        "fabric": Fabric(accelerator="cpu"),
    }


@pytest.mark.parametrize("snippet", snippets(), ids=lambda snippet: snippet.split("\n", 1)[0][:40])
def test_a_snippet_runs(snippet: str, names: dict[str, Any]) -> None:
    names["model"] = LitModel() if "lightning" in snippet else Model()
    exec(compile(snippet.replace("num_workers=4", "num_workers=0"), "README.md", "exec"), names)  # noqa: S102


def test_a_recipe_has_at_most_ten_lines() -> None:
    text = README.read_text(encoding="utf-8")
    section = text[text.index("## In your training loop") :].split("\n## ", 2)[0]
    recipes = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(recipes) >= 4
    assert all(recipe.count("\n") <= 10 for recipe in recipes)
