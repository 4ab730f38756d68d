"""Lightning: a data module of planned batches for the Trainer, and a way to set a loader up for Fabric.

The Trainer puts a distributed sampler into every `DataLoader`, which no batch sampler survives; it leaves other loaders
alone and saves those that have a state. `Resumable` is one of these. The Trainer sets the epoch on
`batch_sampler.sampler` after it has made the iterator: a sampler that reads its epoch at the first batch is in time.

Fabric sets the epoch to the number of times that a loader was iterated, which is wrong after a resume.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lightning.pytorch import LightningDataModule
from torch.utils.data import DataLoader

from lengthwise import LengthwiseError
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

    def train_dataloader(self) -> Resumable:
        """Return the loader of this process."""
        trainer = self.trainer
        if trainer is None or trainer.world_size != self.planner.world_size:
            world_size = trainer.world_size if trainer else 0
            raise LengthwiseError(
                f"planner has world_size={self.planner.world_size}, but {world_size} processes train; "
                f"write Planner(..., world_size={world_size})"
            )
        epochs = trainer.max_epochs if trainer.max_epochs and trainer.max_epochs > 0 else None
        sampler = BatchSampler(self.planner, rank=trainer.global_rank, epochs=epochs)
        return Resumable(DataLoader(self.dataset, batch_sampler=sampler, **self.loader_options))


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
