"""A job's trials as a DataFrame, from a record filled by hand, while the job runs and after."""

from __future__ import annotations

import dataclasses
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas
import pytest

from hpo import HyperparameterTuningJobAnalytics
from hpo.record.store import JobRow, LedgerRow, ReportRow, Store, TrialRow
from tests.support.described import SPEC, TRIALS, trial
from tests.support.refusals import refuses
from trainers import ConfigurationError

KNOWN = [
    "TrainingJobName",
    "TrainingJobStatus",
    "FinalObjectiveValue",
    "TrainingStartTime",
    "TrainingEndTime",
    "TrainingElapsedTimeSeconds",
]
OURS = [
    "Status",
    "BestObjectiveValue",
    "BestObjectiveResource",
    "Resource",
    "Bracket",
    "BilledWorkerSeconds",
    "Checkpoint",
    "FailureReason",
    "Details",
    "Given",
    "StoppedBy",
]
UNTUNED = trial(-1, trial_id="untuned", objective=0.99, best_objective=0.99)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The record of a job that runs, with trials in every status and the un-tuned run beside them."""
    url = f"sqlite:///{tmp_path}/store.db"
    with Store(url) as store:
        store.create_job(JobRow(name="bank", created_at=1000.0, spec=SPEC))
        with store.writer("bank") as writer:
            for each in (UNTUNED, *reversed(TRIALS)):
                writer.trial(each)
            for step in (2, 1, 3):
                metrics = {"validation:auc": 0.6 + step / 100, "test:auc": math.nan if step == 3 else 0.5}
                writer.report(ReportRow(job="bank", trial_id="bank-000", step=step, metrics=metrics, at=1010.0 + step))
            for trial_id, seconds in (("bank-000", 3.0), ("bank-000", 1.5), ("", 7.0), ("untuned", 9.0)):
                entry: dict[str, Any] = {"gang": "gang0", "kind": "training", "at": 1011.0}
                writer.ledger(LedgerRow(job="bank", trial_id=trial_id, worker_seconds=seconds, **entry))
    return url


@pytest.fixture
def analytics(url: str) -> HyperparameterTuningJobAnalytics:
    return HyperparameterTuningJobAnalytics("bank", store=url)


def test_a_row_a_trial_in_the_order_of_suggestion(analytics: HyperparameterTuningJobAnalytics) -> None:
    frame = analytics.dataframe()
    assert list(frame.columns) == ["eta", "booster", *KNOWN, *OURS]
    assert list(frame["TrainingJobName"]) == [each.trial_id for each in TRIALS]
    assert frame["eta"].dtype.kind == "f"
    assert list(frame["TrainingJobStatus"]) == [
        "Completed",
        "Stopped",
        "Failed",
        "Stopped",
        "InProgress",
        "InProgress",
        "InProgress",
        "Failed",
        "Stopped",
    ]
    assert list(frame["Status"])[-2:] == ["Failed", "Diverged"]


def test_a_trial_that_has_ended(analytics: HyperparameterTuningJobAnalytics) -> None:
    row = analytics.dataframe().iloc[0]
    assert row["FinalObjectiveValue"] == 0.70
    assert (row["BestObjectiveValue"], row["BestObjectiveResource"]) == (0.78, 30)
    assert row["TrainingElapsedTimeSeconds"] == 10.0
    assert row["TrainingStartTime"] == datetime(1970, 1, 1, 0, 16, 50, tzinfo=UTC)
    assert row["BilledWorkerSeconds"] == 4.5


def test_a_trial_has_a_cost_where_the_job_has_prices(url: str, tmp_path: Path) -> None:
    assert "BilledCost" not in HyperparameterTuningJobAnalytics("bank", store=url).dataframe()
    with Store(url) as store:
        tariff = {"per_worker_hour": 3600.0, "currency": "EUR"}
        store.create_job(JobRow(name="paid", created_at=1.0, spec={**SPEC, "tariff": tariff}))
        with store.writer("paid") as writer:
            writer.trial(dataclasses.replace(TRIALS[0], job="paid"))
            row = LedgerRow(job="paid", trial_id="bank-000", gang="g", kind="idle", worker_seconds=4.5, at=1.0)
            writer.ledger(row)
    assert list(HyperparameterTuningJobAnalytics("paid", store=url).dataframe()["BilledCost"]) == [4.5]


def test_trials_that_go_on_or_wait(analytics: HyperparameterTuningJobAnalytics) -> None:
    frame = analytics.dataframe().set_index("TrainingJobName")
    running, pending = frame.loc["bank-004"], frame.loc["bank-006"]
    assert running["FinalObjectiveValue"] == 0.72
    assert not pandas.isna(running["TrainingStartTime"])
    assert pandas.isna(running["TrainingEndTime"])
    assert pandas.isna(running["TrainingElapsedTimeSeconds"])
    missing = ["FinalObjectiveValue", "TrainingStartTime", "TrainingEndTime", "BestObjectiveValue"]
    assert pending[missing].isna().all()
    assert pending["BilledWorkerSeconds"] == 0.0


def test_the_objective_is_the_one_that_the_job_compares_by(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/best.db"
    with Store(url) as store:
        spec = {**SPEC, "objective_value": "best"}
        store.create_job(JobRow(name="bank", created_at=1000.0, spec=spec))
        with store.writer("bank") as writer:
            writer.trial(TRIALS[0])
    assert list(HyperparameterTuningJobAnalytics("bank", store=url).dataframe()["FinalObjectiveValue"]) == [0.78]


def test_it_is_read_once_until_told_otherwise(url: str, analytics: HyperparameterTuningJobAnalytics) -> None:
    before = analytics.dataframe()
    with Store(url) as store, store.writer("bank") as writer:
        writer.trial(trial(9))
    assert analytics.dataframe() is before
    assert len(analytics.dataframe(force_refresh=True)) == len(before) + 1
    with Store(url) as store, store.writer("bank") as writer:
        writer.trial(trial(10))
    analytics.clear_cache()
    assert len(analytics.dataframe()) == len(before) + 2


def test_as_csv_and_back(analytics: HyperparameterTuningJobAnalytics, tmp_path: Path) -> None:
    file = tmp_path / "trials.csv"
    analytics.export_csv(file)
    times = ["TrainingStartTime", "TrainingEndTime"]
    back = pandas.read_csv(file, parse_dates=times, keep_default_na=False, na_values={name: [""] for name in _NUMBERS})
    frame = analytics.dataframe()
    assert list(back.columns) == list(frame.columns)
    for name in frame.columns:
        if name in _NUMBERS:
            assert back[name].astype(float).equals(frame[name].astype(float)), name
        elif name in times:
            assert list(pandas.to_datetime(back[name]).dropna()) == list(frame[name].dropna()), name
        else:
            assert list(back[name]) == list(frame[name]), name


_NUMBERS = [
    "eta",
    "FinalObjectiveValue",
    "TrainingElapsedTimeSeconds",
    "BestObjectiveValue",
    "BestObjectiveResource",
    "Resource",
    "Bracket",
    "BilledWorkerSeconds",
]


def test_ranges_are_by_name(analytics: HyperparameterTuningJobAnalytics) -> None:
    assert analytics.tuning_ranges == {
        "eta": {"Name": "eta", "MinValue": "0", "MaxValue": "1", "ScalingType": "Auto"},
        "booster": {"Name": "booster", "Values": ["gbtree", "dart"]},
    }


def test_the_counters_and_the_summaries_leave_the_untuned_run_out(
    analytics: HyperparameterTuningJobAnalytics,
) -> None:
    description = analytics.description()
    assert description["HyperParameterTuningJobStatus"] == "InProgress"
    assert description["BestTrainingJob"]["TrainingJobName"] == "untuned"
    assert description["Gain"]["outcome"] == "worse"
    assert sum(description["ObjectiveStatusCounters"].values()) == len(TRIALS)
    summaries = analytics.training_job_summaries()
    assert [summary["TrainingJobName"] for summary in summaries] == [each.trial_id for each in TRIALS]


def test_a_curve_is_by_step(analytics: HyperparameterTuningJobAnalytics) -> None:
    curve = analytics.curve("bank-000")
    assert (curve.index.name, list(curve.index)) == ("step", [1, 2, 3])
    assert list(curve.columns) == ["validation:auc", "test:auc", "seconds"]
    assert list(curve["validation:auc"]) == pytest.approx([0.61, 0.62, 0.63])
    assert list(curve["seconds"]) == [0.0, 1.0, 2.0]
    assert list(curve["test:auc"].isna()) == [False, False, True]


@pytest.mark.parametrize("name", ["bank-001", "no-such-trial"])
def test_a_trial_without_reports_has_an_empty_curve(analytics: HyperparameterTuningJobAnalytics, name: str) -> None:
    assert analytics.curve(name).empty


def test_a_job_without_trials_has_an_empty_frame(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/empty.db"
    with Store(url) as store:
        store.create_job(JobRow(name="bank", created_at=1000.0, spec=SPEC))
    frame = HyperparameterTuningJobAnalytics("bank", store=url).dataframe()
    assert frame.empty
    assert list(frame.columns) == ["eta", "booster", *KNOWN, *OURS]
    assert list(frame.sort_values("FinalObjectiveValue")["TrainingJobName"]) == []


def test_an_unknown_job_names_the_nearest(url: str) -> None:
    other = HyperparameterTuningJobAnalytics("bnak", store=url)
    for look in (other.dataframe, other.description, lambda: other.curve("bank-000")):
        with refuses(ConfigurationError, field="'bnak'", value=url, remedy="'bank'"):
            look()


def test_hyperparameters_keep_their_types(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/types.db"
    values = {"depth": 3, "eta": 0.5, "exact": True, "booster": "dart"}
    with Store(url) as store:
        store.create_job(JobRow(name="bank", created_at=1000.0, spec=SPEC))
        with store.writer("bank") as writer:
            writer.trial(TrialRow(job="bank", trial_id="bank-000", number=0, hyperparameters=values))
    frame = HyperparameterTuningJobAnalytics("bank", store=url).dataframe()
    assert frame["depth"].dtype.kind == "i"
    assert frame["exact"].dtype.kind == "b"
    assert frame[list(values)].iloc[0].to_dict() == values
