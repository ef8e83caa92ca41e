"""Commands on whose a job is, where it runs and what it printed, and on jobs that are to be deleted."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from hpo.observers.lines import kept
from hpo.record.store import Store
from tests.support.hpo.cli.whereabouts import placed
from tests.support.lines import line_with
from tests.support.listed import hpo, job
from tests.support.refusals import mentions


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
