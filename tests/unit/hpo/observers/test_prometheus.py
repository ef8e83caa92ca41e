"""A job's metrics and its log, of simulated searches, without Ray."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import hpo.observers.job_log
from hpo.cost.ledger import Entry
from hpo.jobs.replay import Memory
from hpo.observers.job_log import JobLog, file_name
from hpo.observers.progress import Goal, PlainProgress
from hpo.observers.prometheus import (
    BEST,
    BILLED,
    EMIT_SECONDS,
    FAILURES,
    GANGS,
    JOB,
    PUSHES,
    RUNGS,
    STALENESS,
    STARTS,
    TRIALS,
    UNITS,
    Metrics,
    by_staleness,
)
from hpo.search.controller import Controller
from hpo.search.observer import JobState
from hpo.search.trial import Search, TrialRun
from hpo.strategies.hyperband import Cut
from tests.support.refusals import mentions
from tests.support.simulated import METRIC, PLAN, Kept, rising, search_of, simulate
from trainers.gangs.messages import Assignment, Report

GOAL = Goal(job="job", metric=METRIC, objective_type="Maximize", objective_value="last", plan=PLAN)


class Instruments:
    """Stands where Ray's metrics would be, which nobody can ask what they hold."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, tuple[str, ...]], float] = {}
        self.sets = 0
        self.observed: dict[str, list[float]] = {}

    def gauge(self, name: str, text: str, tag_keys: tuple[str, ...]) -> Any:
        return _Instrument(self, name, tag_keys)

    def histogram(self, name: str, text: str, boundaries: list[float], tag_keys: tuple[str, ...]) -> Any:
        return _Instrument(self, name, tag_keys)

    def of(self, name: str) -> dict[tuple[str, ...], float]:
        """By the values of the tags behind the job's."""
        return {tags[1:]: value for (metric, tags), value in self.values.items() if metric == name}


class _Instrument:
    def __init__(self, kept: Instruments, name: str, keys: tuple[str, ...]) -> None:
        self._kept, self._name, self._keys = kept, name, keys

    def set(self, value: float, tags: dict[str, str]) -> None:
        assert tuple(tags) == self._keys, "Ray asks for each tag"
        self._kept.values[self._name, tuple(tags.values())] = value
        self._kept.sets += 1

    def observe(self, value: float, tags: dict[str, str]) -> None:
        assert tuple(tags) == self._keys
        self._kept.observed.setdefault(self._name, []).append(value)


class Watched(Kept):
    """A record in memory that tells watchers what it is told."""

    def __init__(self, *watchers: Any) -> None:
        super().__init__()
        self.watchers = watchers

    def trial(self, run: TrialRun) -> None:
        for watcher in self.watchers:
            watcher.trial(run)

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        super().reports(run, reports)
        for watcher in self.watchers:
            watcher.reports(run, reports)

    def rung(self, cut: Cut) -> None:
        super().rung(cut)
        for watcher in self.watchers:
            watcher.rung(cut)

    def ledger(self, entries: Sequence[Entry]) -> None:
        super().ledger(entries)
        for watcher in self.watchers:
            watcher.ledger(entries)

    def progress(self, state: JobState) -> None:
        super().progress(state)
        for watcher in self.watchers:
            watcher.progress(state)


@pytest.fixture
def instruments(monkeypatch: pytest.MonkeyPatch) -> Instruments:
    kept = Instruments()
    monkeypatch.setattr("ray.util.metrics.Gauge", kept.gauge)
    monkeypatch.setattr("ray.util.metrics.Histogram", kept.histogram)
    return kept


def watched(**options: Any) -> tuple[Controller, Watched]:
    """A whole search with metrics."""
    progress = PlainProgress(GOAL, lambda text: None)
    record = Watched(progress, metrics := Metrics(GOAL, progress.tally))
    with metrics:
        controller, _, _ = simulate(record=record, **options)
    return controller, record


def flat(assignment: Assignment, step: int) -> float:
    """Trials of the lowest etas diverge."""
    eta = float(assignment.hyperparameters.get("eta", 1.0))
    return math.nan if eta < 0.2 else rising(assignment, step)


def test_the_gauges_end_at_what_the_search_found_and_used(instruments: Instruments) -> None:
    staleness = {"0": 3, "5": 2, "11": 1}
    details = {"parameter_server": {"staleness": staleness}}
    controller, record = watched(curve=flat, losses=frozenset({3}), details=details)
    trials = instruments.of(TRIALS.name)
    assert sum(trials.values()) == PLAN.trials
    assert trials["completed",] + trials["stopped",] + trials["diverged",] == PLAN.trials
    assert trials["diverged",] > 0
    assert instruments.of(FAILURES.name) == {
        ("failed",): 0,
        ("diverged",): trials["diverged",],
        ("lost_workers",): 1,
    }
    best = controller.best()
    assert best is not None
    assert instruments.of(BEST.name) == {(METRIC,): best.value}
    assert instruments.of(UNITS.name) == {("trained",): controller.trained, ("planned",): PLAN.resource}
    billed = {(kind.value,): seconds for kind, seconds in controller.ledger.totals.items()}
    assert instruments.of(BILLED.name) == {**billed, ("open",): 0}
    assert instruments.of(GANGS.name) == {("busy",): 0, ("idle",): 0, ("starting",): 0}
    starts = [entry.worker_seconds / entry.workers for entry in record.entries if entry.kind == "starting"]
    assert instruments.observed[STARTS.name] == starts != []
    stale = instruments.of(PUSHES.name)
    assert stale["0",] == stale["4-7",] * 3 / 2 == stale["8+",] * 3 > 0


