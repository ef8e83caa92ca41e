"""Whole tuning jobs on a real cluster, through the public Python API."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from hpo import (
    HyperparameterTuner,
    HyperparameterTuningJobAnalytics,
)
from hpo.record.store import Store
from tests.support.boosting import CHANNELS, RANGES, make
from tests.support.processes import printed
from tests.support.refusals import mentions, missing_names

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


def test_it_prints_the_plan_before_and_the_cost_after(job: tuple[HyperparameterTuner, str, str]) -> None:
    tuner, printed, _ = job
    lines = printed.splitlines()
    plan, used = (line for line in lines if not missing_names(line, 334, 900))
    mentions(plan, 30, "37%")
    assert any(not missing_names(line, "warning", "num_round") for line in lines[lines.index(plan) :])
    mentions(used, "37%", "worker-seconds")
    mentions(printed, "un-tuned", tuner.best_training_job(), "hpo describe")


def test_the_ledger_is_the_time_that_gangs_were_held(job: tuple[HyperparameterTuner, str, str]) -> None:
    tuner, _, url = job
    with Store(url) as store:
        ledger = store.ledger(tuner.latest_tuning_job.name)
        summary = store.job(tuner.latest_tuning_job.name).summary
    assert sum(entry.worker_seconds for entry in ledger) == pytest.approx(sum(summary["worker_seconds"].values()))
    longest = WORKERS * summary["gangs"] * summary["wall_seconds"]
    assert 0 < sum(summary["worker_seconds"].values()) <= longest


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
