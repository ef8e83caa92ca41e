"""Metrics of a report: nested ones by their path, and whether two units are the same training."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_CLOCKS = re.compile(r"time|seconds|duration|speed|throughput|per_s|memory", re.IGNORECASE)
"""Names of metrics that differ between two runs of the same training."""


def flat(metrics: Mapping[Any, Any]) -> dict[str, Any]:
    """Metrics with nested ones named by their path: `{"val": {"loss": 1}}` becomes `{"val/loss": 1}`, as in Ray Tune.

    Args:
        metrics: by names; a value that is a mapping holds further ones.
    """
    found: dict[str, Any] = {}
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            found |= {f"{name}/{inner}": each for inner, each in flat(value).items()}
        else:
            found[str(name)] = value
    return found


def began_again(now: Mapping[str, float], first: Mapping[str, float], last: Mapping[str, float]) -> bool:
    """Whether a trial that should go on has the values of its own first unit, so that it began again.

    Args:
        now: metrics of the first unit since it was started again.
        first: metrics of the trial's first unit.
        last: metrics of the trial's last unit before.
    """
    return bool(first) and _alike(now, first) and not _alike(now, last)


def _alike(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    names = [name for name in one.keys() & other.keys() if not _CLOCKS.search(name)]
    return bool(names) and all(repr(float(one[name])) == repr(float(other[name])) for name in names)  # NaN is itself.
