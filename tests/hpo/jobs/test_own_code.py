"""Trainers and training functions of a user's own: a record runs nothing of them that was not allowed."""

from __future__ import annotations

import io
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

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
    STATIC,
    given,
    interrupted,
    job_file,
    line,
    own_trainer,
    status,
    tuner,
)
from tests.support.refusals import mentions, refuses
from trainers import ConfigurationError, TorchTrainer, Trainer, XGBoostTrainer
from trainers.registry import code_in, trainer_from_json

# ---- a record of Warmband's own trainers


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


# ---- a record of a user's own trainer


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


@pytest.mark.process
def test_a_trainer_of_a_users_own_runs_in_the_background(package_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(package_folder))
    own = import_module("shop.training").Churn(scaling=HERE, hyperparameters=STATIC, floor=0.5)
    made = tuner(package_folder, own, RANGES)
    made.fit(CHANNELS, job_name="job", wait=False)
    made.wait()
    assert status() == "Completed"
    assert made.best_estimator().options == {"floor": 0.5}


def test_a_trainer_of_a_script_is_kept_from_other_processes(
    package_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type("Mine", (XGBoostTrainer,), {"__module__": "__main__"})
    made = tuner(package_folder, kind(scaling=HERE, hyperparameters=STATIC), RANGES)
    with refuses(ConfigurationError, field="trainer", value="Mine", remedy=("training:Mine", "fit(wait=True)")):
        made.fit(CHANNELS, wait=False)


# ---- a job file


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


@pytest.mark.parametrize(
    ("trainer", "names"),
    [
        ({"trainer_class": "shop.training:NoTrainer"}, ("shop.training:NoTrainer", "trainers.Trainer")),
        ({"trainer_class": "shop.training:Nowhere"}, ("shop.training:Nowhere", "module")),
        ({"trainer_class": "shop.training:Churn", "options": {"flor": 1}}, ("options", "{'flor': 1}")),
        ({"trainer_class": "Churn"}, ("trainer_class", "'Churn'", "module")),
    ],
)
def test_what_is_no_trainer_is_named(package_folder: Path, trainer: dict[str, Any], names: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, ["tune", job_file(package_folder, **trainer), "--allow-code"])
    assert isinstance(done.exception, ConfigurationError), done.output
    mentions(str(done.exception), *names)


# ---- what a trainer says of its code


class Own(TorchTrainer):
    """A trainer of the user's own that runs more code than Warmband knows of."""

    def code(self) -> dict[str, str]:
        return {**super().code(), "loss": "shop.losses:mine"}


@pytest.mark.parametrize(
    ("trainer", "code"),
    [
        (XGBoostTrainer(hyperparameters=STATIC), {}),
        (TorchTrainer("json:loads"), {"train_loop_per_worker": "json:loads"}),
        (
            Own("json:loads"),
            {"trainer": f"{__name__}:Own", "train_loop_per_worker": "json:loads", "loss": "shop.losses:mine"},
        ),
    ],
)
def test_a_trainer_names_the_code_that_it_runs(trainer: Trainer, code: dict[str, str]) -> None:
    assert trainer.code() == code
    assert code_in(trainer.to_json()) == code
    again = trainer_from_json(trainer.to_json(), allow_code=True)
    assert (type(again), again.to_json()) == (type(trainer), trainer.to_json())


def test_a_record_does_not_hide_its_code() -> None:
    state = {**TorchTrainer("json:loads").to_json(), "code": {}}
    assert code_in(state) == {"train_loop_per_worker": "json:loads"}
    assert code_in({**state, "trainer": "shop.training:Churn", "code": {}})["trainer"] == "shop.training:Churn"
    with refuses(ConfigurationError, field="trainer", value="shop.training:Churn"):
        trainer_from_json({**state, "trainer": "shop.training:Churn"})
