"""Plain Python values: conversion of hyperparameters, budgets and names as they come in."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np

from trainers.checking import shown
from trainers.errors import ConfigurationError

_PLAIN_KINDS = "biufU"
"""NumPy's kinds of values that Python has too: booleans, whole numbers, floats and text; times and bytes are none."""

_MOST_BITS = 14_000
"""Bits of a whole number at most: Python writes out no more than 4,300 digits."""

_MOST_LEVELS = 100
"""Levels of lists and dicts in a value at most; a list that contains itself has no end of them."""

_WANTED = "give None, a boolean, a number or a string, or a list or dict of these"


def plain_scalar(value: object) -> Any:
    """Return the plain Python value of a NumPy scalar, of an array or a tensor with one element, or of a path.

    Args:
        value: any value. Everything else is returned as it is, and the caller checks it.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, os.PathLike):
        path = os.fspath(value)
        return path if isinstance(path, str) else value
    if isinstance(value, np.generic | np.ndarray):
        if value.size != 1 or value.dtype.kind not in _PLAIN_KINDS or isinstance(value, np.ma.MaskedArray):
            return value
        return float(value.item()) if value.dtype.kind == "f" else value.item()
    if _is_tensor(value):
        tensor: Any = value
        has_number = tensor.numel() == 1 and not tensor.is_complex() and tensor.device.type != "meta"
        return tensor.item() if has_number else value
    return value


def plain(value: object, path: str) -> Any:
    """Return a value as None, booleans, numbers, strings, lists and dicts of Python's own types.

    Args:
        value: such a value; or NumPy's scalars, arrays and tensors with one element, paths, tuples and other sequences,
            in any nesting.
        path: where the value stands, for errors, such as "hyperparameters".

    Returns:
        A copy. Tuples and other sequences are lists in it, as the record gives them back.

    Raises:
        ConfigurationError: it holds something else. The error names the path, such as "hyperparameters['a']['b']".
    """
    return _plain(value, path, 0)


def is_text(value: str) -> bool:
    """Return whether the record can hold a string: UTF-8 has its characters, and none of them is NUL."""
    return "\0" not in value and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _is_tensor(value: object) -> bool:
    """Return whether a value is a tensor of PyTorch's. Who holds one has imported PyTorch, which takes a second."""
    return "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor)


def _plain(value: object, path: str, level: int) -> Any:
    own = plain_scalar(value)
    own = own.value if isinstance(own, Enum) else own
    match own:
        case None | bool():
            return own
        case int() if own.bit_length() <= _MOST_BITS:
            return int(own)
        case float():
            return float(own)
        case str() if is_text(own):
            return str.__str__(own)
        case Mapping() | Sequence() if level == _MOST_LEVELS:
            raise ConfigurationError(f"{path[:100]}... has more than {_MOST_LEVELS} levels; give fewer")
        case Mapping():
            by_name = {_key(key, path): each for key, each in own.items()}
            return {name: _plain(each, f"{path}[{name!r}]", level + 1) for name, each in by_name.items()}
        case Sequence() if not isinstance(own, str | bytes | bytearray | memoryview):
            return [_plain(each, f"{path}[{place}]", level + 1) for place, each in enumerate(own)]
    raise _refusal(own, path)


def _key(key: object, path: str) -> str:
    own = plain_scalar(key)
    if isinstance(own, str) and is_text(own):
        return str.__str__(own)
    raise ConfigurationError(
        f"{path} has the key {shown(key)} of the type {type(key).__name__}; give keys that are strings"
    )


def _refusal(value: object, path: str) -> ConfigurationError:
    """Return the error for a value without a plain form."""
    if isinstance(value, str):
        return ConfigurationError(f"{path} is {value!r}; give text that UTF-8 can say, without NUL")
    if isinstance(value, int):
        return ConfigurationError(f"{path} is {shown(value)}; give a number of at most {_MOST_BITS:,} bits")
    kind = type(value).__name__
    if isinstance(value, np.ndarray) or _is_tensor(value):
        shape: Any = getattr(value, "shape", ())
        what = f"{kind} of {getattr(value, 'dtype', '')} with the shape {tuple(shape)}"
        return ConfigurationError(f"{path} is the {what}; give a number, or a list, such as tolist() returns")
    return ConfigurationError(f"{path} is {shown(value)} of the type {kind}; {_WANTED}")
