"""Whole tuning jobs on a real cluster, through the public Python API."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hpo import (
    CategoricalParameter,
    ContinuousParameter,
    HyperparameterTuner,
    HyperparameterTuningJobAnalytics,
    IntegerParameter,
)
from hpo.record.store import Store
from hpo.strategies.hyperband import lay_out
from tests.support.boosting import CHANNELS, RANGES, STATIC, make
from tests.support.processes import printed
from tests.support.refusals import mentions, missing_names, refuses, refuses_each
from trainers import ConfigurationError, DataError, WarmbandError, XGBoostTrainer

WORKERS = 2


@pytest.fixture(scope="module")
def job(ray_cluster: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[HyperparameterTuner, str, str]:
    """The job of the README, run once, one trial at a time; with what it printed, and the URL of its record."""
    folder = tmp_path_factory.mktemp("job")
    url = f"sqlite:///{folder}/warmband.db"
    printed = io.StringIO()
    tuner = make(WORKERS, store=url, storage_path=str(folder / "models"), console=Console(file=printed, width=120))
    tuner.fit(CHANNELS, wait=True)
    return tuner, printed.getvalue(), url


@pytest.mark.ray
def test_the_job_is_described_as_users_know_it(job: tuple[HyperparameterTuner, str, str]) -> None:
    tuner, _, _ = job
    described = tuner.describe()
    assert described["HyperParameterTuningJobStatus"] == "Completed"
    assert described["TrainingJobStatusCounters"]["Completed"] == 8
    assert described["TrainingJobStatusCounters"]["Stopped"] == 22
    assert described["HyperParameterTuningJobConfig"]["StrategyConfig"] == {
        "HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": 30}
    }
    best = described["BestTrainingJob"]
    assert best["TrainingJobName"] == tuner.best_training_job()
    assert 0.5 < best["FinalHyperParameterTuningJobObjectiveMetric"]["Value"] < 1
    assert set(best["TunedHyperParameters"]) == set(RANGES)


@pytest.mark.ray
def test_attach_restores_everything_from_another_process(job: tuple[HyperparameterTuner, str, str]) -> None:
    tuner, _, url = job
    code = f"""
        from hpo import HyperparameterTuner, HyperparameterTuningJobAnalytics
        tuner = HyperparameterTuner.attach({tuner.latest_tuning_job.name!r}, store={url!r})
        print(tuner.describe()["BestTrainingJob"]["FinalHyperParameterTuningJobObjectiveMetric"]["Value"])
        print(tuner.best_training_job())
        print(sorted(tuner.hyperparameter_ranges()["ContinuousParameterRanges"], key=str)[0])
        frame = HyperparameterTuningJobAnalytics({tuner.latest_tuning_job.name!r}, store={url!r}).dataframe()
        print(frame.sort_values("FinalObjectiveValue", ascending=False)["TrainingJobName"].iloc[0])
    """
    value, best, _, first = printed(code).splitlines()
    assert float(value) == tuner.describe()["BestTrainingJob"]["FinalHyperParameterTuningJobObjectiveMetric"]["Value"]
    assert best == first == tuner.best_training_job()


@pytest.mark.ray
def test_attach_restores_what_the_tuner_was_made_with(job: tuple[HyperparameterTuner, str, str]) -> None:
    tuner, _, url = job
    again = HyperparameterTuner.attach(tuner.latest_tuning_job.name, store=url)
    for field in (
        "strategy",
        "max_jobs",
        "max_parallel_jobs",
        "objective_type",
        "random_seed",
        "objective_metric_name",
    ):
        assert getattr(again, field) == getattr(tuner, field)
    assert again.hyperparameter_ranges() == tuner.hyperparameter_ranges()
    assert again.estimator.hyperparameters == tuner.estimator.hyperparameters
    assert again.estimator.workers == WORKERS
    assert again.plan() == tuner.plan()


def test_attach_keeps_scaling_types_and_categorical_types(home: Path) -> None:
    tuner = make(workers=40, max_parallel_jobs=4)
    tuner.ranges = {
        "eta": ContinuousParameter(0.001, 1, "Logarithmic"),
        "tree_method": CategoricalParameter(["hist", "approx"]),
        "validate_parameters": CategoricalParameter([0, "1", None, True]),
    }
    from hpo.jobs.files.inputs import record_inputs
    from trainers.channels import open_channels

    with Store() as store:
        from hpo.record.store import JobRow

        spec = tuner.settings.to_json(record_inputs(open_channels(CHANNELS), str(home)), 5)
        store.create_job(JobRow(name="a-job", created_at=1.0, spec=spec))
    again = HyperparameterTuner.attach("a-job")
    assert again.ranges == tuner.ranges
    assert (again.random_seed, again.max_parallel_jobs) == (5, 4)


@pytest.mark.ray
def test_analytics_have_the_columns_users_know_and_more(job: tuple[HyperparameterTuner, str, str]) -> None:
    tuner, _, url = job
    frame = HyperparameterTuningJobAnalytics(tuner.latest_tuning_job.name, store=url).dataframe()
    known = ["TrainingJobName", "TrainingJobStatus", "FinalObjectiveValue", "TrainingStartTime", "TrainingEndTime"]
    assert list(frame.columns)[: len(RANGES) + 6] == [*RANGES, *known, "TrainingElapsedTimeSeconds"]
    assert len(frame) == 30
    assert frame["max_depth"].dtype.kind == "i"
    assert frame["Resource"].sum() == 334
    assert (frame["BilledWorkerSeconds"] > 0).all()
    curve = tuner.analytics().curve(tuner.best_training_job())
    assert list(curve.index) == list(range(1, len(curve) + 1))
    final = frame.set_index("TrainingJobName").loc[tuner.best_training_job(), "FinalObjectiveValue"]
    assert curve["validation:auc"].iloc[-1] == final


@pytest.mark.ray
def test_the_best_model_loads_as_a_booster_and_scores_what_was_recorded(
    job: tuple[HyperparameterTuner, str, str],
) -> None:
    import xgboost
    from sklearn.metrics import roc_auc_score

    tuner, _, _ = job
    best = tuner.best_estimator()
    booster = best.model()
    assert isinstance(booster, xgboost.Booster)
    validation = CHANNELS["validation"]
    predicted = booster.predict(xgboost.DMatrix(validation.drop(columns="y")))
    recorded = tuner.describe()["BestTrainingJob"]["FinalHyperParameterTuningJobObjectiveMetric"]["Value"]
    assert roc_auc_score(validation["y"], predicted) == pytest.approx(recorded, abs=1e-12)
    assert best.units == booster.num_boosted_rounds()


@pytest.mark.ray
def test_it_prints_the_plan_before_and_the_cost_after(job: tuple[HyperparameterTuner, str, str]) -> None:
    tuner, printed, _ = job
    lines = printed.splitlines()
    plan, used = (line for line in lines if not missing_names(line, 334, 900))
    mentions(plan, 30, "37%")
    assert any(not missing_names(line, "warning", "num_round") for line in lines[lines.index(plan) :])
    mentions(used, "37.1%")
    mentions(printed, "starting", "training", "checkpointing", "idle", "un-tuned", "wall", tuner.best_training_job())


@pytest.mark.ray
def test_the_ledger_is_the_time_that_gangs_were_held(job: tuple[HyperparameterTuner, str, str]) -> None:
    tuner, _, url = job
    with Store(url) as store:
        ledger = store.ledger(tuner.latest_tuning_job.name)
        summary = store.job(tuner.latest_tuning_job.name).summary
    assert sum(entry.worker_seconds for entry in ledger) == pytest.approx(sum(summary["worker_seconds"].values()))
    longest = WORKERS * summary["gangs"] * summary["wall_seconds"]
    assert 0 < sum(summary["worker_seconds"].values()) <= longest


@pytest.mark.ray
def test_several_workers_decide_as_one_process_does(job: tuple[HyperparameterTuner, str, str], tmp_path: Path) -> None:
    tuner, _, url = job
    in_hand = make(workers=0, store=f"sqlite:///{tmp_path}/store.db", storage_path=str(tmp_path))
    in_hand.fit(CHANNELS, job_name=tuner.latest_tuning_job.name)
    with Store(url) as several, Store(f"sqlite:///{tmp_path}/store.db") as none:
        trials, expected = (store.trials(tuner.latest_tuning_job.name) for store in (several, none))
    assert {trial.trial_id: trial.resource for trial in trials} == {
        trial.trial_id: trial.resource for trial in expected
    }
    assert tuner.best_training_job() == in_hand.best_training_job()
    assert [trial.objective for trial in trials] == pytest.approx([trial.objective for trial in expected], abs=1e-3)


def test_random_runs_each_trial_for_its_own_rounds() -> None:
    tuner = make(workers=0, strategy="Random", strategy_config=None, max_jobs=3)
    tuner.ranges = {"num_round": IntegerParameter(3, 9), "eta": ContinuousParameter(0.1, 1)}
    tuner.fit(CHANNELS)
    frame = tuner.analytics().dataframe()
    assert list(frame["Resource"]) == list(frame["num_round"])
    assert set(frame["TrainingJobStatus"]) == {"Completed"}


def test_a_job_whose_every_trial_fails_is_failed_with_the_trainers_words() -> None:
    tuner = make(workers=0, max_jobs=3)
    tuner.ranges = {"updater": CategoricalParameter(["no_updater"])}
    with refuses(WarmbandError, field="updater", value="no_updater", remedy="XGBoostError") as raised:
        tuner.fit(CHANNELS)
    name = tuner.latest_tuning_job.name
    mentions(str(raised.value), name, f"{name}-000")
    assert tuner.describe()["HyperParameterTuningJobStatus"] == "Failed"
    with refuses(WarmbandError, field=("best", name)):
        tuner.best_training_job()


def test_a_wrong_value_is_named_before_anything_starts() -> None:
    refuses_each(
        [
            (lambda: make(strategy="Hyprband"), ("strategy", "Hyprband", "Hyperband")),
            (lambda: make(strategy="Random"), ("strategy_config", "Hyperband", "Random")),
            (lambda: make(early_stopping_type="Auto"), ("early_stopping_type", "Auto", "Hyperband", "Off")),
            (lambda: make(objective_type="maximise"), ("objective_type", "maximise", "Maximize")),
            (lambda: make(objective_value="first"), ("objective_value", "first", "last", "best")),
            (lambda: make(max_jobs=0), ("max_jobs", 0, 1)),
            (lambda: make(random_seed=-5), ("random_seed", -5, 0)),
            (lambda: make(max_runtime_in_seconds=-5), ("max_runtime_in_seconds", -5, 1)),
            (lambda: make(max_wait=0), ("max_wait", 0, 1)),
            (lambda: make(max_wait=5, max_runtime_in_seconds=6), ("max_wait", 5, "max_runtime_in_seconds", 6)),
            (lambda: make(max_parallel_jobs=2.5), ("max_parallel_jobs", 2.5, 1)),
            (lambda: make(warm_start_config="x"), ("warm_start_config", "x", "WarmStartConfig")),
            (lambda: make(metric_definitions=[{"Name": "x", "Regex": "y"}]), ("metric_definitions",)),
        ],
        ConfigurationError,
    )


@pytest.mark.parametrize(
    ("channels", "names"),
    [
        ({"trian": CHANNELS["train"]}, ("channels", "trian", "train")),
        ({"train": CHANNELS["train"]}, ("objective_metric_name", "validation:auc", "train", "validation")),
        ({"train": "no/such/file.csv", "validation": CHANNELS["validation"]}, ("train", "no/such/file.csv")),
    ],
)
def test_wrong_channels_are_named_before_anything_starts(channels: dict[str, Any], names: tuple[str, ...]) -> None:
    with refuses((ConfigurationError, DataError), field=names):
        make().fit(channels)


def test_a_metric_that_is_not_reported_names_the_nearest() -> None:
    trainer = XGBoostTrainer(hyperparameters=STATIC)
    tuner = HyperparameterTuner(trainer, "validaton:auc", RANGES, strategy="Hyperband", max_jobs=2)
    with refuses(ConfigurationError, field="objective_metric_name", value="validaton:auc", remedy="validation:auc"):
        tuner.fit(CHANNELS)


def test_nothing_to_describe_before_fit() -> None:
    with refuses(ConfigurationError, field="job", remedy=("fit()", "attach()")):
        make().describe()


def test_the_public_names_are_these() -> None:
    import hpo
    import trainers

    assert sorted(hpo.__all__) == [
        "Callback",
        "CategoricalParameter",
        "ContinuousParameter",
        "Email",
        "HyperbandStrategyConfig",
        "HyperparameterTuner",
        "HyperparameterTuningJobAnalytics",
        "IntegerParameter",
        "NormalParameter",
        "Prices",
        "StrategyConfig",
        "TrainingJob",
        "TuningJobCompletionCriteriaConfig",
        "WarmStartConfig",
        "WarmStartTypes",
        "Webhook",
        "train",
    ]
    assert all(hasattr(hpo, name) for name in hpo.__all__)
    assert all(hasattr(trainers, name) for name in trainers.__all__)


def test_settings_are_attributes_that_are_checked_together_where_they_are_used() -> None:
    tuner = make(workers=0, max_jobs=3, max_wait=50)
    tuner.max_jobs, tuner.priority = 5, 2
    assert (tuner.max_jobs, tuner.priority, tuner.plan().trials) == (5, 2, 5)
    tuner.max_runtime_in_seconds = 100  # More than max_wait, as yet.
    tuner.max_wait = 200
    assert tuner.settings.options["max_wait"] == 200
    tuner.priority = 101
    with refuses(ConfigurationError, field="priority", value=101, remedy=("1", "100")):
        tuner.fit(CHANNELS)
    tuner.priority = 1
    tuner.ranges["max_depth"] = CategoricalParameter([-3])
    with refuses(ConfigurationError, field="max_depth", value=-3, remedy="0"):
        tuner.fit(CHANNELS)
    assert not hasattr(tuner, "nonsense")
    assert {"max_jobs", "priority", "estimator"} <= set(dir(tuner))


class Eager(HyperparameterTuner):
    """Sets settings before and behind the constructor."""

    priority = 7
    TUNING_JOB_NAME_MAX_LENGTH = 8

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.max_jobs = 2
        super().__init__(*arguments, **options)
        self.num_to_keep = 1


def test_a_subclass_sets_settings_as_it_did(home: Path) -> None:
    made = make(workers=0, max_jobs=3)
    tuner = Eager(**{**made.settings.arguments(), "priority": 3})
    assert (tuner.max_jobs, tuner.priority, tuner.settings.options["num_to_keep"]) == (3, 3, 1)
    with refuses(ConfigurationError, field="job_name", value="too-long-a-name", remedy="8"):
        tuner.fit(CHANNELS, job_name="too-long-a-name")
    tuner.fit(CHANNELS, job_name="short")
    assert Eager.attach("short").num_to_keep == 1


def test_a_fit_behind_an_attach_has_its_own_brackets(home: Path) -> None:
    make(workers=0, max_jobs=3).fit(CHANNELS, job_name="first")
    tuner = HyperparameterTuner.attach("first")
    grown = lay_out(5, 1, 30)
    tuner.settings = replace(tuner.settings, planned=grown)
    assert tuner.plan() == grown
    tuner.fit(CHANNELS, job_name="second")
    assert tuner.plan() == lay_out(3, 1, 30)


def test_the_first_argument_that_is_not_known_is_named() -> None:
    with refuses(ConfigurationError, field=("HyperparameterTuner", "zz")):
        make(workers=0, zz=1, aa=2, bb=3)
    assert make(workers=0, autotune=False).plan()


@pytest.mark.process
def test_threads_that_load_names_at_once_get_them() -> None:
    """Ray's own modules import each other in a circle, which two doors into it at once would fail in."""
    code = """
import threading, hpo, trainers
barrier, failed = threading.Barrier(2), []
def load(text):
    barrier.wait()
    try: exec(text, {})
    except BaseException as error: failed.append(error)
threads = [threading.Thread(target=load, args=(text,)) for text in (
    "from trainers import XGBoostTrainer", "from hpo import HyperparameterTuner")]
[thread.start() for thread in threads]
[thread.join(100) for thread in threads]
assert not failed, failed
"""
    printed(code)
