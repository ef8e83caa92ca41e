"""Jobs on a Ray cluster through its Jobs API, on a real head that runs them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

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
