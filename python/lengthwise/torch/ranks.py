"""Which rank this process is, and how many there are.

In this order: the arguments, a device mesh, `torch.distributed` where it is initialised, the environment that launchers
set (`RANK`, `WORLD_SIZE`), else one rank alone. No collective is used, so that it works before a process group exists.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import torch.distributed

from lengthwise import LengthwiseError

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh


class Ranks(NamedTuple):
    """This process among those that share the batches."""

    rank: int
    world_size: int


def find_ranks(
    rank: int | None, world_size: int | None, mesh: DeviceMesh | None, *, planned: int | None = None
) -> Ranks:
    """Return rank and world size, checked against the number of ranks that the plan is made for.

    Args:
        rank: as the user gave it; without `world_size`, the plan's is meant.
        world_size: as the user gave it; it may differ from the plan's, because it was said.
        mesh: one-dimensional device mesh of the ranks that take different batches.
        planned: `planner.world_size`; None where nothing is planned for a number of ranks.

    Raises:
        LengthwiseError: a rank outside the world; a world size found in the surroundings that is not the planner's.
    """
    if rank is not None or world_size is not None:
        given = _found(mesh).rank if rank is None else rank
        if world_size is None:
            world_size = _found(mesh).world_size if planned is None else planned
        return _checked(Ranks(given, world_size), "the arguments")
    found = _found(mesh)
    if planned is not None and found.world_size != planned:
        raise LengthwiseError(
            f"world_size is {planned} in the planner, but {found.world_size} ranks run; write "
            f"Planner(..., world_size={found.world_size}), or BatchSampler(..., rank={found.rank}, "
            f"world_size={found.world_size}) to deal the plan for {planned} to {found.world_size}"
        )
    return found


def _found(mesh: DeviceMesh | None) -> Ranks:
    if mesh is not None:
        if mesh.ndim != 1:
            raise LengthwiseError(
                f"mesh has {mesh.ndim} dimensions, but batches are dealt along one; give the data-parallel one, "
                'for instance mesh["dp"]'
            )
        return _checked(Ranks(mesh.get_local_rank(), mesh.size()), "mesh")
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return Ranks(torch.distributed.get_rank(), torch.distributed.get_world_size())
    if "WORLD_SIZE" in os.environ:
        return _checked(Ranks(_env("RANK"), _env("WORLD_SIZE")), "the environment")
    return Ranks(0, 1)


def _env(name: str) -> int:
    text = os.environ.get(name)
    if text is None or not text.isdecimal():
        raise LengthwiseError(
            f"{name} is {text!r} in the environment, but must be a whole number; set it, or give rank= and world_size="
        )
    return int(text)


def _checked(ranks: Ranks, source: str) -> Ranks:
    for name, value in ranks._asdict().items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise LengthwiseError(f"{name} is {value!r} ({source}), but must be a whole number")
    if ranks.world_size < 1:
        raise LengthwiseError(f"world_size is {ranks.world_size} ({source}), but must be at least 1")
    if not 0 <= ranks.rank < ranks.world_size:
        raise LengthwiseError(
            f"rank is {ranks.rank} ({source}), but must be from 0 to {ranks.world_size - 1} for "
            f"world_size={ranks.world_size}; write Planner(..., world_size=...) or world_size= for more ranks"
        )
    return ranks
