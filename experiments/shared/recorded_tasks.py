"""The recorded tasks for judging searches: where they lie, their ranges, and their curves, with a unit of a second."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hpo import ContinuousParameter, IntegerParameter
from hpo.ranges import ParameterRange
from hpo.simulation import Curves, RecordedCurve
from trainers.errors import ConfigurationError

LOGARITHMIC, REVERSE = "Logarithmic", "ReverseLogarithmic"


@dataclass(frozen=True, kw_only=True)
class Family:
    """Tasks of one file, with the same hyperparameters.

    Args:
        values: what the names of its arrays of curves begin with; a task's name follows.
        configurations: the name of the array of a task's configurations.
        ranges: as those who recorded it drew from.
        better: turns a recorded value into one of which more is better.
    """

    values: str
    configurations: Callable[[str], str]
    ranges: Mapping[str, ParameterRange]
    better: Callable[[NDArray[np.float64]], NDArray[np.float64]]


FAMILIES = {
    "lcbench": Family(
        values="val_accuracy_",
        configurations=lambda task: "config",
        # Zimmer, Lindauer, Hutter, "Auto-PyTorch Tabular", IEEE TPAMI 43 (2021); the table's weight decays are even.
        ranges={
            "batch_size": IntegerParameter(16, 512, LOGARITHMIC),
            "learning_rate": ContinuousParameter(1e-4, 1e-1, LOGARITHMIC),
            "momentum": ContinuousParameter(0.1, 0.99),
            "weight_decay": ContinuousParameter(1e-5, 1e-1, "Linear"),
            "num_layers": IntegerParameter(1, 5),
            "max_units": IntegerParameter(64, 1024, LOGARITHMIC),
            "max_dropout": ContinuousParameter(0, 1),
        },
        better=lambda accuracy: accuracy,
    ),
    "taskset": Family(
        values="valid_loss_",
        configurations=lambda task: f"config_{task}",
        # Metz and others, "Using a thousand optimization tasks" (2020), Adam8p.
        ranges={
            "learning_rate": ContinuousParameter(1e-8, 10, LOGARITHMIC),
            "beta1": ContinuousParameter(0, 0.9999, REVERSE),
            "beta2": ContinuousParameter(0, 0.999999, REVERSE),
            "epsilon": ContinuousParameter(1e-10, 1e3, LOGARITHMIC),
            "l1": ContinuousParameter(1e-8, 10, LOGARITHMIC),
            "l2": ContinuousParameter(1e-8, 10, LOGARITHMIC),
            "linear_decay": ContinuousParameter(1e-7, 1e-4, LOGARITHMIC),
            "exponential_decay": ContinuousParameter(1e-6, 1e-3, LOGARITHMIC),
        },
        better=lambda loss: -np.log(loss),
    ),
}
"""Families of tasks by the name of their file, which is an .npz."""


@dataclass(frozen=True, kw_only=True)
class RecordedTask:
    """A task: its curves, each unit of which takes a second; and its ranges."""

    name: str
    curves: Curves
    ranges: Mapping[str, ParameterRange]


def bench(folder: Path | None) -> Path:
    """The folder of the recorded tasks: the one that is given, else `bench` beside that of WARMBAND_DATA.

    Raises:
        ConfigurationError: there is none.
    """
    data = os.environ.get("WARMBAND_DATA")
    found = folder or (Path(data).parent / "bench" if data else Path("bench"))
    if not any((found / f"{family}.npz").is_file() for family in FAMILIES):
        raise ConfigurationError(
            f"{found} has no recorded tasks; give the folder of {' or '.join(f'{name}.npz' for name in FAMILIES)} with "
            "--bench, or have it as bench beside that of WARMBAND_DATA"
        )
    return found


def task_names(folder: Path) -> list[str]:
    """All tasks of a folder, as "family/task"."""
    found = []
    for name, family in FAMILIES.items():
        if (path := folder / f"{name}.npz").is_file():
            with np.load(path) as arrays:
                keys = [key for key in arrays.files if key.startswith(family.values)]
            found += [f"{name}/{key.removeprefix(family.values)}" for key in keys]
    return found


@cache
def recorded_task(folder: Path, name: str) -> RecordedTask:
    """One task.

    Args:
        folder: of the recorded tasks.
        name: as `task_names` has it.

    Raises:
        ConfigurationError: there is no such task.
    """
    if name not in (known := task_names(folder)):
        raise ConfigurationError(f"task {name!r} is not recorded in {folder}; give one of {', '.join(known)}")
    of, _, task = name.partition("/")
    family = FAMILIES[of]
    with np.load(folder / f"{of}.npz") as arrays:
        names = [str(each) for each in arrays["config_names"]]
        table = arrays[family.configurations(task)].astype(float)
        values = family.better(arrays[f"{family.values}{task}"].astype(float))
    seconds = list(range(1, values.shape[1] + 1))
    recorded = [
        RecordedCurve(
            configuration={key: family.ranges[key].cast_to_type(value) for key, value in zip(names, row, strict=True)},
            values=curve.tolist(),
            seconds=seconds,
        )
        for row, curve in zip(table.tolist(), values, strict=True)
    ]
    return RecordedTask(name=name, curves=Curves(name, family.ranges, recorded), ranges=family.ranges)
