"""A replay of a job on its own curves comes to its own answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpo.jobs import JobSettings, search_for
from hpo.record import Store
from hpo.search import UNTUNED
from hpo.simulation import open_curves, simulate
from hpo.strategies import mean
from tests.support.driving import CHANNELS, tuner
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


def test_a_job_with_repeats_on_the_means_of_its_own_curves_is_that_job_again(tmp_path: Path) -> None:
    """Which configurations go on was decided by the very means that the replay reports."""
    made = tuner(tmp_path, max_jobs=15, repeats=3)
    made.fit(CHANNELS, job_name="job")
    url = f"sqlite:///{tmp_path}/record.db"
    with Store(url) as store:
        job, rows = store.job("job"), [row for row in store.trials("job") if row.number >= 0]
    settings = JobSettings.of(job, allow_code=False)
    curves = open_curves("job:job", settings.ranges, settings.objective_metric_name, url)
    assert len(curves) == 5
    search, plan = search_for(settings, "again", job.spec["random_seed"]), settings.plan()
    found = simulate(curves, search, settings.search_strategy, plan, settings.ranges)
    assert [trial.row for trial in found.trials] == [number // 3 for number in range(15)]
    assert [trial.units for trial in found.trials] == [row.resource for row in rows]
    means = [mean(row.objective or 0.0 for row in rows[first : first + 3]) for first in range(0, 15, 3)]
    assert [trial.value for trial in found.trials[::3]] == pytest.approx(means)
