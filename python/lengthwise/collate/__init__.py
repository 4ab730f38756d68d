"""Rows in, arrays out: collators that turn the samples of one batch into what a model takes.

Numpy only: `lengthwise.torch` wraps the same classes for tensors. Rows come as a pyarrow table, as the list of dicts
that a `DataLoader` hands over, or as a dict of columns.
"""

from lengthwise.collate.packed import EMIT, PackedCollator
from lengthwise.collate.padded import PaddedCollator
from lengthwise.collate.pairs import PairCollator
from lengthwise.collate.rows import Ragged, read_rows
from lengthwise.collate.slots import QUANTITIES

__all__ = ["EMIT", "QUANTITIES", "PackedCollator", "PaddedCollator", "PairCollator", "Ragged", "read_rows"]
