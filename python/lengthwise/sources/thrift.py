"""Thrift's compact protocol, as far as Parquet's footers and page headers use it: structs as fields by number.

Source: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from typing import Any, Final

#: Structs and lists in one another; Parquet's own need 6.
MAX_DEPTH: Final = 32
VARINT_BITS: Final = 70


class Reader:
    """Reads from the start of `data`; `at` is where the next value starts.

    Damaged data raises IndexError or ValueError: every value takes at least a byte, so that reading ends with the data.
    """

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.at = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Return the fields of a struct by number: int, bool, bytes (as a view), list or dict; doubles are skipped."""
        if depth > MAX_DEPTH:
            raise ValueError("the metadata is nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._signed()
            kind = head & 15
            # A field of type bool has its value in its type.
            fields[number] = kind == 1 if kind in {1, 2} else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in {4, 5, 6}:
            return self._signed()
        if kind == 8:
            return self._bytes(self._unsigned())
        if kind == 12:
            return self.struct(depth + 1)
        if kind in {9, 10}:
            return self._list(depth + 1)
        if kind in {1, 2, 3}:
            return self._byte()
        if kind == 7:
            return self._bytes(8)
        raise ValueError(f"the metadata has a value of unknown type {kind}")

    def _list(self, depth: int) -> list[Any]:
        if depth > MAX_DEPTH:
            raise ValueError("the metadata is nested too deeply")
        head = self._byte()
        size = head >> 4 if head >> 4 < 15 else self._unsigned()
        return [self._value(head & 15, depth) for _ in range(size)]

    def _bytes(self, size: int) -> memoryview:
        start, self.at = self.at, self.at + size
        if self.at > len(self.data):
            raise ValueError("the metadata ends within a value")
        return self.data[start : self.at]

    def _byte(self) -> int:
        value = self.data[self.at]
        self.at += 1
        return value

    def _unsigned(self) -> int:
        value = 0
        for shift in range(0, VARINT_BITS, 7):
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("a number in the metadata takes more than 10 bytes")

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
