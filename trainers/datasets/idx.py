"""The IDX format of MNIST's images and labels: arrays of bytes, plain or gzipped."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainers.errors import DataError

_GZIP = b"\x1f\x8b"
_BYTES = 0x08
_TYPES = {
    _BYTES: "bytes from 0 to 255",
    0x09: "bytes from -128 to 127",
    0x0B: "16-bit whole numbers",
    0x0C: "32-bit whole numbers",
    0x0D: "32-bit floating-point numbers",
    0x0E: "64-bit floating-point numbers",
}
_KINDS = {1: "labels (one dimension)", 3: "images (three dimensions)"}


def read_images(path: Path, remedy: str) -> NDArray[np.uint8]:
    """Images by number, row and column; read-only.

    Args:
        path: the file.
        remedy: ends each error, as in "delete it and fetch it again".

    Raises:
        DataError: it cannot be read, is cut short or too long, or holds no images.
    """
    return _read(path, 3, remedy)


def read_labels(path: Path, remedy: str, *, classes: int = 10) -> NDArray[np.uint8]:
    """Labels, each below `classes`; read-only. See `read_images`."""
    labels = _read(path, 1, remedy)
    strange = labels >= classes
    if strange.any():
        first = int(strange.argmax())
        raise DataError(f"{path} holds the label {labels[first]} at {first}, not one of 0 to {classes - 1}: {remedy}")
    return labels


def _read(path: Path, dimensions: int, remedy: str) -> NDArray[np.uint8]:
    raw = _raw(path, remedy)
    shape, flaw = _shape(raw, dimensions)
    if flaw:
        raise DataError(f"{path} {flaw}: {remedy}")
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def _raw(path: Path, remedy: str) -> bytes:
    """The file's bytes, unpacked."""
    try:
        with path.open("rb") as stream:
            packed = stream.read(2) == _GZIP
        if not packed:
            return path.read_bytes()
        with gzip.open(path) as unpacked:
            return unpacked.read()
    except EOFError:
        raise DataError(f"{path} is cut short: its gzip stream has no end: {remedy}") from None
    except (OSError, zlib.error) as error:
        why = error.strerror or error if isinstance(error, OSError) else error
        raise DataError(f"{path} cannot be read ({why}): {remedy}") from None


def _shape(raw: bytes, dimensions: int) -> tuple[tuple[int, ...], str]:
    """The shape that the header says, and what is wrong with it if anything is."""
    if len(raw) < 4 or raw[:2] != b"\0\0":
        return (), f"is no IDX file: it begins with {raw[:4].hex(' ') or 'nothing'}, not with two zero bytes"
    kind, count = raw[2], raw[3]
    if kind != _BYTES:
        return (), f"holds {_TYPES.get(kind, f'type 0x{kind:02x}')}, not {_TYPES[_BYTES]}"
    if count != dimensions:
        return (), f"holds {_KINDS.get(count, f'{count} dimensions')}, not {_KINDS[dimensions]}"
    if len(raw) < 4 + 4 * dimensions:
        return (), f"is cut short: {len(raw)} bytes, and its header alone has {4 + 4 * dimensions}"
    shape = struct.unpack(f">{dimensions}I", raw[4 : 4 + 4 * dimensions])
    due = math.prod(shape)
    if not due:
        return (), f"is empty: its dimensions are {_times(shape)}"
    rest = len(raw) - 4 - 4 * dimensions
    if rest < due:
        return (), f"is cut short: {rest:,} bytes for {_times(shape)}, which takes {due:,}"
    if rest > due:
        return (), f"has {rest - due:,} bytes behind the {due:,} of {_times(shape)}"
    return shape, ""


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(f"{length:,}" for length in shape)
