"""An objective and a metric of one's own, and those that harm a gang once, where a file asks for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.exact_torch_job import kill_once


def logistic(predt: Any, dtrain: Any) -> tuple[Any, Any]:
    """That of `binary:logistic`."""
    chances = 1 / (1 + np.exp(-predt))
    return chances - dtrain.get_label(), np.maximum(chances * (1 - chances), 1e-6)


def wrong(predt: Any, dtrain: Any) -> tuple[str, float]:
    """The share of rows that are taken for the other class."""
    return "wrong", float(np.mean((predt > 0) != dtrain.get_label()))


def killing(file: str) -> Callable[[Any, Any], tuple[Any, Any]]:
    """The objective, in whose seventh round a worker takes the file away and kills itself, if the file is there."""
    rounds = 0

    def dying(predt: Any, dtrain: Any) -> tuple[Any, Any]:
        nonlocal rounds
        rounds += 1
        if rounds == 7:
            kill_once(file)
        return logistic(predt, dtrain)

    return dying


def clearing(file: str, behind: str) -> Callable[[Any, Any], tuple[str, float]]:
    """The metric; once `behind` is gone, its worker takes the file away and removes its rows from disk."""

    def forgetful(predt: Any, dtrain: Any) -> tuple[str, float]:
        if not Path(behind).exists() and Path(file).exists():
            Path(file).unlink()
            shutil.rmtree(_own_rows())
        return wrong(predt, dtrain)

    return forgetful


def _own_rows() -> Path:
    """The folder of this process's rows: it holds a lock in there."""
    held = [os.path.realpath(entry.path) for entry in os.scandir("/proc/self/fd") if os.path.islink(entry.path)]
    return next(Path(path).parent for path in held if "warmband-rows-" in path)
