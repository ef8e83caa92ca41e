"""The search for what broke a distributed run: what it compares, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.convergence.cases import Case, image_case, job_case
from experiments.shared.published import Options
from tests.support.experiments.why_it_broke import (
    job,
    look_into,
    the_first_optimizer_is_made,  # noqa: F401  # A fixture of every test.
)
from tests.support.refusals import refuses
from trainers import ConfigurationError, TorchTrainer


def test_a_job_file_gives_its_static_run(tmp_path: Path) -> None:
    options = Options(out=tmp_path)
    path = job(
        tmp_path,
        "type: torch, train_loop: 'experiments.mnist:train', num_workers: 3, "
        "hyperparameters: {lr: 0.1, momentum: 0.9, per_worker_batch_size: 50}",
    )
    case = job_case(path, options, None, real=False, allow_code=True)
    assert (case.run.workers, case.run.mode, case.metric, case.maximize) == (3, "sync", "validation:loss", False)
    assert case.trainer.units == 4
    # AllReduce is simulated by a server that waits for all.
    assert case.distributed().hyperparameters["mode"] == "sync"
    real = job_case(path, options, 2, real=True, allow_code=True)
    assert (type(real.distributed()), real.distributed().workers, real.trainer.units) == (TorchTrainer, 3, 2)


@pytest.mark.parametrize(
    ("trainer", "metric", "names"),
    [
        (
            "type: xgboost, num_workers: 1, hyperparameters: {eval_metric: rmse}",
            "rmse",
            ("trainer.num_workers", "1 worker", "2"),
        ),
        (
            "type: torch, train_loop: 'experiments.mnist:train', num_workers: 2, precision: bf16",
            "loss",
            ("precision", "--real"),
        ),
    ],
)
def test_what_cannot_be_compared_or_simulated_is_refused(
    trainer: str, metric: str, names: tuple[str, ...], tmp_path: Path
) -> None:
    with refuses(ConfigurationError, field=names):
        job_case(job(tmp_path, trainer, metric), Options(out=tmp_path), None, real=False, allow_code=True)


def test_a_twin_that_diverges_too_is_nothing_to_come_back_to(tmp_path: Path) -> None:
    case = image_case(Options(quick=True, out=tmp_path), 1, real=False)
    wild = Case(
        title="",
        trainer=case.trainer.with_hyperparameters({"lr": 1e30}),
        channels=case.channels,
        metric="validation:accuracy",
    )
    with refuses(ConfigurationError, field="one worker", value="diverges", remedy="learning rate"):
        look_into(wild, tmp_path, (1,))


def test_a_metric_that_is_not_reported_is_refused_with_those_that_are(tmp_path: Path) -> None:
    case = image_case(Options(quick=True, out=tmp_path), 1, real=False)
    wrong = Case(title="", trainer=case.trainer, channels=case.channels, metric="validation:auc")
    with refuses(
        ConfigurationError, field="objective_metric_name", value="validation:auc", remedy="validation:accuracy"
    ):
        look_into(wrong, tmp_path)
