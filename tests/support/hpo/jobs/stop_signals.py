"""Jobs that get signals in this process."""

from __future__ import annotations

import io
import signal
from collections.abc import Iterator

import numpy as np
import pandas
import pytest
from ray.train import ScalingConfig
from rich.console import Console

from hpo import Callback, ContinuousParameter, HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.record.store import Store
from hpo.search.trial import UNTUNED
from trainers import XGBoostTrainer


@pytest.fixture(autouse=True)
def pythons_own_handlers() -> Iterator[None]:
    """As in a process that nobody has changed; and they are put back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is before[signal.SIGTERM]
    signal.signal(signal.SIGINT, before[signal.SIGINT])


def press(times: int = 1) -> None:
    for _ in range(times):
        signal.raise_signal(signal.SIGINT)


def run(printed: io.StringIO, *callbacks: Callback, trials: int = 6) -> tuple[bool, str, str, bool]:
    """Runs a job; returns whether `fit` raised KeyboardInterrupt, the record's status and reason, and if all ended."""
    random = np.random.default_rng(0)
    rows = pandas.DataFrame(random.normal(size=(200, 3)), columns=["a", "b", "c"])
    rows.insert(0, "y", (rows["a"] > 0).astype(int))
    tuner = HyperparameterTuner(
        XGBoostTrainer(
            scaling=ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1}),
            hyperparameters={"objective": "binary:logistic", "eval_metric": "auc"},
        ),
        "validation:auc",
        {"eta": ContinuousParameter(0.1, 1)},
        strategy="Hyperband",
        strategy_config=StrategyConfig(HyperbandStrategyConfig(max_resource=4, min_resource=1, suggestions="random")),
        max_jobs=trials,
        random_seed=1,
        callbacks=callbacks,
        console=Console(file=printed, width=120),
    )
    raised = False
    try:
        tuner.fit({"train": rows[:150], "validation": rows[150:]}, job_name="pressed")
    except KeyboardInterrupt:
        raised = True
    with Store() as store:
        job, found = store.job("pressed"), store.trials("pressed")
    ended = [trial.ended_at is not None for trial in found if trial.trial_id != UNTUNED]
    return raised, job.status, job.reason, all(ended)
