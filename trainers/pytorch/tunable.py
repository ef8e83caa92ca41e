"""Hyperparameters of training functions that are worth tuning, known by their names, and bounds around their values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from trainers.checking import is_number
from trainers.errors import ConfigurationError
from trainers.pytorch.data import GLOBAL, PER_WORKER
from trainers.tunable import Tunable

RATES = ("lr", "learning_rate")
MOMENTA = {"momentum": 0.99, "beta1": 0.99, "beta2": 0.9999}
"""The greatest values of averages over updates."""
DECAYS = ("weight_decay", "l2")
DROPOUTS = ("dropout", "max_dropout")
BATCHES = ("batch_size", GLOBAL, PER_WORKER)

FACTORS = (0.25, 0.5, 1, 2, 4)
"""Of a batch size."""


def tunable(
    static: Mapping[str, Any], ranged: Collection[str], check: Callable[[Mapping[str, Any]], None]
) -> dict[str, Tunable]:
    """See `trainers.tunable.Tunes.tunable`: of those that the function is given, since nothing else says what it reads.

    Args:
        static: the trainer's own hyperparameters; bounds lie around their values.
        ranged: names that have ranges already.
        check: refuses hyperparameters that cannot be right.
    """
    found = {}
    for name, value in static.items():
        if name in ranged or not is_number(value):
            continue
        bounds = _batches(name, value, static, check) if name in BATCHES else _bounds(name, float(value))
        if bounds is not None:
            found[name] = bounds
    return found


def _bounds(name: str, value: float) -> Tunable | None:
    if name in RATES and value > 0:
        why = f"around {value:g}, and further down: more workers make larger batches, or staler gradients"
        return Tunable(least=value / 100, most=value * 10, scale="Logarithmic", why=why)
    if name in MOMENTA and 0 <= value < 1:
        most = max(MOMENTA[name], value)
        return Tunable(least=0.0, most=most, scale="ReverseLogarithmic", why="alike in the updates averaged over")
    if name in DECAYS and value >= 0:
        least, most = (value / 100, value * 100) if value else (1e-6, 1e-2)
        why = f"around {value:g}" if value else "from nearly none"
        return Tunable(least=least, most=most, scale="Logarithmic", why=why)
    if name in DROPOUTS and 0 <= value < 1:
        return Tunable(least=0.0, most=max(0.5, value), why="from none to half, or to the value that is given")
    return None


def _batches(
    name: str, value: float, static: Mapping[str, Any], check: Callable[[Mapping[str, Any]], None]
) -> Tunable | None:
    """A quarter of a batch to four of it, those that the workers can divide."""
    sizes = [round(value * factor) for factor in FACTORS if value * factor >= 1 and value * factor % 1 == 0]

    def fits(size: int) -> bool:
        try:
            check({**static, name: size})
        except ConfigurationError:
            return False
        return True

    sizes = [size for size in sizes if fits(size)]
    return Tunable(values=tuple(sizes), why=f"a quarter to four times {value:g}") if len(sizes) > 1 else None
