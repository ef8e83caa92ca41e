"""What a program says to Warmband; without dependencies, and without effect where Warmband does not run the program."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

__all__ = ["hyperparameters", "report"]

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
"""Variables by which launchers tell a process its rank."""


def report(metrics: Mapping[str, Any] | None = None, /, *, step: int | None = None, **more: Any) -> None:
    """Reports metrics, once a unit of training; of several processes the first one's count.

    Args:
        metrics: numbers by name, such as {"validation:accuracy": 0.9}.
        step: the unit that they belong to, from 1; None: the one after the last.
        **more: further metrics, whose names are Python's.

    Raises:
        TypeError, ValueError: a value is no number.
    """
    path = os.environ.get("WARMBAND_REPORTS")
    if not path or _rank() != 0:
        return
    line: dict[str, Any] = {name: float(value) for name, value in {**(metrics or {}), **more}.items()}
    if step is not None:
        line["step"] = int(step)
    # One write of a whole line: the reader takes what ends in a newline.
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def hyperparameters() -> dict[str, Any]:
    """The trial's hyperparameters with their types; empty where Warmband does not run the program."""
    path = os.environ.get("WARMBAND_HYPERPARAMETERS")
    if not path:
        return {}
    with open(path, encoding="utf-8") as file:
        return dict(json.load(file))


def _rank() -> int:
    return int(next((os.environ[name] for name in _RANKS if name in os.environ), "0"))
