"""A replay of a job on its own curves comes to its own answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpo.jobs import JobSettings, search_for
from hpo.record import Store
from hpo.search import UNTUNED
from hpo.simulation import open_curves, simulate
from tests.support.in_hand import answer


@pytest.mark.parametrize("gangs", [1, 4])
def test_a_job_s_own_search_on_its_own_curves_is_that_job_again(gangs: int, tmp_path: Path) -> None:
    """Its suggestions are recorded configurations, so that each trial goes along its own curve."""
    trained = answer(0, tmp_path)
    url = f"sqlite:///{tmp_path}/store.db"
    with Store(url) as store:
        job = store.job("job")
    settings = JobSettings.of(job, allow_code=False).changed(max_parallel_jobs=gangs)
    curves = open_curves("job:job", settings.ranges, settings.objective_metric_name, url)
    search, plan = search_for(settings, "again", job.spec["random_seed"]), settings.plan()
    found = simulate(curves, search, settings.search_strategy, plan, settings.ranges)
    names = [name for name in sorted(trained.resources) if name != UNTUNED]
    assert [trial.row for trial in found.trials] == list(range(len(names)))
    assert [trial.units for trial in found.trials] == [trained.resources[name] for name in names]
    assert [trial.value for trial in found.trials] == [trained.values[name] for name in names]
    assert names[max(found.trials, key=lambda trial: trial.value).number] == trained.best
