"""Lightning: a data module of planned batches for the Trainer, and a way to set a loader up for Fabric.

The Trainer puts a distributed sampler into every `DataLoader`, which no batch sampler survives; it leaves other loaders
alone and saves those that have a state. `Resumable` is one of these. The Trainer sets the epoch on
`batch_sampler.sampler` after it has made the iterator: a sampler that reads its epoch at the first batch is in time. It
counts the batches of an epoch by itself; on another number of processes the data module puts its count right.

Fabric sets the epoch to the number of times that a loader was iterated, which is wrong after a resume.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lightning.pytorch import LightningDataModule
from torch.utils.data import DataLoader

from lengthwise import LengthwiseError
from lengthwise.torch.counted import CountedSampler
from lengthwise.torch.resumable import Resumable
from lengthwise.torch.sampler import BatchSampler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lightning.fabric import Fabric

    from lengthwise.planner import Planner


class PlannedDataModule(LightningDataModule):
    """Training batches as planned, resumable within an epoch: `trainer.fit(model, PlannedDataModule(...))`.

    With `Trainer(max_epochs=...)` every epoch has as many batches (the Trainer reads their number once). Without it,
    give `Trainer(reload_dataloaders_every_n_epochs=1)`.

    Args:
        dataset: map-style, with the rows whose lengths were planned.
        planner: plans the epochs; its `world_size` must be the number of processes.
        collate_fn: makes a batch of rows.
        loader_options: for the `DataLoader`: `num_workers`, `pin_memory` and others, but `batch_size`, `shuffle`,
            `sampler` and `drop_last`.

    Raises:
        LengthwiseError: when training starts: the planner is for another number of processes.
    """

    def __init__(
        self, dataset: Any, planner: Planner, *, collate_fn: Callable[[list[Any]], Any], **loader_options: Any
    ) -> None:
        super().__init__()
        self.dataset = dataset
        self.planner = planner
        self.loader_options = {"collate_fn": collate_fn, **loader_options}
        self._loader: Resumable | None = None
        self._saved: dict[str, Any] | None = None

    def state_dict(self) -> dict[str, Any]:
        """Return where the batches stand, for the checkpoint."""
        return {} if self._loader is None else {"data": self._loader.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Keep where they stood until the loader is made."""
        self._saved = state_dict.get("data")

    def train_dataloader(self) -> Resumable:
        """Return the loader of this process."""
        trainer = self.trainer
        if trainer is None or trainer.world_size != self.planner.world_size:
            world_size = trainer.world_size if trainer else 0
            raise LengthwiseError(
                f"planner has world_size={self.planner.world_size}, but {world_size} processes train; "
                f"write Planner(..., world_size={world_size})"
            )
        if trainer.max_epochs and trainer.max_epochs > 0:
            sampler: BatchSampler = self._counted(trainer, trainer.max_epochs)
        else:
            sampler = BatchSampler(self.planner, rank=trainer.global_rank)
        self._loader = Resumable(DataLoader(self.dataset, batch_sampler=sampler, **self.loader_options))
        return self._loader

    def _counted(self, trainer: Any, epochs: int) -> CountedSampler:
        """Return a sampler of epochs of one length, and tell the Trainer how many batches of this one are done."""
        sampler = CountedSampler(self.planner, rank=trainer.global_rank, epochs=epochs)
        if self._saved is None or self._saved["epoch"] >= epochs:
            return sampler
        saved, self._saved = self._saved, None
        sampler.resume(saved, trainer.accumulate_grad_batches)
        ended = saved["epoch"] > trainer.current_epoch
        counts = trainer.fit_loop.epoch_loop.batch_progress.current
        more = (len(sampler) if ended else sampler.skipped) - counts.ready
        # Each by as much: where a callback saved, the last is one behind.
        for name in ("ready", "started", "processed", "completed"):
            setattr(counts, name, getattr(counts, name) + more)
        return sampler


def setup(fabric: Fabric, loader: DataLoader[Any]) -> Resumable:
    """Set `loader` up for `fabric`, in place of `fabric.setup_dataloaders(loader)`.

    Put the result into the state that `fabric.save` and `fabric.load` take.

    Args:
        fabric: moves batches to its device.
        loader: draws from a `BatchSampler` of this process's share.
    """
    return _FabricLoader(fabric.setup_dataloaders(loader, use_distributed_sampler=False))


class _FabricLoader(Resumable):
    """Corrects the epoch that Fabric would set."""

    def _one_epoch(self) -> Iterator[Any]:
        self.loader._num_iter_calls = self.epoch  # noqa: SLF001 (Fabric offers no other way)
        yield from super()._one_epoch()
