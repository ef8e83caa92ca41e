"""Check that a checkpoint of XGBoost is one whole value of UBJSON.

XGBoost takes its own files on trust: an empty one ends the whole process (`std::terminate`, xgboost 3.2), and one that
was cut costs seconds of stack traces. So what is read is walked first, by its lengths alone.
"""

from __future__ import annotations

import struct

_SIZES = {b"Z": 0, b"N": 0, b"T": 0, b"F": 0, b"i": 1, b"U": 1, b"C": 1, b"I": 2, b"l": 4, b"d": 4, b"L": 8, b"D": 8}
_INTEGERS = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q"}
_DEEPEST = 64


def flaw(data: bytes) -> str:
    """Why `data` is not one whole UBJSON object, in a few words; empty where it is one."""
    if not data:
        return "it is empty"
    if data[:1] != b"{":
        return "it does not begin as UBJSON"
    try:
        end = _skip(data, 1, b"{", 0)
    except (struct.error, IndexError):
        return f"it ends in the middle, after {len(data)} bytes"
    except ValueError as error:
        return str(error)
    return "" if end == len(data) else f"it goes on behind its end, for {len(data) - end} bytes"


def _skip(data: bytes, at: int, kind: bytes, depth: int) -> int:
    """Where the value of this kind that begins at `at`, behind its marker, ends."""
    if depth > _DEEPEST:
        raise ValueError(f"it nests deeper than {_DEEPEST} levels at byte {at}")
    if kind in _SIZES:
        return _within(data, at + _SIZES[kind])
    if kind in (b"S", b"H"):
        length, at = _integer(data, at)
        return _within(data, at + length)
    if kind in (b"[", b"{"):
        return _skip_container(data, at, kind, depth)
    raise ValueError(f"it holds no UBJSON at byte {at - 1}")


def _skip_container(data: bytes, at: int, kind: bytes, depth: int) -> int:
    close = b"]" if kind == b"[" else b"}"
    each, count = b"", None
    if data[at : at + 1] == b"$":
        each, at = data[at + 1 : at + 2], at + 2
    if data[at : at + 1] == b"#":
        count, at = _integer(data, at + 1)
    if each in _SIZES and kind == b"[" and count is not None:
        return _within(data, at + count * _SIZES[each])  # Nearly all of a model is in such arrays.
    done = 0
    while count is None or done < count:
        if count is None and data[_within(data, at + 1) - 1 : at + 1] == close:
            return at + 1
        if kind == b"{":
            length, at = _integer(data, at)
            at = _within(data, at + length)
        marker = each or data[at : at + 1]
        at = _skip(data, at if each else _within(data, at + 1), marker, depth + 1)
        done += 1
    return at


def _integer(data: bytes, at: int) -> tuple[int, int]:
    """The length that is written at `at`, and where it ends."""
    kind = _INTEGERS.get(data[at : _within(data, at + 1)])
    if kind is None:
        raise ValueError(f"it holds no UBJSON at byte {at}")
    (value,) = struct.unpack_from(kind, data, at + 1)
    if value < 0:
        raise ValueError(f"it holds a length below zero at byte {at}")
    return value, at + 1 + struct.calcsize(kind)


def _within(data: bytes, at: int) -> int:
    if at > len(data):
        raise IndexError
    return at
