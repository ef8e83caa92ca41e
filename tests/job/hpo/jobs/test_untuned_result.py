"""Jobs whose un-tuned run is better than all trials: it is the result, its model is kept, and every door returns it."""

from __future__ import annotations

import io
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpo import HyperparameterTuner, TuningJobCompletionCriteriaConfig
from hpo.jobs import run
from hpo.jobs.recorder import JobRecord
from hpo.record.store import JobRow, Store, TrialRow
from hpo.report import JobData
from hpo.report.page.conclusion import verdict
from hpo.sagemaker import Snapshot, overviews
from tests.support.driving import CHANNELS, Counting
from tests.support.refusals import mentions
from tests.support.untuned import bad, url


def rows(folder: Path, name: str = "job") -> tuple[JobRow, dict[str, TrialRow]]:
    with Store(url(folder)) as store:
        return store.job(name), {trial.trial_id: trial for trial in store.trials(name)}


def check_result(tuner: Any, folder: Path, name: str = "job") -> None:
    """The un-tuned run is what every door returns, and its model predicts."""
    job, trials = rows(folder, name)
    assert job.status == "Completed"
    assert job.summary["best"]["trial"] == "untuned"
    assert job.summary["best_trial"]["trial"] in trials
    assert tuner.best_training_job() == tuner.overall_best_training_job() == "untuned"
    described = tuner.describe()
    assert described["BestTrainingJob"]["TrainingJobName"] == "untuned"
    assert described["Gain"]["outcome"] == job.summary["gain"]["outcome"] == "worse"
    value = described["BestTrainingJob"]["FinalHyperParameterTuningJobObjectiveMetric"]["Value"]
    assert value == job.summary["best"]["value"] == job.summary["untuned"]["value"]
    for estimator in (tuner.best_estimator(), tuner.best_estimator(described["BestTrainingJob"])):
        assert estimator.hyperparameters["eta"] == 0.4
        assert estimator.model().num_boosted_rounds() == trials["untuned"].resource
    with Store(url(folder)) as store:
        assert overviews(store, [job])[0].totals.best == value


@pytest.mark.parametrize("metric", ["auc", "error"])
def test_every_door_returns_it(metric: str, tmp_path: Path) -> None:
    said = io.StringIO()
    tuner = bad(tmp_path, metric=metric, said=said)
    tuner.fit(CHANNELS, job_name="job")
    check_result(tuner, tmp_path)
    attached = HyperparameterTuner.attach("job", store=url(tmp_path))
    check_result(attached, tmp_path)
    assert attached.deployable() == "untuned"
    job, trials = rows(tmp_path)
    mentions(said.getvalue(), "un-tuned", "nothing better", job.summary["best_trial"]["trial"], "result")
    with Store(url(tmp_path)) as store:
        data, snapshot = JobData.read(store, "job"), Snapshot.of(store, job)
    mentions(verdict(data), "nothing better", "un-tuned run")
    assert snapshot.result is snapshot.untuned
    assert snapshot.gap is not None
    assert snapshot.gap.sentence == job.summary["gain"]["sentence"] == data.gap.sentence  # type: ignore[union-attr]
    kept = {name for name, trial in trials.items() if trial.checkpoint}
    assert kept == {"untuned", job.summary["best_trial"]["trial"]}  # The one of `num_to_keep`, and it.


