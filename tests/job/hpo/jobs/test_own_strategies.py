"""Strategies of a user's own: a record runs nothing of them that was not allowed."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from hpo import HyperparameterTuner, IntegerParameter
from hpo.cli import app
from hpo.jobs.driver import drive
from hpo.ranges import ParameterRange
from hpo.record.store import Store
from hpo.strategies import Plan
from hpo.strategies.registry import STRATEGIES
from tests.support import own_code
from tests.support.command import run as hpo
from tests.support.driving import CHANNELS, answer
from tests.support.own_jobs import (
    HERE,
    RANGES,
    STATIC,
    given,
    halves,
    interrupted,
    job_file,
    line,
    status,
    tuner,
)
from tests.support.refusals import mentions, refuses
from trainers import TRAINERS, ConfigurationError, XGBoostTrainer


def test_a_strategy_of_a_users_own_is_attached_to_and_resumed_where_that_is_allowed(
    package_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = tuner(package_folder, line(package_folder), RANGES, **halves(package_folder, factor=3))
    assert [(bracket.rungs, bracket.sizes) for bracket in whole.plan().brackets] == [
        ((2, 4), (3, 1)),
        ((2, 4), (3, 1)),
        ((2, 4), (2, 1)),
    ]
    whole.fit(CHANNELS, job_name="whole")
    interrupted(tuner(package_folder, line(package_folder), RANGES, **halves(package_folder, factor=3)), at=9)
    sys.path.insert(0, str(package_folder))
    names = ("strategy", "shop.training:Halves", f"{package_folder}/shop/training.py")
    with refuses(ConfigurationError, field=("trainer", "shop.training:Line", *names), remedy="allow_code=True"):
        HyperparameterTuner.attach("job")
    assert hpo(monkeypatch, "resume", "job", "--set", "tuning.max_jobs=9") == 2
    mentions(capsys.readouterr().err, *names, "--allow-code")
    for limits in ({}, {"max_jobs": 9}):
        with refuses(ConfigurationError, field=names):
            drive(None, "job", console=Console(file=io.StringIO()), resume=True, limits=limits)
    assert not (package_folder / "ran").exists()
    assert status() == "Stopped"

    assert hpo(monkeypatch, "resume", "job", "--allow-code") == 0
    assert answer(package_folder, "job") == answer(package_folder, "whole")
    capsys.readouterr()
    assert hpo(monkeypatch, "describe", "job") == 0
    assert "attach('job', allow_code=True).best_estimator()" in capsys.readouterr().out
    attached = HyperparameterTuner.attach("job", allow_code=True)
    assert (type(attached.strategy).__qualname__, attached.strategy.options) == ("Halves", {"factor": 3})
    assert attached.strategy_config is None
    assert attached.plan() == whole.plan()
    assert attached.describe()["HyperParameterTuningJobConfig"]["Strategy"] == "shop.training:Halves"

    attached.resume(inputs=CHANNELS, max_jobs=10)
    longer = HyperparameterTuner.attach("job", allow_code=True)
    assert [bracket.sizes for bracket in longer.plan().brackets] == [(3, 1), (3, 1), (2, 1), (2, 1)]
    with Store() as store:
        trained = [trial.resource for trial in store.trials("job") if trial.number >= 0]
    assert (status(), sorted(trained)) == ("Completed", [2] * 6 + [4] * 4)


class Once(own_code.Halves):
    """A strategy whose plans are of no more than 8 trials; more of them follow by growing."""

    def plan(self, ranges: Mapping[str, ParameterRange], max_jobs: int, units: int | None) -> Plan:
        if max_jobs > 8:
            raise ConfigurationError(f"max_jobs is {max_jobs}; give 8 or less")
        return super().plan(ranges, max_jobs, units)


def test_the_brackets_of_a_job_that_was_raised_are_those_of_its_record(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/record.db"
    trainer = own_code.Line(scaling=HERE, hyperparameters={"steps": 4, "eta": 0.1})
    once: dict[str, Any] = {"strategy": Once(), "strategy_config": None, "max_jobs": 8}
    made = tuner(tmp_path, trainer, RANGES, **once, store=store)
    made.fit(CHANNELS, job_name="job")
    for more in (12, 14):
        HyperparameterTuner.attach("job", store=store, allow_code=True).resume(inputs=CHANNELS, max_jobs=more)
    again = HyperparameterTuner.attach("job", store=store, allow_code=True)
    assert (again.max_jobs, again.plan().trials) == (14, 14)
    assert again.plan().brackets[:4] == made.plan().brackets
    with refuses(ConfigurationError, field="max_jobs", value=14, remedy="8"):
        again.fit(CHANNELS, job_name="other")


class Off(own_code.Halves):
    """A strategy that miscounts: in its first brackets, or as they grow."""

    def __init__(self, *, first: int = 0, more: int = 0) -> None:
        super().__init__()
        self.first, self.more = first, more

    @property
    def options(self) -> dict[str, Any]:
        return {"first": self.first, "more": self.more}

    def plan(self, ranges: Mapping[str, ParameterRange], max_jobs: int, units: int | None) -> Plan:
        return super().plan(ranges, max_jobs + self.first, units)

    def grown(self, plan: Plan, max_jobs: int) -> Plan:
        return super().grown(plan, max_jobs + self.more)


@pytest.mark.parametrize("off", [-2, 1])
def test_a_strategy_that_lays_out_another_number_of_trials_is_named_before_one_starts(tmp_path: Path, off: int) -> None:
    trainer = own_code.Line(scaling=HERE, hyperparameters={"steps": 4, "eta": 0.1})
    named = ("strategy", f"{__name__}:Off", "max_jobs")
    with refuses(ConfigurationError, field=named, value=4 + off, remedy=("4", "plan()", "grown()")):
        tuner(tmp_path, trainer, RANGES, strategy=Off(first=off), strategy_config=None, max_jobs=4)
    store = f"sqlite:///{tmp_path}/record.db"
    made = tuner(tmp_path, trainer, RANGES, strategy=Off(more=off), strategy_config=None, max_jobs=4, store=store)
    made.fit(CHANNELS, job_name="job")
    with refuses(ConfigurationError, field=named, value=8 + off, remedy=("8", "plan()", "grown()")):
        made.resume(inputs=CHANNELS, max_jobs=8)
    with Store(store) as record:
        job = record.job("job")
    assert (job.status, job.spec["max_jobs"]) == ("Completed", 4)


def test_a_strategy_alone_is_asked_for_too(package_folder: Path) -> None:
    made = tuner(package_folder, XGBoostTrainer(scaling=HERE, hyperparameters={**STATIC, "num_round": 2}), RANGES)
    made.strategy, made.strategy_config = given(package_folder, "Halves")(), None
    made.fit(CHANNELS, job_name="job")
    with refuses(ConfigurationError, field=("job", "strategy"), value="shop.training:Halves", remedy="allow_code=True"):
        HyperparameterTuner.attach("job")
    again = tuner(package_folder, XGBoostTrainer(scaling=HERE, hyperparameters={**STATIC, "num_round": 2}), RANGES)
    again.latest_tuning_job = made.latest_tuning_job
    with refuses(ConfigurationError, field=("job", "strategy"), value="shop.training:Halves"):
        again.resume(max_jobs=5)
    assert not (package_folder / "ran").exists()


def test_what_a_strategy_of_a_users_own_says_is_said(package_folder: Path) -> None:
    made = tuner(
        package_folder, line(package_folder), {**RANGES, "steps": IntegerParameter(2, 4)}, **halves(package_folder)
    )
    made.fit(CHANNELS, job_name="job")
    printed = made._console.file.getvalue()  # type: ignore[attr-defined]
    announced, *others = [line for line in printed.splitlines() if "shop.training:Halves" in line]
    mentions(announced, "job", "8")
    mentions(" ".join(others), "warning", "steps", "shop.training:Halves")
    assert "compared with none" not in printed
    with Store() as store:
        assert {trial.resource for trial in store.trials("job") if trial.number >= 0} == {2, 4}
    made.max_jobs = 3
    made.fit(CHANNELS, job_name="other")
    assert "warning: the last trial is compared with none" in made._console.file.getvalue()  # type: ignore[attr-defined]
    short = given(package_folder, "Line")(scaling=HERE, hyperparameters={"steps": 1})
    with refuses(ConfigurationError, field="units", value=1, remedy="2"):
        tuner(package_folder, short, RANGES, **halves(package_folder))
    refused = "shop.training:Halves"
    with refuses(ConfigurationError, field="strategy_config", value=refused, remedy=("Hyperband", "ASHA")):
        tuner(package_folder, line(package_folder), RANGES, strategy=given(package_folder, "Halves")())
    with refuses(ConfigurationError, field=("early_stopping_type", "shop.training:Halves"), value="Auto", remedy="Off"):
        tuner(package_folder, line(package_folder), RANGES, **halves(package_folder), early_stopping_type="Auto")


def test_a_strategy_of_a_script_is_kept_from_other_processes(package_folder: Path) -> None:
    mine = type("Mine", (type(given(package_folder, "Halves")()),), {"__module__": "__main__"})
    made = tuner(package_folder, XGBoostTrainer(scaling=HERE, hyperparameters=STATIC), RANGES)
    made.strategy, made.strategy_config = mine(), None
    made.estimator = made.estimator.with_hyperparameters({"num_round": 2})
    with refuses(ConfigurationError, field="strategy", value="Mine", remedy=("training:Mine", "fit(wait=True)")):
        made.fit(CHANNELS, wait=False)


def test_a_trainer_and_a_strategy_are_registered_by_a_line_each(
    package_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No import path then stands in the record, and nothing has to be allowed."""
    monkeypatch.setitem(TRAINERS, "Line", "shop.training")
    monkeypatch.setitem(STRATEGIES, "Halves", "shop.training:Halves")
    monkeypatch.syspath_prepend(str(package_folder))
    search = {"strategy": import_module("shop.training").Halves(factor=3), "strategy_config": None, "max_jobs": 8}
    tuner(package_folder, line(package_folder), RANGES, **search).fit(CHANNELS, job_name="whole")
    interrupted(tuner(package_folder, line(package_folder), RANGES, **search), at=9)
    attached = HyperparameterTuner.attach("job")
    described = attached.describe()["HyperParameterTuningJobConfig"]
    assert (type(attached.estimator).__qualname__, described["Strategy"]) == ("Line", "Halves")
    assert attached.strategy.options == {"factor": 3}
    attached.resume()
    assert answer(package_folder, "job") == answer(package_folder, "whole")
    by_name = tuner(package_folder, line(package_folder), RANGES, strategy="Halves", strategy_config=None)
    assert [bracket.sizes for bracket in by_name.plan().brackets] == [(2, 1), (2, 1)]
    keys = {"strategy": "Halves", "strategy_options": {"factor": 4}, "hyperband": None}
    path = job_file(package_folder, tuning=keys, type="xgboost", hyperparameters={**STATIC, "num_round": 2})
    done = CliRunner().invoke(app, ["tune", path, "--set", "name=file"])
    assert done.exception is None, done.output
    with Store() as store:
        assert store.job("file").plan["brackets"] == [{"rungs": [1, 2], "sizes": [4, 1]}]


