"""Trainers and training functions of a user's own: a record that names them runs nothing that was not allowed."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from ray.train import ScalingConfig
from rich.console import Console
from typer.testing import CliRunner

from hpo import ContinuousParameter, HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.cli import app
from hpo.jobs.driver import drive
from hpo.record.store import Store
from tests.support import own_code, yaml_text
from tests.support.command import run as hpo
from tests.support.driving import CHANNELS, Counting, answer, tuner as boosting_tuner
from trainers import ConfigurationError, TorchTrainer, Trainer, XGBoostTrainer
from trainers.registry import code_in, trainer_from_json

HERE = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
CODE = Path(own_code.__file__).read_text(encoding="utf-8")
RANGES = {"eta": ContinuousParameter(0.05, 1)}
STATIC = {"objective": "binary:logistic", "eval_metric": "auc"}
SEARCH: dict[str, Any] = {
    "strategy": "Hyperband",
    "strategy_config": StrategyConfig(HyperbandStrategyConfig(max_resource=4, min_resource=1)),
    "max_jobs": 4,
    "random_seed": 5,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory, which Python does not look in, with a package whose import leaves a file behind."""
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").touch()
    mark = f"\n\nopen({str(tmp_path / 'ran')!r}, 'a').close()\n"
    (package / "training.py").write_text(CODE + mark)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [path for path in sys.path if path not in ("", str(tmp_path))])
    monkeypatch.setenv("WARMBAND_STORE", f"sqlite:///{tmp_path}/record.db")
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    """As in another process: the package is not imported."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]


def given(folder: Path, name: str) -> Any:
    """Something of the package, as a user's program has it, which then ends."""
    sys.path.insert(0, str(folder))
    try:
        return getattr(import_module("shop.training"), name)
    finally:
        sys.path.remove(str(folder))
        forget()
        (folder / "ran").unlink()


def tuner(folder: Path, trainer: Trainer, ranges: dict[str, Any], **options: Any) -> HyperparameterTuner:
    quiet = Console(file=io.StringIO())
    where = str(folder / "jobs")
    return HyperparameterTuner(
        trainer, "validation:auc", ranges, storage_path=where, console=quiet, **SEARCH, **options
    )


def own_trainer(folder: Path, **options: Any) -> Trainer:
    made: Trainer = given(folder, "Churn")(scaling=HERE, hyperparameters=STATIC, **options)
    return made


def interrupted(tuner: HyperparameterTuner, at: int = 5) -> None:
    """Begins a job that Ctrl-C stops at its `at`-th report."""
    tuner.callbacks = (Counting(at, lambda: os.kill(os.getpid(), signal.SIGINT)),)
    with pytest.raises(KeyboardInterrupt):
        tuner.fit(CHANNELS, job_name="job")
    tuner.callbacks = ()


def status() -> str:
    with Store() as store:
        return store.job("job").status


# ---- a record of Warmband's own trainers


def test_resume_of_a_job_that_names_no_code_imports_nothing_from_the_working_directory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(boosting_tuner(folder))
    (folder / "xgboost.py").write_text("raise AssertionError('somebody else put it there')\n")
    assert hpo(monkeypatch, "resume", "job") == 0
    assert str(folder) not in sys.path
    assert hpo(monkeypatch, "resume", "job", "--allow-code") == 0
    assert str(folder) not in sys.path


def test_a_reader_of_a_record_imports_no_function_that_it_names(folder: Path) -> None:
    made = tuner(
        folder, TorchTrainer(given(folder, "train"), scaling=HERE), {"lr": ContinuousParameter(0.1, 1, "Linear")}
    )
    interrupted(made, at=4)
    sys.path.insert(0, str(folder))
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
            rf"{folder}/shop/training.py; look at it, and give attach\(\) allow_code=True",
        ):
            again.resume(wait=wait)
    assert not (folder / "ran").exists()
    assert status() == "Stopped"

    allowed = HyperparameterTuner.attach("job", allow_code=True)
    allowed.resume()
    assert (folder / "ran").exists()
    assert status() == "Completed"


