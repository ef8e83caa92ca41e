"""How many examples Hypothesis tries of a property: few in `make test`, all elsewhere."""

from __future__ import annotations

from hypothesis import settings

QUICK = 20
"""The most examples of a property in `make test`, whose profile is `quick`."""


def examples(count: int) -> int:
    """Return how many examples the current profile tries of a property that deserves `count`.

    Use it as `@settings(max_examples=examples(100))`.
    """
    return min(count, QUICK) if settings.get_current_profile_name() == "quick" else count
