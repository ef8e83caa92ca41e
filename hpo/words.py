"""How numbers, times and lists are said to people."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

LONGEST_DETAILS = 120
"""Letters of a line that tells what happened beside a trial's metrics."""


def count(number: int, noun: str) -> str:
    """A number and its noun."""
    return f"{number:,} {noun}" + ("s" if number != 1 else "")


def roughly(seconds: float) -> str:
    """Seconds as somebody says them who does not know better: rounded up, the more coarsely the more they are."""
    if seconds <= 60:
        return f"{max(5, math.ceil(seconds / 5) * 5)} s"
    if seconds <= 3600:
        return f"{math.ceil(seconds / 60)} min"
    return f"{math.ceil(seconds / 360) / 10:g} h"


def clock_time(seconds: float) -> str:
    """Seconds as minutes and seconds, or hours, minutes and seconds."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def in_bytes(number: int) -> str:
    """Bytes, in the unit that fits."""
    amount, unit = float(number), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"


def short(value: object) -> str:
    """A hyperparameter's value, to four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def first_line(text: str) -> str:
    """The first line of a message that says something."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "no words")


def untuned_text(untuned: Mapping[str, Any]) -> str:
    """What is said of an un-tuned run without a value."""
    if "diverged" in untuned:
        return f"diverged after {count(untuned['resource'], 'unit')}: {first_line(untuned['diverged'])}"
    return f"failed: {untuned['failure']}"


def details_text(details: Mapping[str, Any]) -> str:
    """What happened beside a trial's metrics, in a line; empty where that would be a long one."""
    text = ", ".join(
        f"{name} ({details_text(value)})" if isinstance(value, Mapping) else f"{name} {short(value)}"
        for name, value in details.items()
    )
    return text if len(text) <= LONGEST_DETAILS and "()" not in text else ""


def packed(parts: Sequence[str], width: int) -> list[str]:
    """Parts with commas between, in lines of at most `width` characters where no part is longer itself."""
    lines: list[str] = []
    for number, part in enumerate(parts):
        text = part + ("," if number < len(parts) - 1 else "")
        if lines and len(lines[-1]) + 1 + len(text) <= width:
            lines[-1] += f" {text}"
        else:
            lines.append(text)
    return lines


def masked(text: str) -> str:
    """Text without the names and passwords of its URLs."""
    return re.sub(r"(?<=://)[^/\s'\"]+@", "***@", text)
