"""Scalars of TensorBoard's event files, read as a file grows; no package of TensorBoard's or TensorFlow's is needed."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_HEAD, _FOOT = 12, 4
"""Bytes around a record: its length with a checksum, and a checksum of its data."""
_LARGEST = 1 << 30
"""Bytes of a record; a length beyond that is none."""

_EVENT_STEP, _EVENT_SUMMARY = 2, 5
_SUMMARY_VALUE = 1
_VALUE_TAG, _VALUE_SIMPLE, _VALUE_TENSOR = 1, 2, 8
_TENSOR_TYPE, _TENSOR_CONTENT = 1, 4
_TENSOR_FLOATS, _TENSOR_DOUBLES = 5, 6
_TENSOR_INTS = (7, 10)
_CONTENT = {1: "<f", 2: "<d", 3: "<i", 9: "<q", 19: "<e"}
"""How the one number of a tensor is packed, by TensorFlow's number of its type."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number of an event file.

    Args:
        tag: its name.
        step: the step that the program gave with it.
        value: the number.
    """

    tag: str
    step: int
    value: float


class EventStream:
    """Scalars in the bytes of an event file, which come piece by piece."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, data: bytes) -> list[Scalar]:
        """Return the scalars of the records that these bytes complete.

        Raises:
            ValueError: the bytes are none of an event file.
        """
        self._rest += data
        found: list[Scalar] = []
        at = 0
        while len(self._rest) - at >= _HEAD:
            length = int.from_bytes(self._rest[at : at + 8], "little")
            if length > _LARGEST:
                raise ValueError(f"a record of {length} bytes")
            end = at + _HEAD + length + _FOOT
            if len(self._rest) < end:
                break
            found += _scalars(self._rest[at + _HEAD : end - _FOOT])
            at = end
        self._rest = self._rest[at:]
        return found


def _scalars(event: bytes) -> Iterator[Scalar]:
    """The scalars of one event."""
    step, summaries = 0, []
    for field, value in _fields(event):
        if field == _EVENT_STEP and isinstance(value, int):
            step = _signed(value)
        elif field == _EVENT_SUMMARY and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for field, value in _fields(summary):
            if field == _SUMMARY_VALUE and isinstance(value, bytes):
                tag, number = _value(value)
                if number is not None:
                    yield Scalar(tag, step, number)


def _value(data: bytes) -> tuple[str, float | None]:
    """The tag of a summary's value, and its number where it is a scalar."""
    tag, number = "", None
    for field, value in _fields(data):
        if not isinstance(value, bytes):
            continue
        if field == _VALUE_TAG:
            tag = value.decode(errors="replace")
        elif field == _VALUE_SIMPLE and len(value) == 4:
            (number,) = struct.unpack("<f", value)
        elif field == _VALUE_TENSOR:
            number = _tensor(value)
    return tag, number


def _tensor(data: bytes) -> float | None:
    """The number of a tensor that holds one."""
    kind, found = 0, None
    for field, value in _fields(data):
        if field == _TENSOR_TYPE and isinstance(value, int):
            kind = value
        elif field in _TENSOR_INTS:
            found = float(_signed(value)) if isinstance(value, int) else _varint_alone(value)
        elif isinstance(value, bytes):
            packing = {_TENSOR_FLOATS: "<f", _TENSOR_DOUBLES: "<d"}.get(field)
            if field == _TENSOR_CONTENT:
                packing = _CONTENT.get(kind)
            if packing and len(value) == struct.calcsize(packing):
                found = float(struct.unpack(packing, value)[0])
    return found


def _varint_alone(data: bytes) -> float | None:
    number, at = _varint(data, 0)
    return float(_signed(number)) if at == len(data) else None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message of protocol buffers: numbers and values; a number of fixed size as its bytes.

    Raises:
        ValueError: it is no such message.
    """
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        field, kind = key >> 3, key & 7
        if kind == 0:
            number, at = _varint(data, at)
            yield field, number
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of wire type {kind}")
        if at + size > len(data):
            raise ValueError(f"a field of {size} bytes where {len(data) - at} are left")
        yield field, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a number without an end")
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number
