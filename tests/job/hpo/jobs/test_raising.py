"""Limits that are raised where a job is resumed: by the command and from Python, and what is refused."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hpo import HyperparameterTuner, Prices
from hpo.jobs import driver
from hpo.jobs.build import opened
from hpo.jobs.raising import RAISED, raised
from hpo.jobs.stop_signals import Interrupts
from hpo.record.lease import this_process
from hpo.record.store import JobRow, Store
from hpo.search import Before
from tests.support.driving import CHANNELS, answer, row, tuner
from tests.support.hpo.jobs.raising import (
    Command,
    found,
    hpo,  # noqa: F401  # Fixtures.
)
from tests.support.lines import line_with
from tests.support.refusals import mentions, missing_names, refuses
from tests.support.rows import held_by
from trainers import ConfigurationError, DataError, LeaseError


def test_a_completed_job_goes_on_with_more_trials_behind_its_own(hpo: Command) -> None:
    hpo.tune()
    before, first = found()
    assert (before.status, len(first)) == ("Completed", 5)
    said = hpo.resume("tuning.max_jobs=9")
    line_with(said, "job", "max_jobs", "5", "9")
    assert any(re.findall(r"\d+", line) == ["5", "5"] for line in said.splitlines()), "its trials, and how many ended"
    verdict = before.summary["probe"]["verdict"]
    assert verdict
    assert verdict not in " ".join(said.split()), "it was on a smaller job"
    job, trials = found()
    assert (job.status, len(trials)) == ("Completed", 9)
    assert trials[:5] == first
    assert job.plan["brackets"][: len(before.plan["brackets"])] == before.plan["brackets"]
    assert job.spec["max_jobs"] == 9
    described = hpo("describe", "job")
    assert re.search(r"\b9\D+9\b", described)
    line_with(described, "max_jobs", "5", "9")
    # Once more, and the same command again.
    hpo.resume("tuning.max_jobs=12")
    job, more = found()
    assert more[:9] == trials
    assert [entry["max_jobs"] for entry in job.spec[RAISED]] == [[5, 9], [9, 12]]
    mentions(hpo.resume("tuning.max_jobs=12"), "job", "Completed")
    assert found() == (job, more)


def test_a_job_that_a_limit_stopped_goes_on_under_a_larger_one_to_its_own_end(hpo: Command, tmp_path: Path) -> None:
    hpo.tune("name=whole", "tuning.max_jobs=9")
    hpo.tune("tuning.max_jobs=9", "cost.max_cost=0.000001")
    job, trials = found()
    assert (job.status, len(trials) < 9) == ("Stopped", True)
    mentions(job.reason, "max_cost")
    hpo.resume()
    mentions(found()[0].reason, "max_cost")
    hpo.resume("cost.max_cost=1e6")
    job, trials = found()
    assert (job.status, job.reason, job.spec["max_cost"]) == ("Completed", "", 1e6)
    record = Path(tmp_path / "home" / "warmband.db")
    answers = []
    for name in ("whole", "job"):
        (tmp_path / "record.db").unlink(missing_ok=True)
        (tmp_path / "record.db").symlink_to(record)
        answers.append(answer(tmp_path, name))
    assert answers[0] == answers[1]
    hpo("report", "job", "--output", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text()
    assert "1,000,000.00 EUR" in page
    mentions(page, "max_cost", "1e-06", "1000000.0")


def test_time_that_was_used_counts_on(hpo: Command) -> None:
    """A job that used more than its time stops again at once, and goes on with more than that."""
    hpo.tune("cost.max_cost=0.000001")
    job, _ = found()
    with Store() as store:
        store.update_job("job", summary={**job.summary, "runs": [[0.0, 5000.0]]}, spec={**job.spec, "max_cost": None})
    hpo.resume()
    mentions(found()[0].reason, "max_runtime_in_seconds", "3600 s")
    refused = hpo.resume("tuning.max_runtime_in_seconds=4000", code=2)
    mentions(refused, "max_runtime_in_seconds", "4000", "job", "3600")
    assert re.search(r"\b5,0\d\d\.\d s\b", refused), "used"
    assert re.search(r"\b50\d\d\b", refused), "to be exceeded"
    hpo.resume("tuning.max_runtime_in_seconds=100000")
    job, trials = found()
    assert (job.status, len(trials)) == ("Completed", 5)
    mentions(hpo("describe", "job"), "100000 s")


RAISABLE = ("tuning.max_jobs", "tuning.max_runtime_in_seconds", "tuning.max_wait", "cost.max_cost")
REFUSED = [
    ("tuning.max_jobs=3", ("max_jobs", "3", "job", "5")),
    ("tuning.max_jobs=0", ("max_jobs", "0", "1", "100000")),
    ("tuning.max_jobs=100001", ("max_jobs", "100001", "1", "100000")),
    ("tuning.max_jobs=6.5", ("max_jobs", "6.5", "100000")),
    ("tuning.max_jobs='6'", ("max_jobs", "'6'", "100000")),
    ("tuning.max_jobs=null", ("max_jobs", "null")),
    ("tuning.max_runtime_in_seconds=true", ("max_runtime_in_seconds", "True", "1")),
    ("cost.max_cost=.nan", ("max_cost", "nan", "0")),
    ("cost.max_cost=.inf", ("max_cost", "inf", "0")),
    ("tuning.max_wait=9000", ("max_wait", "9000", "job")),
    ("tuning.max_parallel_jobs=9", ("tuning.max_parallel_jobs", "9", *RAISABLE)),
    ("trainer.num_workers=2", ("trainer.num_workers", "2", *RAISABLE)),
    ("tuning.max_cost=9", ("tuning.max_cost", "9", *RAISABLE)),
    ("tuning=9", ("tuning", "9", *RAISABLE)),
    ("max_jobs=9", ("max_jobs", "9", *RAISABLE)),
    ("tuning.max_jobs", ("key=value", "tuning.max_jobs=10")),
    ("tuning.max_jobs=[", ("tuning.max_jobs", "YAML")),
]
"""Keys, and the names in what is said of each."""


def test_time_in_which_it_waited_is_not_used_of_its_runtime(hpo: Command) -> None:
    hpo.tune("cost.max_cost=0.000001", "tuning.max_wait=90000")
    job, _ = found()
    with Store() as store:
        summary = {**job.summary, "runs": [[0.0, 5000.0]], "gang_seconds": 3700.0}
        store.update_job("job", summary=summary, spec={**job.spec, "max_cost": None})
    refused = hpo.resume("tuning.max_runtime_in_seconds=3650", code=2)
    mentions(refused, "max_runtime_in_seconds", "3650", "3600", "3,700.0 s")
    hpo.resume("tuning.max_runtime_in_seconds=4000")
    assert found()[0].status == "Completed"


def test_what_cannot_be_raised_is_refused_by_name_and_nothing_is_changed(hpo: Command) -> None:
    hpo.tune("cost.max_cost=0.000001")
    before = found()
    absent = {key: missing_names(hpo.resume(key, code=2), *names) for key, names in REFUSED}
    assert not {key: names for key, names in absent.items() if names}
    both = hpo.resume("tuning.max_parallel_jobs=9", "trainer.num_workers=2", code=2)
    mentions(both, "max_parallel_jobs", "9", "num_workers", "2")
    assert found() == before


def test_a_completed_job_goes_on_only_for_more_trials(hpo: Command) -> None:
    hpo.tune()
    before = found()
    refused = hpo.resume("tuning.max_runtime_in_seconds=9000", code=2)
    mentions(refused, "max_runtime_in_seconds", "9000", "job", "Completed", "max_jobs", "5")
    assert found() == before


def test_a_job_that_found_enough_does_not_go_on(hpo: Command) -> None:
    hpo.tune("tuning.completion.target_objective_metric_value=0.1")
    before = found()
    assert before[0].status == "Completed"
    refused = hpo.resume("tuning.max_jobs=9", code=2)
    mentions(refused, "job", "Completed", "target_objective_metric_value", "0.1")
    assert found() == before


def test_rows_in_memory_are_given_again_where_their_copies_are_gone(tmp_path: Path) -> None:
    tuner(tmp_path, max_jobs=5).fit(CHANNELS, job_name="job")
    first, before = answer(tmp_path, "job"), row(tmp_path)
    store = f"sqlite:///{tmp_path}/record.db"
    with refuses(DataError, field=("channel", "train"), remedy="resume(inputs=...)"):
        HyperparameterTuner.attach("job", store=store).resume(max_jobs=9)
    assert row(tmp_path).spec == before.spec
    assert row(tmp_path).status == "Completed"
    HyperparameterTuner.attach("job", store=store).resume(inputs=CHANNELS, max_jobs=9)
    again = HyperparameterTuner.attach("job", store=store)
    assert again.max_jobs == again.plan().trials == 9
    assert again.describe()["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] == 9
    assert again.describe()["Summary"]["raised"][0]["max_jobs"] == [5, 9]
    found = answer(tmp_path, "job")
    assert found["trials"][:5] == first["trials"][:5]
    assert found["untuned"]["value"] == first["untuned"]["value"]
    with refuses(ConfigurationError, field="max_parallel_jobs", value=9, remedy="max_jobs"):
        again.resume(max_parallel_jobs=9)


def test_a_driver_that_died_before_it_raised_the_limits_is_followed_by_one_that_does(tmp_path: Path) -> None:
    """As its supervisor starts it again: not to begin anew with a job that was stopped meanwhile, limits as before."""
    tuner(tmp_path, max_jobs=5).fit(CHANNELS, job_name="job")
    store = f"sqlite:///{tmp_path}/record.db"
    with Store(store) as record:
        record.update_job("job", status="InProgress", ended_at=None)
        held_by(record, {**this_process(), "started": -1.0}, "job")
    for _ in range(2):  # The second finds it Completed.
        driver.drive(store, "job", console=Console(file=io.StringIO()), inputs=CHANNELS, limits={"max_jobs": 9})
    job = row(tmp_path)
    assert (job.status, job.spec["max_jobs"], len(job.spec[RAISED])) == ("Completed", 9, 1)
    assert len(answer(tmp_path, "job")["trials"]) == 10, "the un-tuned run among them"


def test_who_read_the_limits_before_another_raised_them_does_not_drive(tmp_path: Path) -> None:
    made = tuner(tmp_path, max_jobs=5, prices=Prices(per_worker_hour=3600.0), max_cost=1e-6)
    made.fit(CHANNELS, job_name="job")
    store, old = f"sqlite:///{tmp_path}/record.db", row(tmp_path)
    raise_and_drive(store, max_jobs=9)
    with refuses(LeaseError, field=("job", "limits"), remedy="hpo resume job"):
        drive_row(made, old, store)
    with Store(store) as record:
        assert not record.job("job").lease
    assert row(tmp_path).spec["max_jobs"] == 9


def test_what_another_process_put_into_the_record_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening the data of a job that is resumed may take long."""
    tuner(tmp_path, max_jobs=5).fit(CHANNELS, job_name="job")
    store = f"sqlite:///{tmp_path}/record.db"

    def slowly(*arguments: Any) -> Any:
        with Store(store) as record:
            record.update_job("job", spec={**record.job("job").spec, "tags": [{"Key": "team", "Value": "churn"}]})
        return opened(*arguments)

    monkeypatch.setattr(driver, "opened", slowly)
    raise_and_drive(store, max_jobs=9)
    spec = row(tmp_path).spec
    assert (spec["max_jobs"], spec["tags"]) == (9, [{"Key": "team", "Value": "churn"}])


