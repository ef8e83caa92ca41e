"""Hints in errors: the known name that is nearest to the given one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(given: object, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The nearest of the known names, upper and lower case alike; empty if none is near.

    Args:
        given: a name, or something else in the place of one.
        known: names.
        cutoff: likeness from 0 to 1 that a name has to have, as difflib counts it.
    """
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(str(given).lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[near[0]] if near else ""


def did_you_mean(given: object, known: Iterable[str], cutoff: float = 0.6) -> str:
    """A clause for the end of an error, "; did you mean 'x'?"; empty if no name is near. See `nearest`."""
    near = nearest(given, known, cutoff)
    return f"; did you mean {near!r}?" if near else ""
