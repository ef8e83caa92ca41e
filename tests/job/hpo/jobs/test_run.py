"""Whole jobs through the public API, in this process: real XGBoost, a real record, no Ray."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hpo import (
    Callback,
    HyperparameterTuner,
    Prices,
    TuningJobCompletionCriteriaConfig,
)
from hpo.jobs.files.folder import CLAIMED, MARK
from hpo.jobs.raising import RAISED
from hpo.jobs.run import known, notes_of
from hpo.observers.callbacks import JobEnd, JobStart, TrialInfo
from hpo.record.store import JobRow, Store
from hpo.strategies.hyperband import Cut
from tests.support import bad_input
from tests.support.boosting import CHANNELS
from tests.support.jobs import make
from tests.support.lines import line_with
from tests.support.refusals import mentions, refuses
from trainers import ConfigurationError, WarmbandError
from trainers.gangs.messages import Report


def models(tuner: HyperparameterTuner) -> dict[int, bytes]:
    """Every trial's model, by the trial's number."""
    with Store(tuner._store) as store:
        trials = store.trials(tuner.describe()["HyperParameterTuningJobName"])
    return {trial.number: Path(trial.checkpoint).read_bytes() for trial in trials}


def decisions(tuner: HyperparameterTuner) -> list[tuple[Any, ...]]:
    columns = ["eta", "max_depth", "Bracket", "Resource", "FinalObjectiveValue"]
    return list(tuner.analytics().dataframe()[columns].itertuples(index=False, name=None))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> HyperparameterTuner:
    """A tuner whose job has run to its end; its record and its models are its own."""
    folder = tmp_path_factory.mktemp("whole")
    tuner, _ = make(num_to_keep=None, store=f"sqlite:///{folder}/warmband.db", storage_path=str(folder))
    tuner.fit(CHANNELS)
    return tuner


def test_a_seed_reproduces_configurations_brackets_and_models(whole: HyperparameterTuner) -> None:
    first = whole
    again, _ = make(num_to_keep=None)
    other, _ = make(num_to_keep=None, random_seed=8)
    for tuner in (again, other):
        tuner.fit(CHANNELS)
    assert decisions(first) == decisions(again)
    assert models(first) == models(again)
    assert decisions(first) != decisions(other)


def test_without_a_seed_one_is_drawn_recorded_and_reproduces() -> None:
    drawn, _ = make(random_seed=None)
    drawn.fit(CHANNELS)
    seed = drawn.describe()["HyperParameterTuningJobConfig"]["RandomSeed"]
    again, _ = make(random_seed=seed)
    again.fit(CHANNELS)
    assert decisions(drawn) == decisions(again)


def test_a_target_ends_the_job_within_a_rung_and_says_so(whole: HyperparameterTuner) -> None:
    values = whole.analytics().dataframe()["FinalObjectiveValue"]
    target = float(values.median())
    tuner, _ = make(completion_criteria_config=TuningJobCompletionCriteriaConfig(target_objective_metric_value=target))
    tuner.fit(CHANNELS)
    described = tuner.describe()
    assert described["HyperParameterTuningJobStatus"] == "Completed"
    mentions(described["StatusReason"], "target_objective_metric_value", f"{target:g}")
    assert described["BestTrainingJob"]["FinalHyperParameterTuningJobObjectiveMetric"]["Value"] >= target
    assert described["Summary"]["resource_used"] < whole.describe()["Summary"]["resource_used"]
    assert described["HyperParameterTuningJobConfig"]["TuningJobCompletionCriteria"] == {
        "TargetObjectiveMetricValue": target
    }
    attached = HyperparameterTuner.attach(tuner.latest_tuning_job.name)
    assert vars(attached.completion_criteria_config) == vars(tuner.completion_criteria_config)


ENDLESS: dict[str, Any] = {"strategy": "Random", "strategy_config": None, "max_jobs": 5_000}


@pytest.mark.usefixtures("whole")  # What a first job imports, and compiles, takes seconds of a busy machine.
def test_a_limit_of_money_ends_the_job_with_what_it_has() -> None:
    """A worker-second costs 1, and a few are paid: of 5,000 trials, some."""
    prices = Prices(per_worker_hour=3600.0, currency="EUR")
    tuner, printed = make({"num_round": 20}, **ENDLESS, prices=prices, max_cost=2.0)
    tuner.fit(CHANNELS)
    described = tuner.describe()
    assert described["HyperParameterTuningJobStatus"] == "Stopped"
    mentions(described["StatusReason"], "max_cost", "2.00 EUR")
    assert described["TrainingJobStatusCounters"]["Completed"] < 5_000
    with Store() as store:
        entries = store.ledger(described["HyperParameterTuningJobName"])
    # In hand what was begun is finished.
    billed = Counter[str]()
    for entry in entries:
        billed[entry.trial_id] += entry.worker_seconds
    del billed[""]
    cost = described["Summary"]["cost"]
    closing = entries[-1].worker_seconds if not entries[-1].trial_id else 0.0
    assert 2.0 <= cost["total"] <= 2.0 + max(billed.values()) + closing + 1.0
    assert cost["total"] == pytest.approx(sum(entry.worker_seconds for entry in entries))
    line_with(printed.getvalue(), f"{cost['total']:.2f} EUR", "worker-seconds", "units")
    again = HyperparameterTuner.attach(described["HyperParameterTuningJobName"])
    assert (again.prices, again.max_cost) == (prices, 2.0)


@pytest.mark.usefixtures("whole")
def test_a_time_limit_ends_the_job_with_what_it_has() -> None:
    tuner, _ = make({"num_round": 20}, **ENDLESS, max_runtime_in_seconds=2)
    tuner.fit(CHANNELS)
    described = tuner.describe()
    assert described["HyperParameterTuningJobStatus"] == "Stopped"
    mentions(described["StatusReason"], "max_runtime_in_seconds", "2 s")
    assert 1 <= described["TrainingJobStatusCounters"]["Completed"] < 5_000


def test_minimising_finds_the_smallest_and_best_values_count_where_asked() -> None:
    tuner, _ = make({"eval_metric": "logloss"}, objective_type="Minimize", objective_value="best")
    tuner.objective_metric_name = "validation:logloss"
    tuner.fit(CHANNELS)
    frame = tuner.analytics().dataframe()
    best = frame.set_index("TrainingJobName").loc[tuner.best_training_job()]
    assert best["BestObjectiveValue"] == frame["BestObjectiveValue"].min()
    assert best["BestObjectiveResource"] <= best["Resource"]


class Notes(Callback):
    def __init__(self) -> None:
        self.steps: dict[str, int] = {}
        self.cuts: list[Cut] = []
        self.ends: list[JobEnd] = []

    def on_trial_report(self, trial: TrialInfo, report: Report) -> None:
        assert report.step == self.steps.get(trial.id, 0) + 1
        assert {"validation:auc"} == set(report.metrics)
        self.steps[trial.id] = report.step

    def on_rung(self, cut: Cut) -> None:
        self.cuts.append(cut)

    def on_job_end(self, job: JobEnd) -> None:
        self.ends.append(job)
        raise RuntimeError("the mail server is away")


def test_callbacks_follow_the_job_and_cannot_break_it() -> None:
    notes = Notes()
    tuner, printed = make(callbacks=[notes])
    tuner.fit(CHANNELS)
    frame = tuner.analytics().dataframe()
    assert notes.steps == dict(zip(frame["TrainingJobName"], frame["Resource"], strict=True))
    assert sum(len(cut.stopped) for cut in notes.cuts) == (frame["TrainingJobStatus"] == "Stopped").sum()
    assert [(end.status, end.reason) for end in notes.ends] == [("Completed", "")]
    assert notes.ends[0].summary["best"]["trial"] == tuner.best_training_job()
    mentions(printed.getvalue(), "Notes.on_job_end", "the mail server is away")
    assert tuner.describe()["HyperParameterTuningJobStatus"] == "Completed"


def test_a_job_does_not_begin_where_its_folder_holds_files(tmp_path: Path, home: Path) -> None:
    """Neither beside somebody's files, nor in a folder of the server or of other jobs."""
    cases = [(tmp_path, "thesis", "chapter-1.md"), (home, "jobs", "churn-1"), (home, "serve", "tokens.json")]
    for place, name, file in cases:
        (place / name).mkdir(parents=True, exist_ok=True)
        (place / name / file).touch()
        tuner, _ = make(storage_path=str(place))
        named = file if place == tmp_path else name
        with refuses(ConfigurationError, field=str(place / name), value=named, remedy="storage_path"):
            tuner.fit(CHANNELS, job_name=name)
        with Store() as store:
            assert name not in [job.name for job in store.jobs()]
        assert (place / name / file).exists()


