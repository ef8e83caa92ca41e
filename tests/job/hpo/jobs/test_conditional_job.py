"""A job with a hyperparameter that only some trials have: the trials, every form that shows them, and its doors."""

from __future__ import annotations

import io
import json
import math
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import optuna
import pandas
import pytest
from ray.train import ScalingConfig
from rich.console import Console
from typer.testing import CliRunner

from hpo import (
    Callback,
    CategoricalParameter,
    ContinuousParameter,
    HyperparameterTuner,
    HyperparameterTuningJobAnalytics,
    IntegerParameter,
    NormalParameter,
    WarmStartConfig,
)
from hpo.cli import app
from hpo.export import to_optuna, to_parquet
from hpo.record.store import Store, TrialRow
from hpo.report import JobData, job_page
from hpo.report.pictures.parallel import coordinates
from hpo.simulation import open_curves
from hpo.strategies import observations_in
from tests.support.driving import CHANNELS, Counting, answer
from tests.support.refusals import mentions, refuses
from trainers import ConfigurationError, XGBoostTrainer

RANGES = {
    "booster": CategoricalParameter(["gbtree", "dart"]),
    "rate_drop": ContinuousParameter(0.1, 0.5, step=0.1, when={"booster": ["dart"]}),
    "normalize_type": CategoricalParameter(["tree", "forest"], when={"booster": ["dart"]}),
    "eta": NormalParameter(-1, 0.5, "Logarithmic", max_value=1),
    "max_depth": IntegerParameter(2, 6, step=2),
}
DART = {"rate_drop", "normalize_type"}


def tuner(folder: Path, callbacks: tuple[Callback, ...] = (), **options: Any) -> HyperparameterTuner:
    settings = {"strategy": "Bayesian", "max_jobs": 14, "random_seed": 3, "ranges": RANGES, **options}
    return HyperparameterTuner(
        XGBoostTrainer(
            scaling=ScalingConfig(num_workers=0),
            hyperparameters={
                "objective": "binary:logistic",
                "eval_metric": "auc",
                "num_round": 3,
                "rate_drop": 0.0,
                "verbosity": 0,
            },
        ),
        "validation:auc",
        settings.pop("ranges"),
        storage_path=str(folder),
        store=f"sqlite:///{folder}/record.db",
        callbacks=callbacks,
        console=Console(file=io.StringIO()),
        **settings,
    )


