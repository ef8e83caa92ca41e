"""JSON of responses: times in ISO 8601, null for numbers that are not finite."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hpo.text import plain


def encoded(value: Any) -> bytes:
    """A value as JSON."""
    try:
        return _dump(value)
    except ValueError:  # A number that is not finite, which is rare: then all is gone through in Python.
        return _dump(plain(value))


def _dump(value: Any) -> bytes:
    return json.dumps(value, default=_other, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode(
        errors="replace"
    )


def _other(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):  # NumPy's scalars and arrays
        return plain(value.tolist())
    raise TypeError(f"a {type(value).__name__} is not JSON")
