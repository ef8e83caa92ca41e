"""Warm start: what a new job learns of earlier ones, in this process, with real trainings; and what is refused."""

from __future__ import annotations

import io
import math
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hpo import ContinuousParameter, HyperparameterTuner, IntegerParameter, WarmStartConfig, WarmStartTypes
from hpo.observers import show_summary
from hpo.record import ReportRow, Store, TrialRow, run_name
from hpo.report.data import JobData
from hpo.report.page.result import _used
from hpo.strategies.warm_start import EARLIER, earlier_best, earlier_results, observations_in
from hpo.suggestions import Observation
from hpo.suggestions.observation import normal_scores, scores_of
from tests.support.boosting import CHANNELS
from tests.support.listed import hpo
from tests.support.refusals import mentions, missing_names, refuses, refuses_each
from trainers import ScalingConfig, XGBoostTrainer
from trainers.errors import ConfigurationError

IDENTICAL, TRANSFER = "IdenticalDataAndAlgorithm", "TransferLearning"
RANGES = {"eta": ContinuousParameter(0.01, 1), "max_depth": IntegerParameter(1, 8)}
STATIC = {"objective": "binary:logistic", "eval_metric": "auc", "num_round": 3}


def make(store: str, *, static: dict[str, Any] | None = None, **options: Any) -> HyperparameterTuner:
    one_thread = ScalingConfig(num_workers=0, resources_per_worker={"CPU": 1})
    trainer = XGBoostTrainer(scaling=one_thread, hyperparameters=STATIC if static is None else static)
    ranges = options.pop("ranges", RANGES)
    settings = {"strategy": "Bayesian", "max_jobs": 10, "random_seed": 5, **options}
    return HyperparameterTuner(trainer, "validation:auc", ranges, store=store, console=False, **settings)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("warm")
    url = f"sqlite:///{folder}/record.db"
    make(url, storage_path=str(folder / "jobs")).fit(CHANNELS, job_name="parent")
    return url


def fitted(store: str, name: str, folder: Path, **options: Any) -> list[dict[str, Any]]:
    """The configurations of a job, in their order."""
    make(store, storage_path=str(folder), **options).fit(CHANNELS, job_name=name)
    return configurations(store, name)


def configurations(store: str, name: str) -> list[dict[str, Any]]:
    with Store(store) as record:
        trials = sorted(record.trials(name), key=lambda trial: trial.number)
    return [trial.hyperparameters for trial in trials if trial.number >= 0]


@pytest.mark.parametrize("kind", [IDENTICAL, TRANSFER])
def test_a_model_suggests_the_first_trial_already(store: str, kind: str, tmp_path: Path) -> None:
    warm = WarmStartConfig(kind, ["parent"])
    tried = fitted(store, f"child-{kind[:5]}".lower(), tmp_path, warm_start_config=warm, max_jobs=2)
    assert tried[0] not in configurations(store, "parent")
    with Store(store) as record:
        spec = record.job(f"child-{kind[:5]}".lower()).spec
    learned = observations_in(spec)
    assert len(learned) == 10
    assert {each.job for each in learned} == {"parent" if kind == TRANSFER else ""}
    assert [each.hyperparameters for each in learned] == configurations(store, "parent")
    assert all(math.isfinite(each.value) and each.resource == 3 for each in learned)


def test_it_is_recorded_described_and_attached_to(store: str, tmp_path: Path) -> None:
    warm = WarmStartConfig(WarmStartTypes.TRANSFER_LEARNING, {"parent"})
    fitted(store, "recorded", tmp_path, warm_start_config=warm, max_jobs=1)
    tuner = HyperparameterTuner.attach("recorded", store=store)
    assert tuner.describe()["WarmStartConfig"] == {
        "WarmStartType": TRANSFER,
        "ParentHyperParameterTuningJobs": [{"HyperParameterTuningJobName": "parent"}],
    }
    again = tuner.settings.warm_start_config
    assert again is not None
    assert again.to_json() == warm.to_json()


