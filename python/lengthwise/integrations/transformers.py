"""Hugging Face `Trainer` (and TRL's, which derive from it): a mixin that trains on planned batches.

`Trainer` has no argument for a batch sampler, reads the number of batches once for its schedule, deals batches to the
processes as accelerate does, and resumes by skipping the indices of the batches done. The mixin gives it a loader that
draws from a `BatchSampler` of as many batches every epoch, dealt once, in the right epoch also where it resumes.

What it cannot do: `Trainer` counts in steps of its own, so that a checkpoint must be resumed with the same plan on as
many processes (a file in the checkpoint tells); and evaluation is left as it is. `per_device_train_batch_size` has no
say, `auto_find_batch_size` no effect.
"""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch.utils.data
import transformers.trainer_utils
from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, seed_worker

from lengthwise import LengthwiseError
from lengthwise.integrations.accelerate import deal_once
from lengthwise.torch.sampler import BatchSampler
from lengthwise.torch.segmented import Segmented
from lengthwise.torch.state import Identity, read_state

if TYPE_CHECKING:
    from torch.utils.data import DataLoader
    from transformers import Trainer

    from lengthwise.planner import Planner

    _Base = Trainer
else:
    _Base = object

#: The file in a checkpoint that says what its batches were planned from.
IDENTITY: Final = "lengthwise.json"


def _last_checkpoint(folder: str) -> str | None:
    untyped: Any = transformers.trainer_utils.get_last_checkpoint
    last: str | None = untyped(folder)
    return last


class _WriteIdentity(TrainerCallback):
    """Puts what the batches were planned from into every checkpoint."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002 (the Trainer's names)
        """Write it beside the weights."""
        folder = Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
        if state.is_world_process_zero and folder.is_dir():
            (folder / IDENTITY).write_text(json.dumps(BatchSampler(self._planner, rank=0).state_dict()))


class PlannedTrainer(_Base):
    """Mixin for `Trainer`: `class MyTrainer(PlannedTrainer, Trainer)`.

    Args:
        planner: plans the epochs of `train_dataset`; its `world_size` must be the number of processes.
        args: the arguments of the trainer, by position or by name.

    Raises:
        LengthwiseError: when training starts: the dataset has no length or another one than the planner, or the planner
            is for another number of processes.

    Example:
        >>> from transformers import Trainer
        >>> class MyTrainer(PlannedTrainer, Trainer):
        ...     pass
        >>> # MyTrainer(model, args, train_dataset=dataset, data_collator=collator, planner=planner).train()
    """

    def __init__(self, *args: Any, planner: Planner, **kwargs: Any) -> None:
        self.planner = planner
        super().__init__(*args, **kwargs)
        self.add_callback(_WriteIdentity(planner))

    def train(self, resume_from_checkpoint: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Train as `Trainer` does; a checkpoint of other lengths, another plan or other processes is refused."""
        if resume_from_checkpoint:
            output = str(self.args.output_dir)
            last = _last_checkpoint(output) if resume_from_checkpoint is True else resume_from_checkpoint
            self._check_checkpoint(Path(last or output) / IDENTITY)
        return super().train(resume_from_checkpoint, *args, **kwargs)

    def _check_checkpoint(self, path: Path) -> None:
        if not path.exists():  # saved by a trainer without this mixin
            return
        state = json.loads(path.read_text())
        read_state(state, Identity.of(self.planner), strict=True)
        if state["world_size"] != self.planner.world_size:
            raise LengthwiseError(
                f"the checkpoint is of world_size={state['world_size']}, but the planner has "
                f"{self.planner.world_size}; the Trainer counts in its own steps and resumes on as many processes only"
            )

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return the prepared loader of planned batches."""
        dataset, collator = self._planned_dataset()
        sampler = self._planned_sampler()
        args = self.args
        loader: DataLoader[Any] = torch.utils.data.DataLoader(
            Segmented(dataset) if sampler.yields_segments else dataset,
            batch_sampler=sampler,
            collate_fn=collator,
            num_workers=args.dataloader_num_workers,
            pin_memory=args.dataloader_pin_memory,
            persistent_workers=args.dataloader_persistent_workers,
            prefetch_factor=args.dataloader_prefetch_factor,
            worker_init_fn=partial(seed_worker, num_workers=args.dataloader_num_workers, rank=args.process_index),
        )
        prepared: DataLoader[Any] = self.accelerator.prepare(loader)
        deal_once(prepared, sampler)
        return prepared

    def _planned_dataset(self) -> tuple[Any, Any]:
        """Return the dataset and the collator, one of them without the columns that the model does not take."""
        dataset: Any = self.train_dataset
        if not hasattr(dataset, "__len__"):
            raise LengthwiseError(
                f"train_dataset is a {type(dataset).__name__} without a length, but a plan needs every row's place; "
                "plan a stream with lengthwise.torch.StreamBatches and the plain Trainer instead"
            )
        if type(dataset).__module__.startswith("datasets."):
            return self._remove_unused_columns(dataset, description="training"), self.data_collator
        return dataset, self._get_collator_with_removed_columns(self.data_collator, description="training")

    def _planned_sampler(self) -> BatchSampler:
        args = self.args
        if self.planner.world_size != args.world_size:
            raise LengthwiseError(
                f"planner has world_size={self.planner.world_size}, but {args.world_size} processes train; "
                f"write Planner(..., world_size={args.world_size})"
            )
        sampler = BatchSampler(self.planner, rank=args.process_index, epochs=1)
        epochs = math.ceil(args.num_train_epochs)
        if args.max_steps > 0:
            epochs = args.max_steps * args.gradient_accumulation_steps // len(sampler) + 1
        return BatchSampler(self.planner, rank=args.process_index, epochs=max(1, epochs))
