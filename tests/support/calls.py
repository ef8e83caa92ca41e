"""How much is computed, whatever the machine does besides: the calls that something makes, of Python's and of C's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_of(what: Callable[[], Any]) -> int:
    """How many calls `what` makes, in this thread."""
    made = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        what()
    finally:
        sys.setprofile(before)
    return made
