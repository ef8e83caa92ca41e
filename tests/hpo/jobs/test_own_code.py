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
    with pytest.raises(Exception, match=r"allow_code=True to attach\(\), or --allow-code to hpo resume"):
        again.estimator.with_hyperparameters({"epochs": 1, "lr": 1.0}).fit(CHANNELS)
    for wait in (True, False):
        with pytest.raises(
            ConfigurationError,
            match=r"job 'job' names Python code.*: train_loop_per_worker 'shop.training:train', which is train of "
            rf"{package_folder}/shop/training.py; look at it, and give attach\(\) allow_code=True",
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
    with pytest.raises(ConfigurationError, match=r"train_loop_per_worker 'os:abort', which is abort of .*os\.py"):
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
    with pytest.raises(ConfigurationError, match=r"names Python code.*shop\.training:train"):
        again.resume()


# ---- a record of a user's own trainer


def test_a_trainer_of_a_users_own_is_attached_to_and_resumed_where_that_is_allowed(
    package_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = tuner(package_folder, own_trainer(package_folder, floor=0.25), RANGES)
    whole.fit(CHANNELS, job_name="whole")
    interrupted(tuner(package_folder, own_trainer(package_folder, floor=0.25), RANGES))
    sys.path.insert(0, str(package_folder))
    names = f"trainer 'shop.training:Churn', which is Churn of {package_folder}/shop/training.py; look at it, and give "
    with pytest.raises(ConfigurationError) as refused:
        HyperparameterTuner.attach("job")
    assert f"job 'job' names Python code, which would run here and on every worker: {names}" in str(refused.value)
    assert hpo(monkeypatch, "resume", "job") == 2
    assert f"{names}--allow-code" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(ConfigurationError, match=r"'shop\.training:Churn', which is Churn"):
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
    with pytest.raises(ConfigurationError, match="trainer 'Mine' is in this script or notebook, where the other"):
        made.fit(CHANNELS, wait=False)


# ---- a job file


def test_a_job_file_names_a_trainer_of_a_users_own(package_folder: Path) -> None:
    path = job_file(package_folder, trainer_class="shop.training:Churn", options={"floor": 0.25})
    refused = CliRunner().invoke(app, ["tune", path])
    assert isinstance(refused.exception, ConfigurationError)
    assert "trainer.trainer_class 'shop.training:Churn', which is Churn of" in str(refused.exception)
    assert not (package_folder / "ran").exists()
    done = CliRunner().invoke(app, ["tune", path, "--allow-code"])
    assert done.exception is None, done.output
    assert status() == "Completed"
    with Store() as store:
        assert store.job("job").spec["estimator"]["options"] == {"floor": 0.25}


@pytest.mark.parametrize(
    ("trainer", "message"),
    [
        (
            {"trainer_class": "shop.training:NoTrainer"},
            r"NoTrainer.*give a subclass of trainers\.Trainer",
        ),
        ({"trainer_class": "shop.training:Nowhere"}, "'shop.training:Nowhere' cannot be loaded"),
        ({"trainer_class": "shop.training:Churn", "options": {"flor": 1}}, "options are {'flor': 1}: .*'flor'"),
        ({"trainer_class": "Churn"}, "trainer_class is 'Churn'; give a module and a class"),
    ],
)
def test_what_is_no_trainer_is_named(package_folder: Path, trainer: dict[str, Any], message: str) -> None:
    done = CliRunner().invoke(app, ["tune", job_file(package_folder, **trainer), "--allow-code"])
    assert isinstance(done.exception, ConfigurationError), done.output
    with pytest.raises(ConfigurationError, match=message):
        raise done.exception


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
    with pytest.raises(ConfigurationError, match=r"'shop\.training:Churn' is a class of a user's own, which was not"):
        trainer_from_json({**state, "trainer": "shop.training:Churn"})