class AtUntuned(JobRecord):
    """Interrupts the job as the un-tuned run begins, of which callbacks are not told."""

    def trial(self, run: Any) -> None:
        super().trial(run)
        if run.id == "untuned" and run.resource == 0:
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("at", [2, 9, 18, None])
def test_a_job_that_is_interrupted_and_resumed_keeps_it(
    at: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its three trials have 18 rounds; None interrupts the un-tuned run behind them."""
    broken = bad(tmp_path, Counting(at or 10**9, lambda: signal.raise_signal(signal.SIGINT)))
    with monkeypatch.context() as patched:
        if at is None:
            patched.setattr(run, "JobRecord", AtUntuned)
        with pytest.raises(KeyboardInterrupt):
            broken.fit(CHANNELS, job_name="job")
    job, _ = rows(tmp_path)
    assert job.status == "Stopped"
    assert (job.summary.get("best") or {}).get("trial") != "untuned"
    again = HyperparameterTuner.attach("job", store=url(tmp_path))
    assert again.describe()["BestTrainingJob"]["TrainingJobName"] != "untuned"
    again.resume(inputs=CHANNELS)
    check_result(again, tmp_path)


def test_a_raised_job_keeps_it_and_a_lost_model_is_trained_again(tmp_path: Path) -> None:
    tuner = bad(tmp_path)
    tuner.fit(CHANNELS, job_name="job")
    _, before = rows(tmp_path)
    model = tuner.best_estimator().model().save_raw("ubj")
    Path(before["untuned"].checkpoint).write_bytes(b"cut short")
    tuner.resume(inputs=CHANNELS, max_jobs=4)
    _, after = rows(tmp_path)
    assert len(after) == len(before) + 1
    check_result(tuner, tmp_path)
    assert tuner.best_estimator().model().save_raw("ubj") == model


def test_a_better_trial_is_the_result(tmp_path: Path) -> None:
    tuner = bad(tmp_path, metric="logloss", static={"eta": 1e-5, "reg_lambda": 1e8})
    tuner.fit(CHANNELS, job_name="job")
    job, _ = rows(tmp_path)
    assert job.summary["best"]["trial"] == tuner.best_training_job() != "untuned"
    assert job.summary["best_trial"] is None
    assert job.summary["gain"]["outcome"] == "gain"
    assert "not known" in job.summary["gain"]["sentence"]


def test_it_is_compared_with_the_mean_of_repeats(tmp_path: Path) -> None:
    said = io.StringIO()
    tuner = bad(tmp_path, said=said, repeats=2, max_jobs=4, static={"subsample": 0.5})
    tuner.fit(CHANNELS, job_name="job")
    job, _ = rows(tmp_path)
    assert job.summary["best"]["trial"] == tuner.best_training_job() == "untuned"
    assert job.summary["best"]["repeats"] is None
    assert len(job.summary["best_trial"]["repeats"]["values"]) == 2
    assert tuner.describe()["Gain"]["outcome"] == job.summary["gain"]["outcome"]
    mentions(said.getvalue(), "mean of 2 trials")


def test_one_that_a_limit_stopped_is_no_candidate(tmp_path: Path) -> None:
    """A target that trials reach ends the job before the un-tuned run has trained to its end."""
    criteria = TuningJobCompletionCriteriaConfig(target_objective_metric_value=0.0001)
    tuner = bad(tmp_path, completion_criteria_config=criteria)
    tuner.fit(CHANNELS, job_name="job")
    job, trials = rows(tmp_path)
    ended = "untuned" in trials and trials["untuned"].status == "Completed"
    assert (tuner.best_training_job() == "untuned") == ended
    assert (job.summary["gain"] is not None) == ended


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_have_the_standard_error_of_the_same_rows_in_memory(suffix: str, tmp_path: Path) -> None:
    errors = []
    for place, as_files in enumerate((False, True)):
        folder = tmp_path / str(place)
        folder.mkdir()
        channels: dict[str, Any] = dict(CHANNELS)
        for name, frame in CHANNELS.items() if as_files else ():
            channels[name] = str(folder / f"{name}.{suffix}")
            write = frame.to_csv if suffix == "csv" else frame.to_parquet
            write(channels[name], index=False)
        tuner = bad(folder, static={"subsample": 0.9})
        tuner.fit(channels, job_name="job")
        job, _ = rows(folder)
        errors.append([job.summary[name]["standard_error"] for name in ("best", "best_trial", "untuned")])
        assert job.summary["gain"]["standard_error"] == job.summary["best_trial"]["standard_error"]
    assert errors[0] == pytest.approx(errors[1])
    assert all(np.isfinite(errors[0]))
