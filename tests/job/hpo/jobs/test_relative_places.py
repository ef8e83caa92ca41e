"""Jobs whose storage path or home is relative: their models are found from any working directory."""

from __future__ import annotations

import io
import os
import signal
from pathlib import Path

import pytest
from rich.console import Console

from hpo import ContinuousParameter, HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.record import Store
from tests.support.driving import CHANNELS, Counting
from trainers import ScalingConfig, XGBoostTrainer


@pytest.mark.parametrize("given", ["storage_path", "WARMBAND_HOME"])
def test_a_job_with_a_relative_place_is_resumed_and_read_from_another_directory(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.setenv("WARMBAND_STORE", f"sqlite:///{tmp_path}/record.db")
    monkeypatch.setenv("WARMBAND_HOME", "home" if given == "WARMBAND_HOME" else str(tmp_path / "home"))
    monkeypatch.chdir(here)
    one_thread = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
    tuner = HyperparameterTuner(
        XGBoostTrainer(scaling=one_thread, hyperparameters={"objective": "binary:logistic", "eval_metric": "auc"}),
        "validation:auc",
        {"eta": ContinuousParameter(0.05, 1)},
        strategy="Hyperband",
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=4, min_resource=1, suggestions="random")),
        max_jobs=4,
        storage_path="models" if given == "storage_path" else None,
        callbacks=[Counting(5, lambda: os.kill(os.getpid(), signal.SIGINT))],
        console=Console(file=io.StringIO()),
    )
    with pytest.raises(KeyboardInterrupt):
        tuner.fit(CHANNELS, job_name="job")
    monkeypatch.chdir(there)
    again = HyperparameterTuner.attach("job")
    again.resume(inputs=CHANNELS)
    with Store() as store:
        assert not [line.text for line in store.lines("job") if "warning" in line.text]
        assert all(Path(trial.checkpoint).is_absolute() for trial in store.trials("job") if trial.checkpoint)
    again.best_estimator().model()
    assert list(there.iterdir()) == []