def raise_and_drive(store: str, **limits: float) -> None:
    driver.drive(store, "job", console=Console(file=io.StringIO()), resume=True, inputs=CHANNELS, limits=limits)


def drive_row(made: HyperparameterTuner, old: JobRow, store: str) -> None:
    with Interrupts(lambda text: None) as interrupts:
        driver.run(
            made.settings,
            old,
            driver.made_ready(made.settings, old),
            opened(made.settings, CHANNELS),
            None,
            interrupts,
            store=store,
            callbacks=(),
            console=Console(file=io.StringIO()),
            verbose=False,
        )


class Slow(dict[str, Any]):
    """Channels during whose opening something else happens."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__(CHANNELS)
        self.meanwhile = meanwhile

    def items(self) -> Any:
        self.meanwhile()
        return super().items()


def test_a_raise_of_another_process_while_data_are_opened_is_not_lost(tmp_path: Path) -> None:
    tuner(tmp_path, max_jobs=5).fit(CHANNELS, job_name="job")
    store = f"sqlite:///{tmp_path}/record.db"

    def other() -> None:
        if row(tmp_path).spec["max_jobs"] == 5:
            raise_and_drive(store, max_jobs=9)

    with refuses(LeaseError, field=("job", "limits"), remedy="hpo resume job"):
        HyperparameterTuner.attach("job", store=store).resume(inputs=Slow(other), max_jobs=7)
    assert [entry["max_jobs"] for entry in row(tmp_path).spec[RAISED]] == [[5, 9]]


def test_a_new_job_of_a_tuner_out_of_the_record_is_laid_out_from_its_settings(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/record.db"
    tuner(tmp_path, max_jobs=5).fit(CHANNELS, job_name="job")
    again = HyperparameterTuner.attach("job", store=store)
    again.max_jobs = 8
    again.fit(CHANNELS, job_name="larger")
    tuner(tmp_path, max_jobs=8).fit(CHANNELS, job_name="whole")
    assert answer(tmp_path, "larger") == answer(tmp_path, "whole")


def test_limits_of_a_record_without_a_plan_are_raised_as_those_of_one_that_has_it(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/record.db"
    for name in ("job", "older"):
        tuner(tmp_path, max_jobs=5, max_runtime_in_seconds=3600).fit(CHANNELS, job_name=name)
    with Store(store) as record:
        record.update_job("older", plan={})
        older = record.job("older")
    longer = {"max_runtime_in_seconds": 7200}
    assert raised(replace(older, status="Stopped"), longer, before=Before(), begun=5, now=1.0).plan == {}
    for name in ("job", "older"):
        HyperparameterTuner.attach(name, store=store).resume(inputs=CHANNELS, max_jobs=9)
    assert answer(tmp_path, "older") == answer(tmp_path, "job")