def test_a_job_that_goes_on_keeps_what_it_began_with(store: str, tmp_path: Path) -> None:
    """Its parent is deleted before it gets two more trials; the undisturbed job has them from the start."""
    fitted(store, "brief", tmp_path / "brief", max_jobs=9, random_seed=8)
    warm = WarmStartConfig(IDENTICAL, ["brief"])
    expected = fitted(store, "whole", tmp_path / "whole", warm_start_config=warm, max_jobs=3)
    fitted(store, "cut", tmp_path / "cut", warm_start_config=warm, max_jobs=1)
    with Store(store) as record:
        record.delete_job("brief")
    HyperparameterTuner.attach("cut", store=store).resume(inputs=CHANNELS, max_jobs=3)
    assert configurations(store, "cut") == expected


def with_one_trial(store: str, name: str, value: float) -> None:
    """A parent whose only trial came to a value."""
    tried = {"eta": 0.5, "max_depth": 8}
    with Store(store) as record:
        record.create_job(replace(record.job("parent"), name=name, status="InProgress"))
        with record.writer(name) as writer:
            row = TrialRow(job=name, trial_id=f"{name}-000", number=0, hyperparameters=tried, resource=3)
            writer.trial(replace(row, status="Completed", objective=value, best_objective=value, best_resource=3))
            writer.job(status="Completed", ended_at=1.0)


def test_a_parents_values_are_those_that_it_compared_and_forks_are_left_out(store: str) -> None:
    """By the best, the value at a rung is the best so far; a fork has its value from its parent's hyperparameters."""
    tried = {"eta": 0.5, "max_depth": 8}
    with Store(store) as record:
        whole = record.job("parent")
        spec = {**whole.spec, "objective_value": "best"}
        plan = {**whole.plan, "brackets": [{"rungs": [1, 2, 3], "sizes": [1, 1, 1]}]}
        record.create_job(replace(whole, name="by-best", status="InProgress", spec=spec, plan=plan))
        with record.writer("by-best") as writer:
            row = TrialRow(job="by-best", trial_id="a", number=0, hyperparameters=tried, resource=3)
            ended = {"status": "Completed", "objective": 0.7, "best_objective": 0.9, "best_resource": 1}
            writer.trial(replace(row, **ended))
            writer.trial(replace(row, trial_id="b", number=1, parent="a", parent_resource=1, **ended))
            for step, value in ((1, 0.9), (2, 0.6), (3, 0.7)):
                writer.report(ReportRow(job="by-best", trial_id="a", step=step, objective=value, at=1.0))
            writer.job(status="Completed", ended_at=1.0)
        results = earlier_results(WarmStartConfig(TRANSFER, ["by-best"]), spec, record, trains=False)
        record.delete_job("by-best")
    assert [(each["resource"], each["value"]) for each in results] == [(1, 0.9), (2, 0.9), (3, 0.9)]


@pytest.mark.parametrize("better", ["first", "second"])
def test_of_two_parents_whose_trials_have_the_same_numbers_the_best_is_the_better_one(better: str, store: str) -> None:
    names = {name: f"{name}-of-{better}" for name in ("first", "second")}
    for name, whole in names.items():
        with_one_trial(store, whole, 0.999 if name == better else 0.5)
    with Store(store) as record:
        best = earlier_best(WarmStartConfig(IDENTICAL, names.values()), record)
    assert best is not None
    assert (best["job"], best["objective"]) == (names[better], 0.999)


@pytest.mark.parametrize("better", [True, False])
def test_the_best_of_a_job_and_its_parents_is_named(better: bool, store: str, tmp_path: Path) -> None:
    parent, child = f"parent-{better}", f"child-{better}"
    with_one_trial(store, parent, 0.999 if better else 0.001)
    warm = WarmStartConfig(IDENTICAL, [parent])
    tuner = make(store, storage_path=str(tmp_path), warm_start_config=warm, max_jobs=1)
    tuner.fit(CHANNELS, job_name=child)
    with Store(store) as record:
        record.delete_job(parent)  # What is known of it is the job's own.
    described = tuner.describe()
    overall = described["OverallBestTrainingJob"]
    own = described["BestTrainingJob"]["TrainingJobName"]
    assert own == tuner.best_training_job()
    assert overall["TrainingJobName"] == tuner.overall_best_training_job() == (f"{parent}-000" if better else own)
    assert overall["TuningJobName"] == (parent if better else child)
    summary = described["Summary"]["overall_best"]
    assert summary["trial"] == overall["TrainingJobName"]
    assert summary["value"] == overall["FinalHyperParameterTuningJobObjectiveMetric"]["Value"]
    console = Console(file=io.StringIO(), width=200)
    console.print(show_summary(child, "Completed", "validation:auc", described["Summary"], verbose=True))
    [line] = [text for text in console.file.getvalue().splitlines() if "overall best" in text]  # type: ignore[attr-defined]
    with Store(store) as record:
        page = JobData.read(record, child)
    for said in (line, dict(_used(page))["overall best"]):
        name = run_name(overall["TrainingJobName"])
        whose = mentions(said, name).replace(name, "")
        assert missing_names(whose, parent) == ([] if better else [parent])


