"""Trials that a person stops: obeyed at the next report, and decided the same way again wherever the driver died."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

from hypothesis import given, settings, strategies as st
from rich.console import Console

from hpo import HyperparameterTuner
from hpo.record import acting, user
from hpo.record.store import Store, TrialRow
from hpo.sagemaker import stop_trial
from tests.support.broken_off import Service, answer as answer_of, check_bills
from tests.support.driving import CHANNELS, Counting, tuner
from tests.support.fixtures.hpo_cli import store  # noqa: F401  # A fixture.
from tests.support.hpo.jobs.stopped_trials import (
    check_end_in_the_middle,
    check_end_of_time,
)
from tests.support.lines import line_with
from tests.support.listed import hpo, job
from tests.support.properties import examples
from tests.support.refusals import mentions
from tests.support.rows import until
from tests.support.stopping import KINDS, service_of

ASKS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), min_size=1, max_size=4)


def stopped(service: Service) -> dict[str, Any]:
    """Where persons' stops took effect, as the record has it."""
    rows = service.rows.trials.values()
    return {row.trial_id: (row.resource, row.objective, row.stopped) for row in rows if row.stopped}


def check_again(service: Service, expected: dict[str, Any]) -> None:
    """Whoever goes through a search that is over decides all of it as before, and trains nothing."""
    served = len(service.served)
    controller = service.drive()
    assert answer_of(service, controller) == expected
    assert len(service.served) == served


@settings(max_examples=examples(150), deadline=None)
@given(
    st.sampled_from(sorted(KINDS)),
    st.integers(1, 5),
    ASKS,
    st.lists(st.tuples(st.booleans(), st.integers(1, 40), st.integers(0, 3)), max_size=3),
    st.booleans(),
)
def test_a_search_of_which_trials_are_stopped_decides_again_as_it_did(
    kind: str, parallel: int, asks: list[tuple[int, int]], ends: list[tuple[bool, int, int]], exact: bool
) -> None:
    service = service_of(kind, parallel, asks, exact_from=lambda hyperparameters: exact)
    before: dict[str, Any] = {}
    for killed, after, unwritten in ends:
        ended = service.drive(**{"dies_at" if killed else "stop_at": after})
        if ended is None:
            service.rows.lose(unwritten)
        before = stopped(service)  # What was lost is decided anew.
        assert before.keys() <= service.rows.stops.keys()
    controller = service.drive()
    assert controller is not None
    check_bills(service, controller)
    assert before.items() <= stopped(service).items()
    for trial_id in service.rows.stops:
        row = service.rows.trials[trial_id]
        assert row.ended_at is not None
        assert row.stopped.get("by", "ada") == "ada"
    expected = answer_of(service, controller)
    check_again(service, expected)