def test_what_a_tuner_was_made_with_is_allowed_and_nothing_else_that_its_record_names(folder: Path) -> None:
    made = tuner(
        folder, TorchTrainer(given(folder, "train"), scaling=HERE), {"lr": ContinuousParameter(0.1, 1, "Linear")}
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
    sys.path.insert(0, str(folder))
    made.resume()
    assert status() == "Completed"


# ---- a record of a user's own trainer


def test_a_trainer_of_a_users_own_is_attached_to_and_resumed_where_that_is_allowed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = tuner(folder, own_trainer(folder, floor=0.25), RANGES)
    whole.fit(CHANNELS, job_name="whole")
    interrupted(tuner(folder, own_trainer(folder, floor=0.25), RANGES))
    sys.path.insert(0, str(folder))
    names = f"trainer 'shop.training:Churn', which is Churn of {folder}/shop/training.py; look at it, and give "
    with pytest.raises(ConfigurationError) as refused:
        HyperparameterTuner.attach("job")
    assert f"job 'job' names Python code, which would run here and on every worker: {names}" in str(refused.value)
    assert hpo(monkeypatch, "resume", "job") == 2
    assert f"{names}--allow-code" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(ConfigurationError, match=r"'shop\.training:Churn', which is Churn"):
        drive(None, "job", console=Console(file=io.StringIO()), resume=True)
    assert not (folder / "ran").exists()
    assert status() == "Stopped"

    assert hpo(monkeypatch, "resume", "job", "--allow-code") == 0
    assert (folder / "ran").exists()
    assert answer(folder, "job") == answer(folder, "whole")
    attached = HyperparameterTuner.attach("job", allow_code=True)
    assert type(attached.estimator).__qualname__ == "Churn"
    assert attached.estimator.options == {"floor": 0.25}
    assert attached.best_estimator().model().num_boosted_rounds() == attached.best_estimator().units


def test_a_trainer_that_owes_nothing_to_warmbands_is_tuned_and_resumed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(tuner(folder, given(folder, "Line")(scaling=HERE), RANGES))
    assert hpo(monkeypatch, "resume", "job", "--allow-code") == 0
    assert status() == "Completed"
    assert HyperparameterTuner.attach("job", allow_code=True).best_estimator().model() == {"steps": 4}


@pytest.mark.process
def test_a_trainer_of_a_users_own_runs_in_the_background(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder))
    own = import_module("shop.training").Churn(scaling=HERE, hyperparameters=STATIC, floor=0.5)
    made = tuner(folder, own, RANGES)
    made.fit(CHANNELS, job_name="job", wait=False)
    made.wait()
    assert status() == "Completed"
    assert made.best_estimator().options == {"floor": 0.5}


def test_a_trainer_of_a_script_is_kept_from_other_processes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type("Mine", (XGBoostTrainer,), {"__module__": "__main__"})
    made = tuner(folder, kind(scaling=HERE, hyperparameters=STATIC), RANGES)
    with pytest.raises(ConfigurationError, match="trainer 'Mine' is in this script or notebook, where the other"):
        made.fit(CHANNELS, wait=False)


# ---- a job file


def job_file(folder: Path, **trainer: Any) -> str:
    frames = {name: folder / f"{name}.csv" for name in CHANNELS}
    for name, path in frames.items():
        CHANNELS[name].to_csv(path, index=False)
    path = folder / "job.yaml"
    path.write_text(
        yaml_text.dump(
            {
                "name": "job",
                "data": {"channels": {name: {"path": str(file)} for name, file in frames.items()}},
                "trainer": {"type": "custom", "num_workers": 0, "hyperparameters": STATIC, **trainer},
                "tuning": {
                    "objective_metric_name": "validation:auc",
                    "ranges": {"eta": {"type": "continuous", "min": 0.05, "max": 1.0}},
                    "hyperband": {"max_resource": 4},
                    "max_jobs": 4,
                },
            }
        )
    )
    return str(path)


def test_a_job_file_names_a_trainer_of_a_users_own(folder: Path) -> None:
    path = job_file(folder, trainer_class="shop.training:Churn", options={"floor": 0.25})
    refused = CliRunner().invoke(app, ["tune", path])
    assert isinstance(refused.exception, ConfigurationError)
    assert "trainer.trainer_class 'shop.training:Churn', which is Churn of" in str(refused.exception)
    assert not (folder / "ran").exists()
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
def test_what_is_no_trainer_is_named(folder: Path, trainer: dict[str, Any], message: str) -> None:
    done = CliRunner().invoke(app, ["tune", job_file(folder, **trainer), "--allow-code"])
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
