"""Metrics of a report: nested ones by their path, and whether two units are the same training."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_CLOCKS = re.compile(r"time|seconds|duration|speed|throughput|per_s|memory", re.IGNORECASE)
"""Names of metrics that differ between two runs of the same training."""

_SMALLER = frozenset(
    {"loss", "logloss", "mlogloss", "nll", "perplexity", "ppl", "deviance", "error", "errors", "err", "wer", "cer"}
    | {"rmse", "rmsle", "mse", "mae", "mape", "smape"}
)
_GREATER = frozenset({"accuracy", "acc", "auc", "auroc", "f1", "r2", "precision", "recall"})
"""Words in names of metrics of which the smaller, and the greater, value is usually the better one."""
_TURNED = frozenset({"neg", "negative", "minus", "inverse", "inv"})
"""Words of a metric whose sign, or order, is turned round."""


def looks_smaller(name: str) -> bool | None:
    """Whether a metric's name looks like one of which smaller values are the better ones; None where it tells nothing.

    Args:
        name: "channel:metric" or a path of names; the last part is looked at.
    """
    words = set(re.split(r"[^a-z0-9]+", re.split(r"[:/]", name)[-1].lower()))
    smaller, greater = bool(words & _SMALLER), bool(words & _GREATER)
    return None if smaller == greater or words & _TURNED else smaller


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
