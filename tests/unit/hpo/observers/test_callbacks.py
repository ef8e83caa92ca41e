"""Users' callbacks: what they are told, and that they cannot break a job."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from hpo import Callback
from hpo.jobs.recorder import JobRecord
from hpo.jobs.replay import Memory
from hpo.observers.callbacks import Callbacks, JobEnd, JobStart, TrialEnd, TrialInfo
from hpo.record.store import JobRow, ReportRow, Store, TrialRow
from hpo.strategies.completion_criteria import TuningJobCompletionCriteriaConfig
from hpo.strategies.hyperband import Cut
from tests.support.refusals import mentions
from tests.support.simulated import METRIC, PLAN, rising, simulate
from trainers.errors import WarmbandError
from trainers.gangs.messages import Assignment, Report


class Notes(Callback):
    """Notes everything it is told."""

    def __init__(self) -> None:
        self.steps: dict[str, list[int]] = {}
        self.cuts: list[Cut] = []
        self.starts: list[JobStart] = []
        self.ended: dict[str, TrialEnd] = {}
        self.ends: list[JobEnd] = []

    def on_job_start(self, job: JobStart) -> None:
        assert not self.steps
        self.starts.append(job)

    def on_trial_report(self, trial: TrialInfo, report: Report) -> None:
        assert math.isfinite(report.metrics[METRIC])
        assert set(trial.hyperparameters) == {"eta"}
        assert trial.id not in self.ended
        self.steps.setdefault(trial.id, []).append(report.step)

    def on_trial_end(self, trial: TrialInfo, end: TrialEnd) -> None:
        assert trial.id not in self.ended, "once a trial"
        self.ended[trial.id] = end

    def on_rung(self, cut: Cut) -> None:
        self.cuts.append(cut)

    def on_job_end(self, job: JobEnd) -> None:
        self.ends.append(job)


@contextmanager
def recorded(tmp_path: Path, watcher: Callbacks, memory: Memory | None = None) -> Iterator[JobRecord]:
    """A real record that tells callbacks."""
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        store.create_job(JobRow(name="job", created_at=1.0))
        with store.writer("job") as writer:
            yield JobRecord(writer, METRIC, [watcher], memory=memory)


def run(tmp_path: Path, callbacks: Sequence[Callback], **options: object) -> list[str]:
    """Runs the job of the other tests with these callbacks and a real record; returns what was printed."""
    said: list[str] = []
    watcher = Callbacks(callbacks, said.append)
    with recorded(tmp_path, watcher) as record:
        simulate(record=record, **options)  # type: ignore[arg-type]
    watcher.job_end(JobEnd(name="job", status="Completed", reason="", summary={"trials": 30}))
    return said


def test_every_step_is_told_once_and_in_order(tmp_path: Path) -> None:
    """Also those of a trial that was served again since its gang was lost."""
    notes = Notes()
    assert not run(tmp_path, [notes], losses=frozenset({2, 9, 23}))
    assert len(notes.steps) == PLAN.trials, "and nothing of the un-tuned run"
    assert all(steps == list(range(1, len(steps) + 1)) for steps in notes.steps.values())
    assert sum(map(len, notes.steps.values())) == PLAN.resource


@pytest.mark.parametrize("target", [None, 2.0])
def test_the_end_of_a_trial_is_told_once_though_it_is_judged_later(tmp_path: Path, target: float | None) -> None:
    def curve(assignment: Assignment, step: int) -> float:
        if assignment.trial_id in ("job-000", "job-002"):
            raise ValueError("no such objective")
        return rising(assignment, step)

    notes = Notes()
    criteria = TuningJobCompletionCriteriaConfig(target_objective_metric_value=target)
    assert not run(tmp_path, [notes], curve=curve, parallel=2, completion=criteria)
    assert len(notes.ended) == PLAN.trials


def test_the_end_of_a_trial_is_told_once_though_it_turns_out_not_to_count(tmp_path: Path) -> None:
    notes = Notes()
    criteria = TuningJobCompletionCriteriaConfig(target_objective_metric_value=0.5)
    assert not run(tmp_path, [notes], parallel=4, completion=criteria)
    assert notes.ended.keys() >= notes.steps.keys()
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        behind = {row.trial_id for row in store.trials("job") if row.objective is None} & notes.ended.keys()
    assert behind, "trials that ended, and then were behind the one that reached it"


def test_what_came_while_a_trial_was_served_is_not_told_again(tmp_path: Path) -> None:
    notes = Notes()
    trial = simulate()[0].runs["job-000"]
    with recorded(tmp_path, Callbacks([notes], print)) as record:
        for steps in ([1], [2, 3], [1, 2, 3, 4]):
            record.reports(trial, [Report(step=step, metrics={METRIC: 0.5}) for step in steps])
    assert notes.steps == {"job-000": [1, 2, 3, 4]}


def test_what_an_earlier_run_of_the_job_told_is_not_told_again(tmp_path: Path) -> None:
    """Also where its driver died before the trial came back from what it reported on the way."""
    notes = Notes()
    trial = simulate()[0].runs["job-000"]
    row = TrialRow(job="job", trial_id=trial.id, number=0, hyperparameters=trial.hyperparameters, resource=2)
    before = [
        ReportRow(job="job", trial_id=trial.id, step=step, objective=0.5, metrics={}, at=1.0) for step in (1, 2, 3)
    ]
    with recorded(tmp_path, Callbacks([notes], print), Memory([row], before)) as record:
        for steps in ([1, 2], [3, 4], [3, 4, 5]):
            record.reports(trial, [Report(step=step, metrics={METRIC: 0.5}) for step in steps])
    assert notes.steps == {"job-000": [4, 5]}


def test_every_rung_that_is_decided_is_told(tmp_path: Path) -> None:
    notes = Notes()
    run(tmp_path, [notes])
    expected = [
        (index, resource, bracket.sizes[place + 1], bracket.sizes[place] - bracket.sizes[place + 1])
        for index, bracket in enumerate(PLAN.brackets)
        for place, resource in enumerate(bracket.rungs[:-1])
    ]
    told = [(cut.bracket, cut.resource, len(cut.went_on), len(cut.stopped)) for cut in notes.cuts]
    assert sorted(told) == expected
    assert [end.status for end in notes.ends] == ["Completed"]


def test_every_trial_ends_once_with_what_the_record_says_of_it(tmp_path: Path) -> None:
    """Also those of a trial that was served again since its gang was lost; and nothing of the un-tuned run."""
    notes = Notes()
    run(tmp_path, [notes], losses=frozenset({2, 9, 23}))
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        rows = {row.trial_id: row for row in store.trials("job") if row.number >= 0}
        billed = dict.fromkeys(rows, 0.0)
        for entry in store.ledger("job"):
            if entry.trial_id in billed:
                billed[entry.trial_id] += entry.worker_seconds
    assert notes.ended.keys() == rows.keys()
    assert {end.status for end in notes.ended.values()} == {"Completed", "Stopped"}
    for name, end in notes.ended.items():
        row = rows[name]
        assert (end.status, end.objective, end.best_objective) == (row.status, row.objective, row.best_objective)
        assert (end.resource, end.checkpoint, end.failure) == (row.resource, row.checkpoint, "")
        assert end.resource == notes.steps[name][-1]
        assert end.worker_seconds == pytest.approx(billed[name])


def test_a_trial_that_diverged_says_why_and_has_no_objective(tmp_path: Path) -> None:
    def curve(assignment: Assignment, step: int) -> float:
        return math.nan if assignment.trial_id == "job-002" else rising(assignment, step)

    class Ends(Notes):
        def on_trial_report(self, trial: TrialInfo, report: Report) -> None:
            """Whatever its metrics are."""

    notes = Ends()
    run(tmp_path, [notes], curve=curve)
    [end] = [end for end in notes.ended.values() if end.status == "Diverged"]
    assert end == notes.ended["job-002"]
    assert end.objective is None
    assert "nan" in end.failure


def test_a_jobs_start_says_what_it_was_made_with() -> None:
    spec = {
        "objective_metric_name": METRIC,
        "objective_type": "Minimize",
        "estimator": {"trainer": "XGBoostTrainer", "hyperparameters": {"eta": 0.3}},
        "hyperparameter_ranges": {"eta": {"type": "Continuous"}},
        "random_seed": 7,
        "tags": None,
    }
    notes = Notes()
    row = JobRow(name="job", created_at=1.0, spec=spec, plan=PLAN.to_json())
    Callbacks([notes], print).job_start(JobStart.of(row))
    [start] = notes.starts
    assert (start.name, start.metric, start.objective_type, start.seed) == ("job", METRIC, "Minimize", 7)
    assert (start.hyperparameters, start.ranges, start.tags) == ({"eta": 0.3}, {"eta": {"type": "Continuous"}}, [])
    assert start.plan == PLAN.to_json()


def test_our_own_errors_are_said_without_a_traceback() -> None:
    class Quiet(Callback):
        def on_job_start(self, job: JobStart) -> None:
            raise WarmbandError("MLflow does not answer")

    said: list[str] = []
    Callbacks([Quiet()], said.append).job_start(None)  # type: ignore[arg-type]
    [line] = said
    mentions(line, "warning", "MLflow does not answer")
    assert "Traceback" not in line


class Broken(Callback):
    """Raises wherever it can."""

    def on_trial_report(self, trial: TrialInfo, report: Report) -> None:
        raise ValueError("no room on the wall")

    def on_rung(self, cut: Cut) -> None:
        raise KeyError(cut.resource)


def test_a_callback_that_raises_is_told_of_once_and_stops_nobody(tmp_path: Path) -> None:
    notes = Notes()
    said = run(tmp_path, [Broken(), notes])
    assert sum(map(len, notes.steps.values())) == PLAN.resource
    assert sum("no room on the wall" in text for text in said) == 1
    mentions(said[0], "warning", "Broken.on_trial_report", "Traceback")
    rungs = {rung for bracket in PLAN.brackets for rung in bracket.rungs[:-1]}
    assert sum("Broken.on_rung" in text for text in said) == len(rungs)


def test_ctrl_c_in_a_callback_goes_through() -> None:
    class Interrupting(Callback):
        def on_rung(self, cut: Cut) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Callbacks([Interrupting()], print).rung(Cut(bracket=0, resource=1, went_on=(), stopped=()))


def test_trials_that_have_ended_are_forgotten(tmp_path: Path) -> None:
    """A job of many thousand trials is followed in the memory of those that are under way."""
    with recorded(tmp_path, Callbacks([Notes()], print)) as record:
        for run in simulate()[0].runs.values():
            record.reports(run, [Report(step=1, metrics={METRIC: 0.5})])
            record.trial(run)
        assert not record._told
