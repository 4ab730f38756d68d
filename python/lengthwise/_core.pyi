"""The planning core in Rust. Private: the functions of the package check, convert and document."""

from typing import final

__version__: str

class LengthwiseError(ValueError):
    """An argument or a file that lengthwise cannot use: the message says which, where, what it is, and what to do."""