@pytest.mark.parametrize(
    ("tuning", "names"),
    [
        ({"strategy": "shop.training:Nowhere"}, ("shop.training:Nowhere", "module")),
        ({"strategy": "shop.training:Line"}, ("shop.training:Line", "hpo.strategies.Strategy")),
        ({"strategy_options": {"factr": 1}}, ("options", "shop.training:Halves", "{'factr': 1}")),
        ({"strategy": "shop training:Halves"}, ("tuning.strategy", "shop training:Halves", "Random", "Hyperband")),
        ({"strategy": "Random", "strategy_options": {"factor": 1}}, ("options", "Random", "{'factor': 1}")),
        ({"hyperband": {"max_resource": 4}}, ("hyperband", "strategy", "shop.training:Halves", "ASHA")),
    ],
)
def test_what_is_no_strategy_is_named(package_folder: Path, tuning: dict[str, Any], names: tuple[str, ...]) -> None:
    path = job_file(
        package_folder,
        type="xgboost",
        hyperparameters={**STATIC, "num_round": 2},
        tuning={"strategy": "shop.training:Halves", "hyperband": None, **tuning},
    )
    done = CliRunner().invoke(app, ["tune", path, "--allow-code"])
    assert isinstance(done.exception, ConfigurationError), done.output
    mentions(str(done.exception), *names)
