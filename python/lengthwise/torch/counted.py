"""Resuming in frameworks that count batches by themselves, and know one number of batches for every epoch.

Problem: such a framework holds that `n` batches of an epoch of `len()` are done and asks for the rest. On another
number of ranks an epoch has another number of batches, and `n` of them are not what was done.

Method: find out how many batches the rest of the saved epoch makes, tell the framework that the others are done
(`skipped`), and cut the rest into exactly as many as it will then ask for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lengthwise.torch.sampler import BatchSampler

if TYPE_CHECKING:
    from collections.abc import Mapping


class CountedSampler(BatchSampler):
    """A `BatchSampler` of as many batches in every epoch (give `epochs`), also in one that is resumed."""

    #: Batches of the resumed epoch, of the `len()` that each epoch has, that count as done; and that epoch.
    skipped = 0
    resumed: int | None = None
    _resumed_target = 0

    def resume(self, state: Mapping[str, Any], accumulate: int) -> None:
        """Go on at `state`, with a whole number of steps of `accumulate` batches skipped."""
        self.load_state_dict(state)
        self._target = max(self._at_least(), self.remaining * self.world_size)
        self.skipped = (len(self) - self.remaining) // accumulate * accumulate
        self._resumed_target = state["dealt"] + (len(self) - self.skipped) * self.world_size
        self.resumed = self.epoch

    def __len__(self) -> int:
        return self._at_least(every=True) // self.world_size

    def _at_least(self, *, every: bool = False) -> int:
        return self._resumed_target if self.epoch == self.resumed and not every else super()._at_least()