def rows(folder: Path, name: str) -> list[TrialRow]:
    with Store(f"sqlite:///{folder}/record.db") as store:
        return [row for row in store.trials(name) if row.number >= 0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the record of a job is, whose last trials a model suggested."""
    folder = tmp_path_factory.mktemp("conditional")
    tuner(folder).fit(CHANNELS, job_name="job")
    return folder


@pytest.fixture(scope="module")
def url(folder: Path) -> str:
    return f"sqlite:///{folder}/record.db"


def test_trials_have_what_their_booster_calls_for(folder: Path) -> None:
    tried = [row.hyperparameters for row in rows(folder, "job")]
    assert len(tried) == 14
    assert {each["booster"] for each in tried} == {"gbtree", "dart"}
    for each in tried:
        assert each.keys() == {"booster", "eta", "max_depth", *(DART if each["booster"] == "dart" else ())}
        assert each.get("rate_drop", 0.1) in (0.1, 0.2, 0.3, 0.4, 0.5)
        assert each["max_depth"] in (2, 4, 6)


def test_a_job_that_is_attached_to_and_resumed_has_the_same_answer(folder: Path, url: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        tuner(folder, (Counting(33, lambda: signal.raise_signal(signal.SIGINT)),)).fit(CHANNELS, job_name="broken")
    again = HyperparameterTuner.attach("broken", store=url)
    assert again.settings.ranges == RANGES
    again.resume(inputs=CHANNELS)
    assert answer(folder, "broken") == answer(folder, "job")


def test_a_grid_has_each_combination_once(tmp_path: Path) -> None:
    ranges = {name: bounds for name, bounds in RANGES.items() if name != "eta"}
    grid = tuner(tmp_path, ranges=ranges, strategy="Grid", max_jobs=None)
    assert grid.plan().trials == 3 + 3 * 5 * 2
    with refuses(ConfigurationError, field=("max_jobs", "Grid"), value=60, remedy="33"):
        tuner(tmp_path, ranges=ranges, strategy="Grid", max_jobs=60)


def test_points_choose_a_branch(tmp_path: Path) -> None:
    points = [{"booster": "dart", "rate_drop": 0.3}, {"booster": "gbtree"}]
    tuner(tmp_path, max_jobs=3, points_to_evaluate=points).fit(CHANNELS, job_name="job")
    first, second, _ = [row.hyperparameters for row in rows(tmp_path, "job")]
    assert first["rate_drop"] == 0.3
    assert first.keys() >= DART
    assert not second.keys() & DART


def test_the_frame_has_a_column_for_each_and_nothing_where_it_is_not_there(url: str, folder: Path) -> None:
    frame = HyperparameterTuningJobAnalytics("job", store=url).dataframe()
    assert list(frame)[: len(RANGES)] == list(RANGES)
    expected = [row.hyperparameters.get("rate_drop", math.nan) for row in rows(folder, "job")]
    pandas.testing.assert_series_equal(frame["rate_drop"], pandas.Series(expected, name="rate_drop"))


def test_describe_says_step_distribution_and_condition(url: str) -> None:
    described = HyperparameterTuner.attach("job", store=url).describe()
    kinds = described["HyperParameterTuningJobConfig"]["ParameterRanges"]
    named = {entry["Name"]: entry for entries in kinds.values() for entry in entries}
    assert named.keys() == RANGES.keys()
    assert named["rate_drop"] == {
        "Name": "rate_drop",
        "MinValue": "0.1",
        "MaxValue": "0.5",
        "ScalingType": "Auto",
        "Step": "0.1",
        "When": {"booster": ["dart"]},
    }
    assert {"Mean", "StandardDeviation"} <= named["eta"].keys()
    assert "When" not in named["booster"]


def test_the_command_shows_them(url: str) -> None:
    described = CliRunner().invoke(app, ["describe", "job", "--store", url], env={"COLUMNS": "200"}).output
    of_range = {line.split()[0]: line for line in reversed(described.splitlines()) if line.strip()}
    mentions(of_range["rate_drop"], "0.1", "0.5", "booster", "dart")
    assert of_range["rate_drop"].count("0.1") == 2, "its step"
    mentions(of_range["eta"], "-1", "0.5")
    trials = CliRunner().invoke(app, ["trials", "job", "--store", url, "--json"])
    assert trials.exit_code == 0
    listed = json.loads(trials.output)
    shown = listed["trials"] if isinstance(listed, Mapping) else listed
    assert {"rate_drop" in each["HyperParameters"] for each in shown} == {True, False}
    assert CliRunner().invoke(app, ["trials", "job", "--store", url]).exit_code == 0


def test_files_and_studies_have_them(url: str, folder: Path, tmp_path: Path) -> None:
    parquet = pandas.read_parquet(to_parquet("job", tmp_path / "out", store=url)[0])
    study = to_optuna("job", f"sqlite:///{tmp_path}/study.db", store=url)
    tried = [row.hyperparameters for row in rows(folder, "job")]
    of_files = parquet[parquet.number >= 0].sort_values("number")["hyperparameters.rate_drop"]
    assert list(of_files.isna()) == ["rate_drop" not in each for each in tried]
    assert [trial.params for trial in study.trials] == tried
    assert all(trial.distributions.keys() == trial.params.keys() for trial in study.trials)
    assert study.trials[0].distributions["max_depth"] == optuna.distributions.IntDistribution(2, 6, step=2)


def test_the_page_has_a_line_a_trial_and_says_what_is_not_there(url: str) -> None:
    with Store(url) as store:
        data = JobData.read(store, "job")
        page = job_page(data).html()
    axes, lines = coordinates(data)
    assert len(lines) == 14
    place = [axis.name for axis in axes].index("rate_drop")
    at, label = axes[place].ticks[0]
    assert at == 0.0
    assert label.strip("-0123456789.")  # In words, not a number.
    for line in lines:
        drop = line.trial.hyperparameters.get("rate_drop")
        assert line.places[place] == pytest.approx(0.0 if drop is None else 0.15 + 0.85 * (drop - 0.1) / 0.4)
    row = re.search(r"<tr><th[^>]*>rate_drop</th>.*?</tr>", page)
    assert row, page
    mentions(row[0], "0.1", "0.5", "booster", "dart")


def test_a_child_learns_from_them_also_with_other_conditions(folder: Path) -> None:
    """Where the child asks for a drop of each, the trials without one had the trainer's own."""
    tried = [row.hyperparameters for row in rows(folder, "job")]
    always = {
        **RANGES,
        "rate_drop": ContinuousParameter(0, 0.5),
        "normalize_type": CategoricalParameter(["tree"], when={"booster": ["dart"]}),
    }
    for name, ranges in (("child", RANGES), ("other", always)):
        warm = WarmStartConfig("IdenticalDataAndAlgorithm", ["job"])
        tuner(folder, max_jobs=1, warm_start_config=warm, ranges=ranges).fit(CHANNELS, job_name=name)
    with Store(f"sqlite:///{folder}/record.db") as store:
        learned = [
            [each.hyperparameters for each in observations_in(store.job(name).spec)] for name in ("child", "other")
        ]
    assert learned[0] == tried
    assert learned[1] == [{"rate_drop": 0.0, **each} for each in tried if each.get("normalize_type", "tree") == "tree"]


def test_its_curves_are_those_of_what_was_there(url: str, folder: Path) -> None:
    curves = open_curves("job:job", RANGES, "validation:auc", url)
    tried = [row.hyperparameters for row in rows(folder, "job")]
    assert curves.configurations == tried
    assert [curves.nearest(each) for each in tried] == list(range(14))
    dart = next(each for each in tried if each["booster"] == "dart")
    other = {name: value for name, value in dart.items() if name not in DART} | {"booster": "gbtree"}
    assert curves.configurations[curves.nearest(other)]["booster"] == "gbtree"
