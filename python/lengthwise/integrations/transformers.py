"""Hugging Face `Trainer` (and TRL's, which derive from it): a mixin that trains on planned batches.

`Trainer` has no argument for a batch sampler, reads the number of batches once for its schedule, deals batches to the
processes as accelerate does, and resumes by its own count of steps: it skips as many batches of the epoch that this
count is in. The mixin gives it a loader that draws from a `BatchSampler` of as many batches every epoch, dealt once.
Every checkpoint gets a file with the sampler's state, and a resumed `Trainer` is told the epoch and the batch that the
state says, on any number of processes: the batches that it skips are placeholders, and the rest of the saved epoch is
cut into exactly as many batches as it then asks for. Steps go on being counted from the saved one; the learning rate
goes on at the same part of its schedule.

With `auto_find_batch_size` the token budget shrinks as the batch size would.

What it cannot do: evaluation is left as it is. `per_device_train_batch_size` has no say.
"""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch.utils.data
import transformers.trainer_utils
from torch.optim.lr_scheduler import LambdaLR
from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, seed_worker

from lengthwise import LengthwiseError
from lengthwise.integrations.accelerate import check_options, deal_once
from lengthwise.torch.counted import CountedSampler
from lengthwise.torch.sampler import scale_budget
from lengthwise.torch.segmented import Segmented

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch.utils.data import DataLoader
    from transformers import Trainer

    from lengthwise.planner import Planner

    _Base = Trainer
else:
    _Base = object

#: The file in a checkpoint that says where its batches stand, and what they were planned from.
STATE: Final = "lengthwise.json"


def _last_checkpoint(folder: str) -> str | None:
    untyped: Any = transformers.trainer_utils.get_last_checkpoint
    last: str | None = untyped(folder)
    return last


class _WriteState(TrainerCallback):
    """Puts where the batches stand into every checkpoint."""

    def __init__(self, trainer: PlannedTrainer) -> None:
        self._trainer = trainer
        self._begun = 0

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002 (the Trainer's names)
        """Note how many steps came before this epoch, or this part of it."""
        self._begun = state.global_step

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Write the state beside the weights."""
        folder = Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
        if args.should_save and folder.is_dir():
            batches = (state.global_step - self._begun) * args.gradient_accumulation_steps
            position = self._trainer.planned_sampler.state_after(batches)
            (folder / STATE).write_text(json.dumps({**position, "global_step": state.global_step}))


class _TrainerSampler(CountedSampler):
    """Yields placeholders for the batches that the Trainer skips when it resumes."""

    _placeholders = 0

    def resume(self, state: Mapping[str, Any], accumulate: int) -> None:
        """Go on at `state`; the Trainer skips whole steps, of `accumulate` batches."""
        super().resume(state, accumulate)
        self._placeholders = self.skipped

    def _batches(self, running: Any) -> Iterator[list[Any]]:
        placeholders, self._placeholders = self._placeholders, 0
        for _ in range(placeholders):
            yield [0]
        yield from super()._batches(running)


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
        self.planned_sampler: _TrainerSampler
        self._saved: dict[str, Any] | None = None  # the state of the checkpoint that is resumed
        self._steps_done = 0  # in steps of this number of processes
        super().__init__(*args, **kwargs)
        self.add_callback(_WriteState(self))

    def train(self, resume_from_checkpoint: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Train as `Trainer` does; a checkpoint of other lengths or another plan is refused.

        On another number of processes than the checkpoint was saved by, the rest of its epoch is dealt to those there
        are now; the next epoch is planned for them. `state.max_steps` is then what has been run and what is left.
        """
        self._saved = None
        if resume_from_checkpoint:
            output = str(self.args.output_dir)
            last = _last_checkpoint(output) if resume_from_checkpoint is True else resume_from_checkpoint
            state = Path(last or output) / STATE
            # Without the file it was saved by a trainer without this mixin, which counts in its own steps.
            if state.exists() and not self.args.ignore_data_skip:
                self._saved = json.loads(state.read_text())
        return super().train(resume_from_checkpoint, *args, **kwargs)

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return the prepared loader of planned batches."""
        check_options(self.accelerator)
        dataset, collator = self._planned_dataset()
        self.planned_sampler = sampler = self._planned_sampler()
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

    def _planned_sampler(self) -> _TrainerSampler:
        args = self.args
        if self.planner.world_size != args.world_size:
            raise LengthwiseError(
                f"planner has world_size={self.planner.world_size}, but {args.world_size} processes train; "
                f"write Planner(..., world_size={args.world_size})"
            )
        # Less than 1 where auto_find_batch_size ran out of memory.
        factor = self._train_batch_size / args.train_batch_size
        planner = self.planner if factor == 1 else scale_budget(self.planner, factor)
        make = partial(_TrainerSampler, planner, rank=args.process_index)
        saved, epochs = self._saved, math.ceil(args.num_train_epochs)
        first, done = (saved["epoch"], saved["global_step"]) if saved else (0, 0)
        if args.max_steps > 0:
            batches, accumulate = len(make(epochs=1)), args.gradient_accumulation_steps
            left = (args.max_steps - done) * accumulate // batches + 1
            epochs = max(args.max_steps * accumulate // batches + 1, first + left)
        sampler = make(epochs=max(first + 1, epochs))
        if saved:
            sampler.resume(saved, args.gradient_accumulation_steps)
        return sampler

    def set_initial_training_values(self, args: Any, dataloader: Any) -> Any:
        """Count epochs, steps and samples as `Trainer` does; with `max_steps`, epochs from the one that is resumed."""
        epochs, steps, *others = super().set_initial_training_values(args, dataloader)
        if self._saved and args.max_steps > 0:
            sampler = self.planned_sampler
            left = args.max_steps - self._saved["global_step"] + sampler.skipped // args.gradient_accumulation_steps
            epochs = sampler.epoch + math.ceil(left / steps)
        return epochs, steps, *others

    def _init_training_state(self, max_steps: int, steps_per_epoch: int, *args: Any) -> tuple[int, int]:
        """Restore the state, and return the epoch and the batches of it to skip as the sampler has them."""
        trained: tuple[int, int] = super()._init_training_state(max_steps, steps_per_epoch, *args)
        if not self._saved:
            return trained
        sampler = self.planned_sampler
        self._steps_done = sampler.epoch * steps_per_epoch + sampler.skipped // self.args.gradient_accumulation_steps
        if self.args.max_steps <= 0:
            self.state.max_steps = self.state.global_step + max_steps - self._steps_done
        return sampler.epoch, sampler.skipped

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        """Load them; where an epoch has another number of steps now, go on at the same part of the schedule."""
        super()._load_optimizer_and_scheduler(checkpoint)
        scheduler = self.lr_scheduler
        if not self._saved or self.args.max_steps > 0 or self._steps_done == self.state.global_step:
            return
        if isinstance(scheduler, LambdaLR):
            pairs = zip(scheduler.base_lrs, scheduler.lr_lambdas, strict=True)
            rates = [rate * factor(self._steps_done) for rate, factor in pairs]
            scheduler.last_epoch, scheduler._last_lr = self._steps_done, rates  # noqa: SLF001 (its step() goes one on)
            for group, rate in zip(scheduler.optimizer.param_groups, rates, strict=True):
                group["lr"] = rate