def test_the_rungs_are_those_of_the_plan(instruments: Instruments) -> None:
    _, record = watched()
    rungs = instruments.of(RUNGS.name)
    assert len(rungs) == 4 * sum(len(bracket.rungs) for bracket in PLAN.brackets)
    for number, bracket in enumerate(PLAN.brackets, start=1):
        for rung, size in zip(bracket.rungs, bracket.sizes, strict=True):
            at = (str(number), str(rung))
            assert rungs[*at, "places"] == rungs[*at, "reached"] == size
            cuts = [cut for cut in record.cuts if (cut.bracket + 1, cut.resource) == (number, rung)]
            assert rungs[*at, "went_on"] == sum(len(cut.went_on) for cut in cuts)
            assert rungs[*at, "stopped"] == sum(len(cut.stopped) for cut in cuts)


def test_figures_are_handed_over_once_a_second_however_often_the_loop_goes_round(instruments: Instruments) -> None:
    now = iter(index * EMIT_SECONDS / 10 for index in range(100))
    progress = PlainProgress(GOAL, lambda text: None)
    metrics = Metrics(GOAL, progress.tally, lambda: next(now))
    controller, _, _ = simulate()
    with metrics:
        metrics.progress(controller.state)
        once = instruments.sets
        for _ in range(39):
            metrics.progress(controller.state)
        assert instruments.sets == 4 * once


@given(st.dictionaries(st.integers(0, 50).map(str), st.integers(0, 1000)))
def test_no_push_is_left_out_of_the_classes(pushes: dict[str, int]) -> None:
    found = by_staleness(pushes)
    assert tuple(found) == STALENESS
    assert sum(found.values()) == sum(pushes.values())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(hpo.observers.job_log, "log_folder", lambda: tmp_path)
    yield tmp_path
    for package in hpo.observers.job_log.PACKAGES:
        assert not logging.getLogger(package).handlers


def search() -> Search:
    return search_of(PLAN, parallel=1)


def test_the_log_has_a_line_of_json_an_event(folder: Path) -> None:
    with JobLog(search(), Memory()) as log:
        controller, _, record = simulate(record=Watched(log), curve=flat)
        logging.getLogger("hpo.anything").warning("took %s s", 3, extra={"message_id": 1})
    lines = [json.loads(line) for line in (folder / file_name("job")).read_text().splitlines()]
    assert {line["tuning_job"] for line in lines} == {"job"}
    ends = {line["trial"]: line for line in lines if line["event"] == "trial_ends"}
    assert ends.keys() >= controller.runs.keys()
    for name, run in controller.runs.items():
        assert ends[name]["hyperparameters"] == run.hyperparameters
        assert ends[name]["objective"] == (None if run.diverged else run.value)
        assert (run.diverged or f"{METRIC} {run.value:.5f}") in ends[name]["message"]
        assert ends[name]["levelname"] == ("WARNING" if run.diverged else "INFO")
    assert [line["stopped"] for line in lines if line["event"] == "rung"] == [list(cut.stopped) for cut in record.cuts]
    assert [line["message"] for line in lines if line["event"] == "log"] == ["took 3 s"]
    assert lines[-1]["event"] == "job_ends"


def test_a_log_goes_on_where_a_resumed_job_left_it_and_says_why_it_ended(folder: Path) -> None:
    with JobLog(search(), Memory()):
        pass
    with pytest.raises(RuntimeError), JobLog(search(), Memory()):
        raise RuntimeError("the end")
    lines = [json.loads(line) for line in (folder / file_name("job")).read_text().splitlines()]
    assert [line["event"] for line in lines] == ["job_starts", "job_ends"] * 2
    assert lines[-1]["reason"] == "RuntimeError: the end"


class Known(Memory):
    """A run before this one ended every trial of an even number, and all their rungs were decided."""

    def ended_at(self, run: TrialRun) -> float | None:
        return None if run.number % 2 else 1.0

    def reached(self, trial_id: str, resource: int) -> bool:
        return int(trial_id[-3:]) % 2 == 0


def test_what_an_earlier_run_wrote_down_is_not_written_again(folder: Path) -> None:
    with JobLog(search(), Known()) as log:
        controller, _, _ = simulate(record=Watched(log))
        log.rung(Cut(bracket=0, resource=1, went_on=("job-000",), stopped=("job-002",)))
        log.rung(Cut(bracket=0, resource=1, went_on=("job-000",), stopped=("job-001",)))
    lines = [json.loads(line) for line in (folder / file_name("job")).read_text().splitlines()]
    odd = {name for name, run in controller.runs.items() if run.number % 2}
    assert {line["trial"] for line in lines if line["event"] == "trial_ends"} - {"untuned"} == odd
    assert [line["stopped"] for line in lines if line["event"] == "rung"][-1] == ["job-001"]
    assert not any(line["stopped"] == ["job-002"] for line in lines if line["event"] == "rung")


def test_a_job_runs_without_a_log_where_none_can_be_written(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / file_name("job")).mkdir()
    with JobLog(search(), Memory()) as log:
        controller, _, _ = simulate(record=Watched(log))
    assert controller.best() is not None
    mentions(caplog.text, "job", "logged", folder / file_name("job"))


def test_every_metric_carries_the_job_s_name(instruments: Instruments) -> None:
    watched()
    assert {tags[0] for _, tags in instruments.values} == {"job"}
    assert JOB != "job", "Prometheus' own label"
