"""Trackers and notices in a job file: what they become, and what is wrong with them, by line, before a job starts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from hpo import Email, HyperparameterTuner, Webhook
from hpo.job_file.reading import read_job
from hpo.trackers import MLflow, TensorBoard, WeightsAndBiases
from tests.support.hpo.job_file.tracker_models import (
    JOB,
    path,  # noqa: F401  # Fixtures.
)
from tests.support.refusals import missing_names, refuses
from trainers.errors import ConfigurationError


def trackers(path: Path, text: str) -> Any:
    path.write_text(f"{JOB}trackers:\n{text}")
    return HyperparameterTuner(**read_job(path).arguments()).callbacks


def test_each_tracker_is_made_as_the_file_says(path: Path) -> None:
    board, mlflow, wandb = trackers(
        path,
        "  tensorboard: {folder: runs}\n"
        "  mlflow: {tracking_uri: 'http://host:5000', experiment: bank}\n"
        "  wandb: {project: bank, entity: us, mode: offline, folder: here}\n",
    )
    assert isinstance(board, TensorBoard)
    assert board.folder == path.parent / "runs"
    assert isinstance(mlflow, MLflow)
    assert (mlflow.tracking_uri, mlflow.experiment) == ("http://host:5000", "bank")
    assert isinstance(wandb, WeightsAndBiases)
    assert (wandb.project, wandb.entity, wandb.mode, wandb.folder) == ("bank", "us", "offline", f"{path.parent}/here")


def test_what_is_left_out_is_the_default_and_no_tracker_is_made_unasked(path: Path) -> None:
    [mlflow] = trackers(path, "  mlflow: {}\n")
    assert repr(mlflow) == repr(MLflow())
    assert trackers(path, "  wandb: null\n") == ()
    assert HyperparameterTuner(**read_job(path).arguments()).callbacks == ()


def names_in_one_line(error: object, *names: object) -> None:
    """Fails unless one line of an error has all names; and where the error has a secret."""
    assert any(not missing_names(line, *names) for line in str(error).splitlines()), (names, str(error))
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("  tensorbord: {folder: x}\n", ("line 18", "trackers.tensorbord", "'tensorboard'")),
        ("  tensorboard:\n    foldr: x\n", ("line 18", "trackers.tensorboard.folder", "FOLDER/JOB/TRIAL")),
        ("  tensorboard:\n    folder: x\n    foldr: x\n", ("line 20", "trackers.tensorboard.foldr", "'folder'")),
        ("  tensorboard: {folder: 'gs://b/x'}\n", ("line 18", "trackers.tensorboard", "folder", "'gs://b/x'", "local")),
        ("  mlflow: {}\n  wandb: {}\n", ("line 19", "trackers.wandb.project")),
        (
            "  wandb: {project: x, mode: onlin}\n",
            ("line 18", "trackers.wandb.mode", "'onlin'", "online", "offline"),
        ),
        ("  mlflow: {experiment: 7}\n", ("line 18", "trackers.mlflow.experiment", 7, "text", "'7'")),
        (
            "  mlflow: 'http://me:secret@host'\n",
            ("line 18", "trackers.mlflow", "'http://***@host'", "{experiment: churn}"),
        ),
    ],
)
def test_what_is_wrong_is_told_by_line(path: Path, text: str, names: tuple[object, ...]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        trackers(path, text)
    names_in_one_line(caught.value, *names)


@pytest.mark.parametrize(
    ("text", "package"),
    [
        ("  tensorboard: {folder: x}\n", "tensorboard"),
        ("  mlflow: {}\n", "mlflow"),
        ("  wandb: {project: x}\n", "wandb"),
    ],
)
def test_a_missing_package_is_told_before_the_job_starts(
    path: Path, monkeypatch: pytest.MonkeyPatch, text: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    place, remedy = ("line 18", f"trackers.{package}"), f"pip install 'warmband[{package}]'"
    with refuses(ConfigurationError, field=place, value=package, remedy=(remedy, "installed")):
        trackers(path, text)


def notices(path: Path, text: str) -> Any:
    path.write_text(f"{JOB}notices:\n{text}")
    return HyperparameterTuner(**read_job(path).arguments()).notices


def test_notices_are_made_as_the_file_says(path: Path) -> None:
    assert notices(
        path,
        "  ops: {type: webhook, url: 'https://h/x', secret_variable: WARMBAND_NOTICE_KEY, events: [failed]}\n"
        "  team: {type: email, host: smtp, sender: a@b, to: [c@d, e@f], budget_share: 0.5}\n",
    ) == {
        "ops": Webhook(url="https://h/x", secret_variable="WARMBAND_NOTICE_KEY", events=["failed"]),
        "team": Email(host="smtp", sender="a@b", to=["c@d", "e@f"], budget_share=0.5),
    }
    path.write_text(JOB)
    assert HyperparameterTuner(**read_job(path).arguments()).notices == {}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "  ops: {type: webhok, url: 'https://h/'}\n",
            ("line 18", "notices.ops.type", "'webhok'", "webhook", "email"),
        ),
        ("  ops: {type: webhook, urll: 'https://h/'}\n", ("line 18", "notices.ops.urll", "'url'")),
        ("  ops: {type: webhook}\n", ("line 18", "notices.ops", "url", "url_variable")),
        (
            "  ops: {type: webhook, url: 'https://me:secret@h/'}\n",
            ("line 18", "notices.ops", "url", "user", "password"),
        ),
        ("  ops: {type: email, host: smtp, sender: a@b}\n", ("line 18", "notices.ops.to", "list")),
        (
            "  ops: {type: webhook, url: 'https://h/', events: [faild]}\n",
            ("line 18", "notices.ops.events", "'faild'", "failed"),
        ),
        ("  'a b': {type: webhook, url: 'https://h/'}\n", ("notices", "'a b'", 64)),
    ],
)
def test_what_is_wrong_with_notices_is_told_by_line(path: Path, text: str, names: tuple[object, ...]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        notices(path, text)
    names_in_one_line(caught.value, *names)