class Stopping(Counting):
    """Stops a trial at the job's first report, and slows the job down until that is done."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.store = f"sqlite:///{folder}/record.db"
        self.said = ""

    def on_trial_report(self, trial: Any, report: Any) -> None:
        super().on_trial_report(trial, report)
        if self.reports == 1:
            with Store(self.store) as store:
                until(lambda: bool(store.trials("job")))
            HyperparameterTuner.attach("job", store=self.store).stop_training_job("job-000")
            self.said = hpo("trials", "job", "--store", self.store, columns=200)
            hpo("trials", "stop", "job", "job-000", "--store", self.store, columns=200)
        with Store(self.store) as store:
            if not any(row.stopped for row in store.trials("job")):
                time.sleep(0.1)


def test_it_is_stopped_from_python_and_shown(tmp_path: Path) -> None:
    stopping, said = Stopping(tmp_path), io.StringIO()
    console = Console(file=said, width=200)
    tuner(tmp_path, (stopping,), max_jobs=60, console=console).fit(CHANNELS, job_name="job")
    line_with(said.getvalue(), "1", "stopped", user())
    line_with(stopping.said, "job-000", user())
    with Store(stopping.store) as store:
        job, trials, acts = store.job("job"), store.trials("job"), store.acts("job")
    first = next(row for row in trials if row.number == 0)
    assert (job.status, first.status, first.stopped_by, first.failure_reason) == ("Completed", "Stopped", user(), "")
    assert [(act.kind, act.by, act.door) for act in acts] == [
        ("created", user(), "Python"),
        ("trial_stopped", user(), "Python"),  # Who asks as well, changes nothing.
    ]
    line_with(hpo("trials", "job", "--store", stopping.store, columns=200), "job-000", user())
    line_with(hpo("describe", "job", "--store", stopping.store, columns=200), "Python", "stopped", "job-000")
    described = json.loads(hpo("describe", "job", "--json", "--store", stopping.store))
    assert [(act["Kind"], act["Arguments"]) for act in described["Acts"]][1:] == [
        ("trial_stopped", {"trial": "job-000"})
    ]
    again = hpo("trials", "stop", "job", "job-000", "--store", stopping.store, code=2)
    mentions(again, "job-000", "Stopped", first.resource, user())


def test_one_that_trains_ends_in_the_middle(tmp_path: Path) -> None:
    check_end_in_the_middle(tmp_path, workers=0)


def test_one_whose_time_is_over_ends_and_so_does_the_untuned_run(tmp_path: Path) -> None:
    check_end_of_time(tmp_path, workers=0)


def test_what_has_ended_or_is_not_there_is_refused(store: Store) -> None:
    job(store, "done", values=[0.5])
    job(store, "busy", values=[0.5], status="InProgress", ended_at=None)
    for name, trial, names in (
        ("done", "done-000", ("done-000", "Completed", "30")),
        ("busy", "busy-000", ("busy-000", "Completed", "30", "hpo stop busy")),
        ("busy", "busy-0000", ("busy", "busy-0000", "busy-000")),
        ("busy", "untuned", ("busy", "untuned", "hpo trials busy")),
        ("bus", "busy-000", ("bus",)),
    ):
        mentions(hpo("trials", "stop", name, trial, code=2), *names)
    assert "hpo stop" not in hpo("trials", "stop", "done", "done-000", code=2)
    assert store.stops("busy") == {}


def test_acts_outlive_a_job_and_are_not_those_of_another_of_its_name(store: Store) -> None:
    job(store, "bank", values=[0.5], status="InProgress", ended_at=None)
    with store.writer("bank") as writer:
        writer.trial(TrialRow(job="bank", trial_id="bank-001", number=1, status="Running"))
    with acting(by="robot", door="REST"):
        stop_trial(store, "bank", "bank-001")
        assert store.request_stop("bank")
        assert store.request_stop("bank")  # That it stops already is nothing that was done.
    store.update_job("bank", status="Stopped", ended_at=1.0)
    hpo("delete", "bank", "--yes", "--keep-files", columns=200)
    kinds = ["created", "trial_stopped", "stopped", "deleted"]
    assert [act.kind for act in store.acts("bank")] == kinds
    assert {act.by for act in store.acts("bank")[1:3]} == {"robot"}
    assert (store.acts("bank")[-1].door, store.acts("bank")[-1].arguments["status"]) == ("command line", "Stopped")
    with acting(clone_of="other"):
        job(store, "bank", values=[0.5])
    assert [(act.kind, act.arguments) for act in store.acts("bank")] == [("cloned", {"of": "other"})]
    assert store.stops("bank") == {}
    said = hpo("acts", columns=200).splitlines()
    names = [
        ("created", "bank", "deleted"),
        ("stopped", "bank-001", "bank", "deleted"),
        ("stopped", "bank", "deleted"),
        ("deleted", "bank"),
        ("created", "other", "bank"),
    ]
    for line, of_act in zip(said, names, strict=True):
        mentions(line, *of_act)
    assert ("bank-001" in said[2], "deleted" in said[4]) == (False, False)
    assert len(json.loads(hpo("acts", "bank", "--json"))) == 1
    mentions(hpo("acts", "bnak", code=2), "bnak")
