"""Packs written as data sets, and checked token for token."""

from lengthwise.offline.check import verify_packed
from lengthwise.offline.files import Manifest, read_manifest, write_packed

__all__ = ["Manifest", "read_manifest", "verify_packed", "write_packed"]
