"""Commands on whose a job is, where it runs and what it printed, and on jobs that are to be deleted."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hpo import HyperparameterTuner
from hpo.observers.lines import kept
from hpo.record.store import JobRow, Store
from tests.support.boosting import make
from tests.support.listed import hpo, job, spec
from tests.support.refusals import mentions, missing_names, refuses
from tests.support.terminals import terminal_of
from trainers.errors import ConfigurationError

ROOT = Path(__file__).resolve().parents[3]


def line_with(text: str, *names: object) -> str:
    """The first line that has all these names."""
    found = [line for line in text.splitlines() if not missing_names(line, *names)]
    assert found, f"no line with {names} in:\n{text}"
    return found[0]


def placed(store: Store, name: str, **driver: Any) -> None:
    """A job that has ended, whose driver knew more of where it ran."""
    job(store, name, values=[0.5, None])
    with store.writer(name, driver):
        pass


def test_a_wide_terminal_shows_owners_and_places(store: Store) -> None:
    placed(store, "here", host="box", log="/logs/driver.log")
    placed(store, "there", submission_id="there", address="http://head:8265")
    store.update_job("there", owner="ada", spec={**store.job("there").spec, "tags": [{"Key": "team", "Value": "x"}]})
    head, there, here = hpo("jobs", columns=120).splitlines()
    assert head.split()[-3:] == ["owner", "runs", "on"]
    assert (there.split()[-2:], here.split()[-2:]) == (["ada", "http://head:8265"], ["-", "box"])
    assert "owner" not in hpo("jobs", columns=80)
    page = hpo("describe", "there", columns=120)
    for names in (("owner", "ada"), ("Ray", "there", "http://head:8265"), ("tags", "team=x")):
        line_with(page, *names)
    line_with(hpo("describe", "here", columns=120), "log", "/logs/driver.log")
    first, second = json.loads(hpo("jobs", "--json"))
    assert (first["Owner"], first["Driver"]["address"]) == ("ada", "http://head:8265")
    assert not second["Driver"]["holds_the_lease"]


def test_logs_come_from_the_file_of_a_background_job(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "driver.log"
    file.write_text("one\ntwo\nthree\n")
    placed(store, "here", log=str(file))
    assert hpo("logs", "here") == hpo("logs", "here", "--follow") == "one\ntwo\nthree\n"
    assert hpo("logs", "here", "--tail", "2") == "two\nthree\n"
    assert hpo("logs", "here", "--tail", "0") == ""


@pytest.mark.parametrize(
    "driver",
    [
        {},
        {"log": "/nowhere/driver.log"},
        {"host": "box", "log": "/logs/driver.log"},
        {"submission_id": "said", "address": "http://127.0.0.1:9"},
    ],
    ids=["foreground", "file gone", "another machine", "cluster gone"],
)
def test_logs_that_are_not_to_be_had_from_here_come_from_the_record(store: Store, driver: dict[str, Any]) -> None:
    placed(store, "said", **driver)
    mentions(hpo("logs", "said", code=2), "record", "'said'", "hpo describe said")
    for texts in (("one", "two"), ("three [red]is[/red] the last",)):  # Two drivers, one after the other.
        with store.writer("said", driver) as writer:
            list(map(kept(writer), texts))
    said = "one\ntwo\nthree [red]is[/red] the last\n"
    assert hpo("logs", "said") == hpo("logs", "said", "--follow") == said
    assert hpo("logs", "said", "--tail", "1") == "three [red]is[/red] the last\n"


def test_a_failed_trials_worker_has_its_output_shown(store: Store, tmp_path: Path) -> None:
    job(store, "trained", values=[0.5, None])
    said = hpo("logs", "trained", "--trial", "trained-000", code=2)
    mentions(said, "trained-000", "Completed", "ray logs cluster")
    said = hpo("logs", "trained", "--trial", "trained-001", code=2)
    mentions(said, "trained-001", "Failed", "ray logs cluster", "hpo trials trained --tracebacks")
    said = hpo("logs", "trained", "--trial", "trained-01", code=2)
    mentions(said, "'trained'", "trained-01", "trained-001")
    (tmp_path / "worker.err").write_text("loading\nboom\n")
    failed = store.trials("trained")[-1]
    with store.writer("trained") as writer:
        writer.trial(dataclasses.replace(failed, logs=f"10.0.0.7:{tmp_path}/worker.err"))
    assert hpo("logs", "trained", "--trial", "trained-001", "--tail", "1") == "boom\n"
    (tmp_path / "old").mkdir()
    (tmp_path / "worker.err").rename(tmp_path / "old" / "worker.err")  # As Ray does it some time later.
    assert hpo("logs", "trained", "--trial", "trained-001", "--tail", "1") == "boom\n"
    (tmp_path / "old" / "worker.err").unlink()
    mentions(hpo("logs", "trained", "--trial", "trained-001", code=2), "trained-001", "worker.err", "10.0.0.7")


@pytest.mark.parametrize(
    ("tags", "value"),
    [
        (["team"], "'team'"),
        ("team", "'team'"),
        ({"team": 1}, 1),
        ([{"Key": "team"}], {"Key": "team"}),
        ([{"key": "team", "value": "x"}], {"key": "team", "value": "x"}),
        ({"": "x"}, "''"),
        ([3], 3),
    ],
)
def test_tags_that_are_none_are_refused_before_a_job_begins(tags: Any, value: Any) -> None:
    with refuses(ConfigurationError, field="tags", value=value, remedy="{'team': 'churn'}"):
        make(workers=0, tags=tags)
    with refuses(ConfigurationError, field=("tags", "key"), value="'a'", remedy="2"):
        make(workers=0, tags=[{"Key": "a", "Value": "x"}, {"Key": "a", "Value": "y"}])


def test_tags_may_be_given_by_name_or_as_sagemaker_has_them(store: Store) -> None:
    by_name = make(workers=0, tags={"team": "churn"})
    assert by_name.tags == make(workers=0, tags=[{"Key": "team", "Value": "churn"}]).tags
    store.create_job(JobRow(name="tagged", created_at=1.0, spec=by_name.settings.to_json({}, 1)))
    assert json.loads(hpo("describe", "tagged", "--json"))["Summary"]["tags"] == {"team": "churn"}
    assert HyperparameterTuner.attach("tagged").tags == by_name.tags


def test_a_job_with_tags_of_an_older_version_that_are_none_hides_no_other(store: Store) -> None:
    job(store, "other", values=[0.5])
    job(store, "old", values=[0.5], spec={"tags": ["team"]})
    assert {each["HyperParameterTuningJobName"] for each in json.loads(hpo("jobs", "--json"))} == {"other", "old"}
    line_with(hpo("describe", "old"), "tags", "team=")
    assert HyperparameterTuner.attach("old").tags == [{"Key": "team", "Value": ""}]


def test_a_trial_without_workers_has_no_workers_output(store: Store) -> None:
    job(store, "here", values=[0.5, None])
    estimator = {**store.job("here").spec["estimator"], "scaling": {"num_workers": 0}}
    store.update_job("here", spec={**store.job("here").spec, "estimator": estimator})
    said = {number: hpo("logs", "here", "--trial", f"here-00{number}", code=2) for number in (0, 1)}
    mentions(said[0], "here-000", "Completed", "worker", "process", "hpo trials here")
    mentions(said[1], "here-001", "Failed", "worker", "process", "hpo trials here --tracebacks")


# ---- deleting


def test_where_nobody_can_be_asked_nothing_is_deleted_without_yes(store: Store, tmp_path: Path) -> None:
    (tmp_path / "models" / "stays").mkdir(parents=True)
    placed(store, "stays")
    store.update_job("stays", spec={**store.job("stays").spec, "storage_path": str(tmp_path / "models")})
    for options in ([], ["--keep-files"]):
        said = hpo("delete", "stays", *options, code=2, columns=300)
        mentions(said, "stays", "terminal", 2, " ".join(["hpo delete stays --yes", *options]))
        assert ("--keep-files" in said) == bool(options)
        assert [each.name for each in store.jobs()] == ["stays"]
        assert (tmp_path / "models" / "stays").is_dir()


def test_deleting_takes_the_record_and_the_files(store: Store, tmp_path: Path) -> None:
    for name in ("gone", "kept", "other"):
        (tmp_path / "models" / name / "inputs").mkdir(parents=True)
        (tmp_path / "models" / name / "inputs" / "train.parquet").write_text("x")
        (tmp_path / f"{name}.log").write_text("x")
        placed(store, name, log=str(tmp_path / f"{name}.log"))
        store.update_job(name, spec={**store.job(name).spec, "storage_path": str(tmp_path / "models")})
    said = hpo("delete", "gone", "--yes", columns=300)
    [line] = said.splitlines()
    mentions(line, "gone", 2, f"{tmp_path}/models/gone")
    mentions(hpo("delete", "kept", "--keep-files", "--yes", columns=300), "kept", f"{tmp_path}/models/kept")
    assert [each.name for each in store.jobs()] == ["other"]
    assert store.trials("other")
    assert sorted(each.name for each in (tmp_path / "models").iterdir()) == ["kept", "other"]
    assert sorted(each.name for each in tmp_path.glob("*.log")) == ["kept.log", "other.log"]


def test_a_job_that_runs_is_not_deleted(store: Store) -> None:
    store.create_job(JobRow(name="starting", created_at=time.time(), spec=spec()))
    mentions(hpo("delete", "starting", code=2), "starting", "InProgress", "hpo stop starting")
    job(store, "closing", values=[0.5])
    with store.writer("closing"):
        mentions(hpo("delete", "closing", "--yes", code=2), "closing", "hpo stop closing")
    assert len(store.jobs()) == 2


@pytest.mark.process
def test_a_job_that_goes_on_elsewhere_while_the_question_waits_keeps_its_files(store: Store, tmp_path: Path) -> None:
    placed(store, "gone", log=str(tmp_path / "gone.log"))
    store.update_job("gone", spec={**store.job("gone").spec, "storage_path": str(tmp_path)})
    for file in (tmp_path / "gone.log", tmp_path / "gone" / "model"):
        file.parent.mkdir(exist_ok=True)
        file.write_text("x")
    command = [sys.executable, "-m", "hpo", "delete", "gone"]
    with terminal_of(command, {**os.environ, "PYTHONPATH": str(ROOT)}) as terminal:
        terminal.read_until("[y/N]", 60.0)
        with store.writer("gone"):
            terminal.press(b"y\n")
            terminal.read_until(None, 60.0)
    assert terminal.process.wait(60) == 2
    mentions(terminal.seen, "'gone'", f"process {os.getpid()}")
    assert (tmp_path / "gone.log").exists()
    assert (tmp_path / "gone" / "model").exists()
    assert store.trials("gone")


def test_files_on_another_machine_stay_and_are_named(store: Store) -> None:
    placed(store, "away", host="box")
    store.update_job("away", spec={**store.job("away").spec, "storage_path": "/models"})
    mentions(hpo("delete", "away", "--yes", columns=200), "away", "/models/away", "box")