def test_the_best_checkpoints_stay_and_the_others_go(tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    tuner, printed = make(num_to_keep=3, storage_path=str(folder), verbose=True)
    tuner.fit(CHANNELS)
    name = tuner.latest_tuning_job.name
    frame = tuner.analytics().dataframe().sort_values("FinalObjectiveValue", ascending=False)
    best = list(frame["TrainingJobName"][:3])
    assert {entry.name for entry in (folder / name).iterdir()} == {*best, "untuned", MARK}
    files = [file for file in (folder / name).rglob("*") if file.is_file() and file.name != MARK]
    kept = tuner.describe()["Summary"]["checkpoints"]
    assert kept["kept"] == len(files) == 4
    assert kept["kept_bytes"] == sum(file.stat().st_size for file in files) < kept["written_bytes"]
    line_with(printed.getvalue(), "checkpoints", "4")
    assert tuner.best_estimator().model().num_boosted_rounds() == frame["Resource"].iloc[0]
    dropped = frame["TrainingJobName"].iloc[-1]
    with refuses(ConfigurationError, field=dropped, remedy="num_to_keep=None"):
        tuner.best_estimator(dropped).model()
    retrained = tuner.best_estimator(dropped).fit(CHANNELS, storage_path=str(tmp_path / "again"))
    assert math.isfinite(retrained.metrics["validation:auc"])


def test_a_job_whose_every_trial_fails_ends_early_with_the_first_errors() -> None:
    """XGBoost finds only when it trains that there is no such updater."""
    tuner, printed = make({"updater": "no_updater"}, callbacks=[end := Ends()])
    with refuses(WarmbandError, field="5", value="no_updater"):
        tuner.fit(CHANNELS)
    described = tuner.describe()
    assert described["HyperParameterTuningJobStatus"] == "Failed"
    assert "no_updater" in described["FailureReason"]
    assert described["TrainingJobStatusCounters"]["NonRetryableError"] == 5
    (error,) = described["Summary"]["errors"]
    assert (error["trials"], error["first"]) == (5, f"{tuner.latest_tuning_job.name}-000")
    failed = tuner.analytics().training_job_summaries()[0]
    assert "XGBoostError" in failed["Traceback"]
    assert end.status == "Failed"
    told = [line for line in printed.getvalue().splitlines() if "-000" in line and "no_updater" in line]
    assert len(told) == 2, "as it fails, and with all in the summary"


class Ends(Callback):
    status = ""

    def on_job_end(self, job: JobEnd) -> None:
        self.status = job.status


def test_the_probe_is_said_before_the_job_and_kept_with_it() -> None:
    tuner, printed = make()
    tuner.fit(CHANNELS)
    probe = tuner.describe()["Summary"]["probe"]
    assert (probe["one_worker"]["rows"], probe["one_worker"]["features"]) == (2000, 6)
    assert probe["many_workers"] is None
    text = " ".join(printed.getvalue().split())
    assert probe["verdict"] in text
    assert text.index(probe["verdict"]) < text.index("validation:auc 0.")
    assert not list(Path(tuner.best_estimator().checkpoint).parents[1].glob("probe*")), "it leaves no checkpoint"


def test_boosting_whose_objective_is_no_finite_number_ends_with_that_round() -> None:
    """Labels so large that their squared errors do not fit: the first round of each trial is its last."""
    static = {"objective": "reg:squarederror", "eval_metric": "rmse", "num_round": 20}
    options = {"strategy": "Random", "strategy_config": None, "objective_metric_name": "validation:rmse"}
    tuner = bad_input.make(0, static, **options, objective_type="Minimize")
    data = bad_input.rows([1e30, -1e30] * 4)
    tuner.fit({"train": data, "validation": data})
    frame = tuner.analytics().dataframe()
    assert set(frame["Status"]) == {"Diverged"}
    (reason,) = set(frame["FailureReason"])
    mentions(reason, "validation:rmse", "inf", "1")
    assert set(frame["Resource"]) == {1}
    summary = tuner.describe()["Summary"]
    assert summary["resource_used"] == len(frame) == 3
    assert summary["untuned"] == {"diverged": reason, "resource": 1}


class Late(Callback):
    """Keeps a job from its first gang for a moment, as the start of Ray does."""

    until = math.inf

    def on_job_start(self, job: JobStart) -> None:
        time.sleep(0.5)
        self.until = time.time()


def test_wall_time_is_one_number_from_the_jobs_start_on() -> None:
    tuner, _ = make(callbacks=[late := Late()])
    tuner.fit(CHANNELS)
    described = tuner.describe()
    summary = described["Summary"]
    [[began, ended]] = summary["runs"]
    assert began + summary["first_step_seconds"] >= late.until
    assert began + summary["wall_seconds"] <= ended
    assert summary["wall_seconds"] > summary["first_step_seconds"]
    with Store() as store:
        trials = store.trials(tuner.latest_tuning_job.name)
    assert began + summary["wall_seconds"] >= max(trial.ended_at for trial in trials)


def test_what_was_foretold_goes_with_a_raise_and_stays_for_those_who_go_on_after_it() -> None:
    summary = {"probe": {"verdict": "30 rounds at most"}, "forecast": {"seconds": 9.0}, CLAIMED: True}
    summary["runs"] = [[0.0, 10.0]]
    job = JobRow(name="job", created_at=0.0, spec={RAISED: [{"at": 20.0, "max_jobs": [5, 9]}]}, summary=summary)
    assert known(notes_of(job, 0.0)) == {"probe": {"verdict": ""}, "forecast": None, CLAIMED: True}
    later = replace(job, summary={**summary, "runs": [[0.0, 10.0], [21.0, 30.0]]})
    assert known(notes_of(later, 0.0)) == known(summary), "they are of the job as it was raised"
    died = replace(job, summary={**summary, "runs": [[0.0, 10.0], [21.0, None]]})
    assert known(notes_of(died, 25.0)) == known(summary)
    never = replace(job, summary={**summary, "runs": []})
    assert known(notes_of(never, 0.0)) == known(summary)
