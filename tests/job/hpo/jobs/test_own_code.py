"""Trainers and training functions of a user's own: a record runs nothing of them that was not allowed."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from hpo import ContinuousParameter, HyperparameterTuner
from hpo.cli import app
from hpo.jobs.driver import drive
from hpo.record.store import Store
from tests.support.command import run as hpo
from tests.support.driving import CHANNELS, answer, tuner as boosting_tuner
from tests.support.own_jobs import (
    HERE,
    RANGES,
    given,
    interrupted,
    job_file,
    line,
    own_trainer,
    status,
    tuner,
)
from tests.support.refusals import mentions, refuses
from trainers import ConfigurationError, TorchTrainer


def test_resume_of_a_job_that_names_no_code_imports_nothing_from_the_working_directory(
    package_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(boosting_tuner(package_folder))
    (package_folder / "xgboost.py").write_text("raise AssertionError('somebody else put it there')\n")
    assert hpo(monkeypatch, "resume", "job") == 0
    assert str(package_folder) not in sys.path
    assert hpo(monkeypatch, "resume", "job", "--allow-code") == 0
    assert str(package_folder) not in sys.path


def test_a_reader_of_a_record_imports_no_function_that_it_names(package_folder: Path) -> None:
    made = tuner(
        package_folder,
        TorchTrainer(given(package_folder, "train"), scaling=HERE),
        {"lr": ContinuousParameter(0.1, 1, "Linear")},
    )
    interrupted(made, at=4)
    sys.path.insert(0, str(package_folder))
    again = HyperparameterTuner.attach("job")
    assert again.describe()["HyperParameterTuningJobStatus"] == "Stopped"
    assert again.best_estimator().model() == {"epoch": again.describe()["Summary"]["best"]["resource"] - 1}
    assert again.estimator.to_json() == made.estimator.to_json()
    with refuses(Exception, field="shop.training:train", remedy=("allow_code=True", "attach()", "--allow-code")):
        again.estimator.with_hyperparameters({"epochs": 1, "lr": 1.0}).fit(CHANNELS)
    for wait in (True, False):
        with refuses(
            ConfigurationError,
            field=("job", "train_loop_per_worker", f"{package_folder}/shop/training.py"),
            value="shop.training:train",
            remedy=("attach()", "allow_code=True"),
        ):
            again.resume(wait=wait)
    assert not (package_folder / "ran").exists()
    assert status() == "Stopped"

    allowed = HyperparameterTuner.attach("job", allow_code=True)
    allowed.resume()
    assert (package_folder / "ran").exists()
    assert status() == "Completed"


def test_what_a_tuner_was_made_with_is_allowed_and_nothing_else_that_its_record_names(package_folder: Path) -> None:
    made = tuner(
        package_folder,
        TorchTrainer(given(package_folder, "train"), scaling=HERE),
        {"lr": ContinuousParameter(0.1, 1, "Linear")},
    )
    interrupted(made, at=4)
    with Store() as store:
        spec = store.job("job").spec
        spec["estimator"]["options"]["train_loop_per_worker"] = "os:abort"
        store.update_job("job", spec=spec)
    with refuses(ConfigurationError, field=("train_loop_per_worker", "os.py"), value="os:abort"):
        made.resume()
    with Store() as store:
        spec["estimator"]["options"]["train_loop_per_worker"] = "shop.training:train"
        store.update_job("job", spec=spec)
    sys.path.insert(0, str(package_folder))
    made.resume()
    assert status() == "Completed"


def test_what_a_tuner_is_given_later_is_allowed_too(package_folder: Path) -> None:
    made = tuner(package_folder, line(package_folder), RANGES)
    made.strategy, made.strategy_config = given(package_folder, "Halves")(), None
    interrupted(made)
    sys.path.insert(0, str(package_folder))
    made.resume()
    assert status() == "Completed"
    unallowed = tuner(
        package_folder, TorchTrainer(given(package_folder, "train"), scaling=HERE), {"lr": ContinuousParameter(0.1, 1)}
    )
    unallowed.fit(CHANNELS, job_name="torch")
    again = HyperparameterTuner.attach("torch")
    again.max_jobs = 5
    assert again.settings.max_jobs == 5
    with refuses(ConfigurationError, field="train_loop_per_worker", value="shop.training:train"):
        again.resume()


def test_a_trainer_of_a_users_own_is_attached_to_and_resumed_where_that_is_allowed(
    package_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = tuner(package_folder, own_trainer(package_folder, floor=0.25), RANGES)
    whole.fit(CHANNELS, job_name="whole")
    interrupted(tuner(package_folder, own_trainer(package_folder, floor=0.25), RANGES))
    sys.path.insert(0, str(package_folder))
    names = ("trainer", "shop.training:Churn", f"{package_folder}/shop/training.py")
    with refuses(ConfigurationError, field=("job", *names), remedy="allow_code=True"):
        HyperparameterTuner.attach("job")
    assert hpo(monkeypatch, "resume", "job") == 2
    mentions(capsys.readouterr().err, *names, "--allow-code")
    with refuses(ConfigurationError, field=names):
        drive(None, "job", console=Console(file=io.StringIO()), resume=True)
    assert not (package_folder / "ran").exists()
    assert status() == "Stopped"

    assert hpo(monkeypatch, "resume", "job", "--allow-code") == 0
    assert (package_folder / "ran").exists()
    assert answer(package_folder, "job") == answer(package_folder, "whole")
    attached = HyperparameterTuner.attach("job", allow_code=True)
    assert type(attached.estimator).__qualname__ == "Churn"
    assert attached.estimator.options == {"floor": 0.25}
    assert attached.best_estimator().model().num_boosted_rounds() == attached.best_estimator().units


def test_a_trainer_that_owes_nothing_to_warmbands_is_tuned_and_resumed(
    package_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(tuner(package_folder, line(package_folder), RANGES))
    assert hpo(monkeypatch, "resume", "job", "--allow-code") == 0
    assert status() == "Completed"
    assert HyperparameterTuner.attach("job", allow_code=True).best_estimator().model() == {"steps": 4}


def test_a_job_file_names_a_trainer_of_a_users_own(package_folder: Path) -> None:
    path = job_file(package_folder, trainer_class="shop.training:Churn", options={"floor": 0.25})
    refused = CliRunner().invoke(app, ["tune", path])
    assert isinstance(refused.exception, ConfigurationError)
    mentions(str(refused.exception), "trainer.trainer_class", "shop.training:Churn", "--allow-code")
    mentions(str(refused.exception), str(package_folder / "shop" / "training.py"))
    assert not (package_folder / "ran").exists()
    done = CliRunner().invoke(app, ["tune", path, "--allow-code"])
    assert done.exception is None, done.output
    assert status() == "Completed"
    with Store() as store:
        assert store.job("job").spec["estimator"]["options"] == {"floor": 0.25}
