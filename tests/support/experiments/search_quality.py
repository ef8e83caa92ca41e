"""Made-up recorded tasks of each family."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.shared.recorded_tasks import FAMILIES, RecordedTask, recorded_task
from hpo.ranges import IntegerParameter

UNITS = 9


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A task of each family, of 200 configurations; in one of them some trainings diverge."""
    made, random = tmp_path_factory.mktemp("bench"), np.random.default_rng(3)
    for name, family in FAMILIES.items():
        rows = []
        for bounds in family.ranges.values():
            low, high = bounds.min_value, bounds.max_value
            even = random.uniform(size=200)
            if bounds.resolved_scaling == "Logarithmic":
                column = low * (high / low) ** even
            elif bounds.resolved_scaling == "ReverseLogarithmic":
                column = 1 - (1 - low) * ((1 - high) / (1 - low)) ** even
            else:
                column = low + (high - low) * even
            rows.append(np.round(column) if isinstance(bounds, IntegerParameter) else column)
        height = random.uniform(0.1, 1, 200)[:, None] * (1 - 0.7 ** np.arange(1, UNITS + 1))
        curves = 100 * height if name == "lcbench" else 1 - 0.9 * height
        if name == "taskset":
            curves[:30, 3:] = np.nan
        arrays: dict[str, Any] = {"config_names": list(family.ranges), f"{family.values}00": curves}
        np.savez(made / f"{name}.npz", **{family.configurations("00"): np.column_stack(rows)}, **arrays)
    return made


@pytest.fixture(scope="module", params=[f"{family}/00" for family in FAMILIES])
def task(request: pytest.FixtureRequest, folder: Path) -> RecordedTask:
    return recorded_task(folder, request.param)
