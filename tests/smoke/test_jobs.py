"""One real job of each trainer on a gang, and a job whose driver is killed: the answer of one process."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hpo import ContinuousParameter, HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.record.store import Store
from tests.support.command import run as hpo
from tests.support.driving import CHANNELS, answer, run_until, tuner as boosting_tuner
from tests.support.exact_torch_job import train
from tests.support.heads import head  # noqa: F401  # A fixture.
from tests.support.script_job import ScriptJob
from trainers import ParameterServerTrainer, ScalingConfig, TorchTrainer
from trainers.datasets import load

HERE = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
GANG = ScalingConfig(num_workers=2)
DIGITS = load("digits")
IMAGES = {
    "train": (DIGITS.train[0][:480], DIGITS.train[1][:480]),
    "validation": (DIGITS.validation[0][:120], DIGITS.validation[1][:120]),
}


def tune(estimator: Any, name: str) -> HyperparameterTuner:
    tuner = HyperparameterTuner(
        estimator,
        "validation:loss",
        {"lr": ContinuousParameter(0.01, 0.5, "Logarithmic")},
        objective_type="Minimize",
        strategy="Hyperband",
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=3, min_resource=1, suggestions="random")),
        max_jobs=4,
        max_parallel_jobs=1,
        random_seed=5,
        console=Console(file=io.StringIO()),
    )
    tuner.fit(IMAGES, job_name=name)
    return tuner


def trials(name: str) -> list[tuple[Any, ...]]:
    """Return what each trial came to, without the job's name in its id."""
    with Store() as store:
        rows = store.trials(name)
    return sorted((row.trial_id.removeprefix(name), row.status, row.resource, row.objective) for row in rows)


def compare(here: HyperparameterTuner, there: HyperparameterTuner, tolerance: float) -> None:
    """Check that both jobs found the same trials, rungs, losses, winner and model."""
    one, other = trials("here"), trials("there")
    assert [row[:3] for row in other] == [row[:3] for row in one]
    assert [row[3] for row in other] == pytest.approx([row[3] for row in one], rel=0, abs=tolerance)
    assert {row[1] for row in one} == {"Completed", "Stopped"}, "some go on and some do not"
    best = [tuner.best_training_job().rpartition("-")[2] for tuner in (here, there)]
    assert best[0] == best[1]
    ours, theirs = (tuner.best_estimator().model()["model"] for tuner in (here, there))
    for parameter, value in ours.items():
        assert (value - theirs[parameter]).abs().max() <= tolerance, parameter


@pytest.mark.fault
def test_pytorch_over_allreduce_with_a_killed_worker(ray_cluster: None, tmp_path: Path) -> None:
    (tmp_path / "kill").touch()
    static = {"lr": 0.1, "global_batch_size": 40}
    options: dict[str, Any] = {"metrics": ["validation:loss"]}
    here = tune(TorchTrainer(train, scaling=HERE, hyperparameters=static, **options), "here")
    killing = {**static, "kill": str(tmp_path / "kill")}
    there = tune(TorchTrainer(train, scaling=GANG, hyperparameters=killing, **options), "there")
    assert not (tmp_path / "kill").exists(), "a worker was killed"
    compare(here, there, 1e-10)


def test_pytorch_over_parameter_servers(ray_cluster: None) -> None:
    static = {"lr": 0.1, "per_worker_batch_size": 20, "mode": "sync", "num_servers": 2}
    options: dict[str, Any] = {"metrics": ["validation:loss"]}
    simulated = {**static, "num_workers": 2}
    here = tune(ParameterServerTrainer(train, scaling=HERE, hyperparameters=simulated, **options), "here")
    there = tune(ParameterServerTrainer(train, scaling=GANG, hyperparameters=static, **options), "there")
    compare(here, there, 0.0)


def test_a_program(ray_cluster: None, tmp_path: Path) -> None:
    options: dict[str, Any] = {"strategy": "Hyperband", "max_parallel_jobs": 1}
    here = ScriptJob(tmp_path / "here", workers=0, **options)
    there = ScriptJob(tmp_path / "there", workers=1, **options)
    ours, theirs = here.fit("here"), there.fit("there")
    assert [(row.status, row.resource, row.objective) for row in theirs] == [
        (row.status, row.resource, row.objective) for row in ours
    ]
    assert {row.status for row in ours} == {"Completed", "Stopped"}
    best = there.tuner.best_estimator().model()
    epochs, weight = json.loads((Path(best) / "model.json").read_text())
    assert epochs == 9
    assert weight == pytest.approx(max(row.objective for row in theirs), abs=1e-6)


@pytest.mark.fault
def test_xgboost_with_a_killed_driver(
    ray_cluster: None,
    head: tuple[subprocess.Popen[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A driver on a cluster is killed in the middle, and `hpo resume` ends its job on another cluster."""
    whole = tmp_path / "whole"
    whole.mkdir()
    boosting_tuner(whole).fit(CHANNELS, job_name="whole")
    joined = {**os.environ, "RAY_ADDRESS": head[1]}
    assert run_until(tmp_path, 12, signal.SIGKILL, workers=1, environment=joined).returncode == -signal.SIGKILL
    assert hpo(monkeypatch, "resume", "job", "--store", f"sqlite:///{tmp_path}/record.db", "--json") == 0
    assert json.loads(capsys.readouterr().out)["HyperParameterTuningJobStatus"] == "Completed"
    assert answer(tmp_path, "job") == answer(whole, "whole")
    with Store(f"sqlite:///{tmp_path}/record.db") as store:
        assert len(store.job("job").summary["runs"]) == 2, "it was killed in the middle"
