"""The search for what broke a distributed run, on small runs in this process; two of them broken on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.convergence.cases import ALONE, DISTRIBUTED, Case, image_case, job_case
from experiments.convergence.causes import Cause
from experiments.convergence.diagnosis import Diagnosis
from experiments.convergence.experiment import Experiment
from experiments.convergence.published_theories import Theory
from experiments.convergence.verdicts import Verdict, judgements
from experiments.shared.published import Options, Steps
from tests.support.experiments.why_it_broke import (
    IMAGE_EPOCHS,
    IMAGE_SEEDS,
    image,  # noqa: F401  # Fixtures.
    job,
    look_into,
    the_first_optimizer_is_made,  # noqa: F401  # Of every test.
)
from tests.support.refusals import refuses
from trainers import ConfigurationError, TorchTrainer


def test_momentum_or_staleness_broke_the_network(image: tuple[Experiment, Diagnosis, Path]) -> None:
    experiment, diagnosis, _ = image
    assert diagnosis.gap.alone.mean > 0.9
    assert diagnosis.gap.distributed.mean < 0.4
    shares = {finding.change.causes[0]: finding.share for finding in diagnosis.findings}
    assert shares[Cause.STALENESS].value > 0.7
    assert Cause.STALENESS in diagnosis.found
    for innocent in (Cause.METRIC, Cause.SHARDS, Cause.BATCH, Cause.NOISE):
        assert shares[innocent].value < 0.3
    # Its metric is exact: the same model has the same score, whoever evaluates which rows.
    assert experiment.scores(Cause.METRIC).values == pytest.approx(diagnosis.gap.distributed.values, abs=1e-9)
    # Without staleness and with the batch of one worker, four workers are one.
    assert diagnosis.pair is not None
    assert diagnosis.pair.share.value == pytest.approx(1, abs=0.05)
    assert {"lr", "mode"} <= diagnosis.ranges.keys()


def test_the_published_theories_are_judged_by_it(image: tuple[Experiment, Diagnosis, Path]) -> None:
    experiment, diagnosis, _ = image
    found = {judgement.theory: judgement.verdict for judgement in judgements(diagnosis)}
    assert found[Theory.STALENESS] is Verdict.CONFIRMED
    assert found[Theory.METHOD] is Verdict.NOT_TESTABLE
    assert len(found) == 5
    # The link was what the workers waited for, all the time: a push and its answer took each some milliseconds.
    [outcome] = experiment.outcomes[DISTRIBUTED]
    assert outcome.link_seconds / outcome.pushes > 0.001
    [free] = experiment.outcomes[Cause.CONGESTION]
    assert free.link_seconds == 0
    measured = experiment.noise_scales
    assert {name: scale.rows for name, scale in measured.items()} == {ALONE: 100, DISTRIBUTED: 400}
    assert all(min(scale.noise) > 0 for scale in measured.values())
    assert measured[ALONE].by_unit[0] > 0


def test_what_was_done_is_not_done_again(image: tuple[Experiment, Diagnosis, Path]) -> None:
    experiment, diagnosis, folder = image
    kept = {path: path.stat().st_mtime_ns for path in (folder / "steps").glob("*.json")}
    assert len(kept) == len(IMAGE_SEEDS) * len(experiment.outcomes)
    said: list[str] = []
    with Steps(folder, said.append) as steps:
        case = image_case(Options(quick=True, out=folder), IMAGE_EPOCHS, real=False)
        again = Experiment(case=case, seeds=IMAGE_SEEDS, steps=steps, folder=folder, say=lambda line: None).run()
    assert again.to_json() == diagnosis.to_json()
    assert len(said) == len(kept)
    assert {path: path.stat().st_mtime_ns for path in (folder / "steps").glob("*.json")} == kept


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