def test_of_other_data_the_best_is_no_overall_best(store: str, tmp_path: Path) -> None:
    warm = WarmStartConfig(TRANSFER, ["parent"])
    tuner = make(store, storage_path=str(tmp_path), warm_start_config=warm, max_jobs=1)
    tuner.fit(CHANNELS, job_name="elsewhere")
    assert "OverallBestTrainingJob" not in tuner.describe()
    assert tuner.overall_best_training_job() == tuner.best_training_job() == "elsewhere-000"


def test_sagemaker_s_methods_make_tuners_with_the_last_job_as_parent(store: str) -> None:
    tuner = HyperparameterTuner.attach("parent", store=store)
    same = tuner.identical_dataset_and_algorithm_tuner(additional_parents=["other"])
    assert same.settings.warm_start_config is not None
    assert same.settings.warm_start_config.to_json() == {"warm_start_type": IDENTICAL, "parents": ["other", "parent"]}
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters={**STATIC, "num_round": 9})
    other = tuner.transfer_learning_tuner(estimator=trainer)
    assert other.settings.warm_start_config is not None
    assert other.settings.warm_start_config.type is WarmStartTypes.TRANSFER_LEARNING
    assert other.settings.estimator is trainer
    assert other.settings.ranges == tuner.settings.ranges


def test_results_of_another_job_rank_among_themselves() -> None:
    values = {"a": [0.1, 0.3], "": [5.0, 7.0, 6.0]}
    seen = [
        Observation(hyperparameters={"x": value}, resource=1, value=value, job=job)
        for job, each in values.items()
        for value in each
    ]
    scores = scores_of(seen, maximize=True)
    assert list(scores[:2]) == list(normal_scores([0.1, 0.3], maximize=True))
    assert list(scores[2:]) == list(normal_scores([5.0, 7.0, 6.0], maximize=True))


def test_what_does_not_fit_is_refused_before_anything_starts(store: str, tmp_path: Path) -> None:
    more = {**RANGES, "gamma": ContinuousParameter(0, 1)}
    learners = ("Bayesian", "Hyperband", "ASHA", "suggestions", "model")
    cases: list[tuple[dict[str, Any], tuple[str, list[str]], tuple[object, ...]]] = [
        ({}, (TRANSFER, ["perent"]), ("warm_start_config", "'perent'", "record.db", "'parent'")),
        (
            {"objective_type": "Minimize"},
            (TRANSFER, ["parent"]),
            ("'parent'", "objective_type", "'Maximize'", "'Minimize'"),
        ),
        ({"ranges": more}, (TRANSFER, ["parent"]), ("'parent'", "gamma")),
        ({"ranges": {"eta": RANGES["eta"]}}, (TRANSFER, ["parent"]), ("'parent'", "max_depth")),
        (
            {"ranges": {**RANGES, "eta": ContinuousParameter(1.5, 2)}},
            (IDENTICAL, ["parent"]),
            ("warm_start_config", "parent", "ranges"),
        ),
        (
            {"static": {**STATIC, "num_round": 4}},
            (IDENTICAL, ["parent"]),
            ("warm_start_config", "parent", "hyperparameters"),
        ),
        ({"strategy": "Random"}, (TRANSFER, ["parent"]), ("warm_start_config", "'Random'", *learners)),
    ]

    def fit(options: dict[str, Any], warm: tuple[str, list[str]]) -> None:
        tuner = make(store, warm_start_config=WarmStartConfig(*warm), storage_path=str(tmp_path), **options)
        tuner.fit(CHANNELS)

    refuses_each(((partial(fit, options, warm), names) for options, warm, names in cases), ConfigurationError)
    assert not list(tmp_path.rglob("*.ubj"))


