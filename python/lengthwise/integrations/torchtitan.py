"""torchtitan: a loader that never ends and is saved with the checkpoint.

torchtitan iterates its loader once for the whole run, counts steps, and saves what is `Stateful`. It refuses loaders
that end on several ranks, since one rank could end before the others; here all have the same count, and each epoch is
followed by the next. The state holds for another number of data-parallel ranks, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lengthwise.torch.resumable import Resumable

if TYPE_CHECKING:
    from collections.abc import Iterator


class EndlessLoader(Resumable):
    """A `Resumable` loader whose iteration goes on epoch after epoch: `EndlessLoader(DataLoader(...))`."""

    def __iter__(self) -> Iterator[Any]:
        return self.forever()
