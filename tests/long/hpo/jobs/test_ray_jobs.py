"""Jobs on a Ray cluster through its Jobs API, on a real head that runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from hpo import ContinuousParameter, HyperparameterTuner
from hpo.record.store import Store
from tests.support import own_code
from tests.support.boosting import CHANNELS, STATIC, make
from tests.support.hpo.jobs.ray_jobs import Head, churn, head, jobs_server  # noqa: F401  # Fixtures.
from tests.support.refusals import mentions, refuses
from tests.support.submitted import hpo
from trainers import ScalingConfig
from trainers.errors import ConfigurationError


def until(what: str, found: Callable[[], object], seconds: float = 240.0) -> None:
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.2)


def test_a_trainer_and_a_strategy_of_a_users_own_go_along(
    head: Head, project_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(own_code.__file__, project_folder / "shop.py")
    keys = ("trainer.type=custom", "trainer.trainer_class=shop:Churn", "tuning.strategy=shop:Halves")
    keys += ("tuning.hyperband=null", "trainer.hyperparameters.num_round=4")
    own = [word for key in keys for word in ("--set", key)]
    submitted = ["submit", "job.yaml", "--address", head.address, "--name", "own", *own]
    with refuses(ConfigurationError, field=("shop:Churn", "shop:Halves", "shop.py"), remedy="--allow-code"):
        hpo(*submitted)
    hpo(*submitted, "--allow-code", "--wait")
    with Store() as store:
        job = store.job("own")
    assert (job.status, job.spec["estimator"]["trainer"], job.spec["strategy"]) == (
        "Completed",
        "shop:Churn",
        "shop:Halves",
    )

    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", head.address)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.syspath_prepend(str(project_folder))
    scaling = ScalingConfig(num_workers=1, resources_per_worker={"CPU": 1})
    shop = import_module("shop")
    trainer = shop.Churn(scaling=scaling, hyperparameters={**STATIC, "num_round": 2}, floor=0.5)
    tuner = HyperparameterTuner(trainer, "validation:auc", {"eta": ContinuousParameter(0.1, 1)}, strategy=shop.Halves())
    tuner.fit(CHANNELS, job_name="own-apart", wait=False)
    tuner.wait()
    assert tuner.describe()["HyperParameterTuningJobStatus"] == "Completed"
    with Store() as store:
        assert store.job("own-apart").driver["submission_id"] == "own-apart"
    attached = HyperparameterTuner.attach("own-apart", allow_code=True)
    assert attached.best_estimator().options == {"floor": 0.5}
    assert attached.strategy.options == {"factor": 2}


@pytest.mark.usefixtures("churn")
def test_fit_without_waiting_goes_to_the_cluster(head: Head, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", head.address)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    other = make(workers=1, store=f"sqlite:///{head.home}/other.db", storage_path=str(head.home / "models"))
    with refuses(ConfigurationError, field=head.address, value="churn-1", remedy="--name"):
        other.fit(CHANNELS, job_name="churn-1", wait=False)
    with Store(f"sqlite:///{head.home}/other.db") as store:
        assert store.jobs() == []
    assert not any((head.home / "models").rglob("*.parquet"))

    tuner = make(workers=1, max_jobs=2000, max_parallel_jobs=1)
    tuner.fit(CHANNELS, job_name="apart", wait=False)
    with Store() as store:
        # On a busy machine `fit` may return before the driver has begun.
        until("its first trials", lambda: len(store.trials("apart")) > 2)
        assert store.job("apart").driver["submission_id"] == "apart"
    mentions(hpo("stop", "apart").stdout, "apart", "Stopped")
    tuner.wait()
    assert tuner.describe()["HyperParameterTuningJobStatus"] == "Stopped"
    mentions(hpo("delete", "apart", "--yes").stdout, "apart")
    with Store() as store:
        assert "apart" not in {job.name for job in store.jobs()}


def test_a_searcher_and_a_scheduler_of_ray_tunes_go_along_and_the_job_is_resumed(
    head: Head, project_folder: Path
) -> None:
    job = yaml.safe_load((project_folder / "job.yaml").read_text())
    job["trainer"]["hyperparameters"]["num_round"] = 9
    del job["tuning"]["strategy"], job["tuning"]["hyperband"]
    job["tuning"] |= {
        "searcher": {"type": "ray.tune.search.optuna:OptunaSearch"},
        "scheduler": {"type": "ray.tune.schedulers:ASHAScheduler", "arguments": {"max_t": 9}},
    }
    (project_folder / "theirs.yaml").write_text(yaml.safe_dump(job))
    hpo("submit", "theirs.yaml", "--address", head.address, "--name", "theirs", "--wait")
    with Store() as store:
        before = store.trials("theirs")
        assert (store.job("theirs").status, len([row for row in before if row.number >= 0])) == ("Completed", 6)
    hpo("resume", "theirs", "--set", "tuning.max_jobs=8")
    with Store() as store:
        after = store.trials("theirs")
        assert store.job("theirs").status == "Completed"
    assert len([row for row in after if row.number >= 0]) == 8
    kept = {row.trial_id: (row.hyperparameters, row.resource, row.objective) for row in after}
    assert all(kept[row.trial_id] == (row.hyperparameters, row.resource, row.objective) for row in before)


@pytest.mark.usefixtures("churn")
def test_rays_own_command_does_the_same(head: Head) -> None:
    environment = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_API_SERVER_ADDRESS": head.address}
    ray_command = Path(sys.executable).parent / "ray"
    entry = ["hpo", "tune", "job.yaml", "--set", "name=by-hand"]
    done = subprocess.run(
        [ray_command, "job", "submit", "--working-dir", ".", "--", *entry],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with Store() as store:
        job = store.job("by-hand")
        assert job.status == "Completed"
        assert [trial.objective for trial in store.trials("by-hand")] == [
            trial.objective for trial in store.trials("churn-1")
        ]
    submitted = re.search(r"raysubmit_\w+", done.stdout)
    assert submitted is not None
    assert job.driver["submission_id"] == submitted[0]
    assert job.driver["address"]
    mentions(hpo("logs", "by-hand", "--address", head.address).stdout, "by-hand", "Hyperband")