JOB = """
name: misfit
store: "{store}"
storage_path: {folder}/jobs
data: {{channels: {{train: {{path: {folder}/train.csv}}, validation: {{path: {folder}/validation.csv}}}}}}
trainer: {{type: xgboost, num_workers: 0, hyperparameters: {{objective: "binary:logistic", eval_metric: auc}}}}
tuning:
  objective_metric_name: validation:auc
  strategy: Hyperband
  hyperband: {{max_resource: 3}}
  warm_start: {{type: TransferLearning, parents: [parent]}}
  ranges: {{eta: {{type: continuous, min: 0.01, max: 1}}, gamma: {{type: continuous, min: 0, max: 1}}}}
"""


def test_a_parent_with_other_hyperparameters_is_refused_from_a_job_file(store: str, tmp_path: Path) -> None:
    for name, frame in CHANNELS.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    job = tmp_path / "job.yaml"
    job.write_text(JOB.format(store=store, folder=tmp_path), encoding="utf-8")
    said = hpo("tune", str(job), code=2, columns=500)
    mentions(said, "warm_start_config", "'parent'", "gamma")
    with Store(store) as record:
        assert "misfit" not in [each.name for each in record.jobs()]


def test_identical_asks_for_the_same_data_and_a_parent_that_has_ended(store: str, tmp_path: Path) -> None:
    fewer = {name: frame[:-1] for name, frame in CHANNELS.items()}
    tuner = make(store, warm_start_config=WarmStartConfig(IDENTICAL, ["parent"]), storage_path=str(tmp_path))
    with refuses(ConfigurationError, field=("parent", "data"), remedy="TransferLearning"):
        tuner.fit(fewer)
    for status in ("InProgress", "Stopping"):
        with Store(store) as record:
            record.create_job(replace(record.job("parent"), name=status, status=status))
        tuner = make(store, warm_start_config=WarmStartConfig(IDENTICAL, [status]), storage_path=str(tmp_path))
        with refuses(ConfigurationError, field="warm_start_config", value=status, remedy=("wait", "stop")):
            tuner.fit(CHANNELS)


def test_of_a_parent_with_very_many_reports_few_are_in_memory(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parent of 200,000 reports took 121 MB and 30 s; it takes 3 MB and 1.2 s."""
    with Store(store) as record:
        job, trial = record.job("parent"), record.trials("parent")[1]
        warm = WarmStartConfig(TRANSFER, ["parent"])
        read, rung = 0, max(job.plan["brackets"][0]["rungs"])

        def curves(name: str) -> Iterator[tuple[str, int, float | None]]:
            nonlocal read
            for step in range(1, 100_001):
                read += 1
                yield trial.trial_id, step, None if step % 2 else 0.5
            yield "of-no-trial", 1, 0.1

        before = earlier_results(warm, job.spec, record)
        monkeypatch.setattr(record, "curves", curves)
        monkeypatch.setattr(record, "trials", lambda name: [replace(trial, resource=10**6)])
        tracemalloc.start()
        found = earlier_results(warm, job.spec, record)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert read == 100_000
    assert [each["resource"] for each in found] == [rung, 10**6]
    assert len(before) == 10
    assert most < 1 << 20


def test_a_wrong_configuration_names_its_argument() -> None:
    cases: list[tuple[tuple[Any, Any], tuple[object, ...]]] = [
        (("Transfer", ["a"]), ("warm_start_type", "'Transfer'", IDENTICAL, TRANSFER)),
        ((TRANSFER, []), ("parents", 0, 5)),
        ((TRANSFER, list("abcdef")), ("parents", 6, 5)),
        ((TRANSFER, [1]), ("parents", [1], "names")),
        ((TRANSFER, [["a"]]), ("parents", [["a"]], "names")),
        ((TRANSFER, None), ("parents", None, "names")),
    ]
    refuses_each(((partial(WarmStartConfig, *given), names) for given, names in cases), ConfigurationError)


def test_a_record_without_a_word_of_it_has_nothing_earlier() -> None:
    assert observations_in({}) == []
    row = {"hyperparameters": {"x": 1}, "resource": 2, "value": None, "job": "a"}
    assert math.isnan(observations_in({EARLIER: [row]})[0].value)
