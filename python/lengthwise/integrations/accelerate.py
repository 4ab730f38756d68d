"""Hugging Face accelerate: prepare a loader without sharing the batches out twice, and save where it stands.

`accelerator.prepare` deals the batches of any batch sampler to the processes. A sampler that already yields one rank's
share must be left alone; one made with `rank=0, world_size=1` yields every batch, and accelerate deals them. Both work
here; the first spares each process the walk over the batches of all the others.

accelerate saves no position of a batch sampler, reads one batch ahead, and counts epochs by itself from 0: `prepare`
returns a loader that counts what the loop has taken and is saved and loaded by `save_state` and `load_state`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lengthwise import LengthwiseError
from lengthwise.torch.resumable import Resumable, find_sampler

if TYPE_CHECKING:
    from accelerate import Accelerator
    from torch.utils.data import DataLoader

    from lengthwise.torch.sampler import BatchSampler


def prepare(accelerator: Accelerator, loader: DataLoader[Any]) -> Resumable:
    """Prepare `loader` for `accelerator`, in place of `accelerator.prepare(loader)`.

    Args:
        accelerator: prepares and, with `save_state` and `load_state`, saves and loads the position.
        loader: draws from a `BatchSampler` of this rank's share, or of every batch (`rank=0, world_size=1`).

    Returns:
        The prepared loader. After `load_state`, iterate it for the rest of the epoch; do not skip batches as well.

    Raises:
        LengthwiseError: the accelerator would cut or concatenate batches (`split_batches`, `dispatch_batches`), or keep
            a second position (`use_stateful_dataloader`); or the sampler is for another number of processes.
    """
    sampler = find_sampler(loader).sampler
    check_options(accelerator)
    if sampler.world_size not in (1, accelerator.num_processes) and sampler.mesh is None:
        raise LengthwiseError(
            f"the batch sampler is for world_size={sampler.world_size}, but accelerate runs "
            f"{accelerator.num_processes} processes; write Planner(..., world_size={accelerator.num_processes})"
        )
    prepared = accelerator.prepare_data_loader(loader)
    deal_once(prepared, sampler)
    resumable = Resumable(prepared)
    accelerator.register_for_checkpointing(resumable)
    return resumable


def deal_once(prepared: Any, sampler: BatchSampler) -> None:
    """Make the wrapper that accelerate put around `sampler` pass a rank's share through, and `set_epoch` reach it."""
    shard = prepared.batch_sampler
    if shard is sampler:
        return
    if sampler.world_size > 1:
        shard.num_processes, shard.process_index = 1, 0
    # accelerate looks for `set_epoch` at most two wrappers deep, at `batch_sampler.batch_sampler.sampler`; skipping
    # batches adds a wrapper, so that the one in the middle must lead there too.
    shard.sampler = sampler


def check_options(accelerator: Accelerator) -> None:
    """Check that an accelerator leaves batches as they are planned.

    Raises:
        LengthwiseError: it would cut or concatenate them, or keep a second position; the message names the option.
    """
    reasons = {
        "split_batches": "would cut batches of one size into equal parts, but these differ in size",
        "dispatch_batches": "would concatenate the batches of all processes, but these differ in width",
        "use_stateful_dataloader": "would keep a second position beside the one that is saved here",
    }
    for option, reason in reasons.items():
        if getattr(accelerator, option, None):
            raise LengthwiseError(
                f"{option} is True in the accelerator, which {reason}; write DataLoaderConfiguration(...) "
                f"(accelerator_config of the Trainer) without {option}"
            )
