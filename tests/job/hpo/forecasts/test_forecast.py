"""What a job will take: the arithmetic and its laws, what earlier jobs say, and how far off it was for a real job."""

from __future__ import annotations

import dataclasses
import io
import math

import pytest
from ray.train import ScalingConfig
from rich.console import Console

from hpo import HyperparameterTuner, IntegerParameter, Prices
from hpo.forecasts.forecast import PROBE
from tests.support.boosting import CHANNELS
from tests.support.jobs import make
from tests.support.refusals import mentions, missing_names, refuses
from trainers import TrialError


def printed_line(printed: io.StringIO, start: str) -> str:
    [line] = [line for line in printed.getvalue().splitlines() if line.startswith(start)]
    return line


def test_a_job_forecasts_itself_by_its_probe_and_the_next_by_the_first() -> None:
    tuner, printed = make(verbose=True, prices=Prices(per_worker_hour=3.6, currency="EUR"))
    tuner.fit(CHANNELS, job_name="first")
    mentions(printed_line(printed, "Probe: "), "billed", "worker-seconds", "EUR")
    summary = tuner.describe()["Summary"]
    first = summary["forecast"]
    assert first["source"] == PROBE
    assert 0 < first["expected"]["cost"] == pytest.approx(first["expected"]["worker_seconds"] / 1000)
    measured = sum(summary["worker_seconds"].values())
    assert first["error"]["worker_seconds"] == pytest.approx(measured / first["expected"]["worker_seconds"] - 1)
    mentions(printed.getvalue(), f"worker-seconds {first['error']['worker_seconds']:+.0%}")

    again, printed = make(prices=Prices(per_worker_hour=3.6, currency="EUR"))
    foretold = again.forecast(CHANNELS)
    again.fit(CHANNELS, job_name="second")
    assert printed.getvalue().index("job first") < printed.getvalue().index("Probe: ")
    assert missing_names(printed_line(printed, "Probe: "), "billed", "EUR") == ["billed", "EUR"]
    second = again.describe()["Summary"]["forecast"]
    assert (second["source"], foretold.source) == ("job first", "job first")
    assert second["expected"] == dataclasses.asdict(foretold.expected)
    # How large it is says more of who else uses the machine than of the forecast.
    assert all(-1 < wrong < math.inf for wrong in second["error"].values())


def test_a_trainer_that_cannot_be_trained_says_why() -> None:
    def broken(context: object) -> None:
        raise ValueError("no such layer")

    from trainers import TorchTrainer

    trainer = TorchTrainer(broken, scaling=ScalingConfig(num_workers=0), hyperparameters={"epochs": 2})
    tuner = HyperparameterTuner(
        trainer,
        "validation:loss",
        {"per_worker_batch_size": IntegerParameter(8, 16)},
        strategy="Random",
        max_jobs=2,
        console=Console(file=io.StringIO()),
    )
    with refuses(TrialError, field="hyperparameters", value="ValueError: no such layer", remedy="forecast"):
        tuner.forecast(CHANNELS)
