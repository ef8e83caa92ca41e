"""Population jobs, their rows and the parents of their trials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpo.record.store import Store
from hpo.record.tables import TrialRow
from tests.support.driving import CHANNELS, answer
from tests.support.population_job import tuner


def rows(folder: Path) -> dict[str, TrialRow]:
    with Store(f"sqlite:///{folder}/record.db") as store:
        return {row.trial_id: row for row in store.trials("job") if row.number >= 0}


def fitted(folder: Path, channels: Any = CHANNELS, **options: Any) -> dict[str, Any]:
    tuner(folder, **options).fit(channels, job_name="job")
    return {**answer(folder, "job"), "parents": parents(folder)}


def parents(folder: Path) -> list[tuple[str, int, str]]:
    return [(row.parent, row.parent_resource, row.replaces) for row in rows(folder).values()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("whole")
    return folder, fitted(folder, num_to_keep=None)
