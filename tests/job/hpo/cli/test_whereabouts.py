"""Commands on whose a job is, where it runs and what it printed, and on jobs that are to be deleted."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hpo.jobs.files.folder import DRIVER_LOG, FOLDER_ID, claim
from hpo.observers.lines import kept
from hpo.record.store import Store
from tests.support.hpo.cli.whereabouts import placed
from tests.support.lines import line_with
from tests.support.listed import hpo, job
from tests.support.refusals import mentions
from tests.support.rows import until


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


def program_job(store: Store, name: str) -> None:
    """A job of a program, of which one trial has ended and one failed."""
    job(store, name, values=[0.5, None])
    estimator = {**store.job(name).spec["estimator"], "options": {"entry_point": "train.py"}}
    store.update_job(name, spec={**store.job(name).spec, "estimator": estimator})


def test_a_trial_s_program_has_its_own_output_shown(store: Store, home: Path) -> None:
    program_job(store, "tuned")
    said = hpo("logs", "tuned", "--trial", "tuned-000", code=2)
    mentions(said, "tuned-000", "Completed", "worker 0", home / "logs" / "tuned" / "tuned-000.log")
    folder = home / "logs" / "tuned"
    folder.mkdir(parents=True)
    (folder / "tuned-000.log").write_text("epoch 1\nacc=0.5\n")
    (folder / "tuned-000.worker-1.log").write_text("epoch 1 of worker 1\n")
    (folder / "tuned-001.worker-1.log").write_text("ValueError: no such shard\n")
    (folder / "tuned-001.log").write_text("terminated\n")
    assert hpo("logs", "tuned", "--trial", "tuned-000") == "epoch 1\nacc=0.5\n"
    assert hpo("logs", "tuned", "--trial", "tuned-000", "--follow", "--tail", "1") == "acc=0.5\n"
    assert hpo("logs", "tuned", "--trial", "tuned-000", "--worker", "1") == "epoch 1 of worker 1\n"
    failed = store.trials("tuned")[-1]
    with store.writer("tuned") as writer:
        writer.trial(dataclasses.replace(failed, logs=f"10.0.0.7:{folder}/tuned-001.worker-1.log"))
    assert hpo("logs", "tuned", "--trial", "tuned-001") == "ValueError: no such shard\n"
    assert hpo("logs", "tuned", "--trial", "tuned-001", "--worker", "0") == "terminated\n"
    mentions(hpo("logs", "tuned", "--trial", "tuned-001", "--worker", "2", code=2), "worker 2", "tuned-001")
    mentions(hpo("logs", "tuned", "--worker", "1", code=2), "--worker", 1, "--trial")


def test_the_output_of_a_trial_that_trains_is_followed_to_its_end(store: Store, home: Path) -> None:
    program_job(store, "live")
    trial = store.trials("live")[1]  # Behind the un-tuned run.
    store.update_job("live", status="InProgress", ended_at=None)
    file = home / "logs" / "live" / "live-000.log"
    with store.writer("live") as writer:
        writer.trial(dataclasses.replace(trial, status="Running", ended_at=None))
        until(lambda: store.trials("live")[1].ended_at is None)

        def train() -> None:
            file.parent.mkdir(parents=True)
            for epoch in (1, 2, 3):
                with file.open("a") as stream:
                    stream.write(f"epoch {epoch}\n")
                time.sleep(0.4)
            writer.trial(trial)

        training = threading.Timer(0.5, train)
        training.start()
        said = hpo("logs", "live", "--trial", "live-000", "--follow")
        training.join()
    assert said == "epoch 1\nepoch 2\nepoch 3\n"


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


def test_deleting_takes_the_record_and_the_files(store: Store, tmp_path: Path, home: Path) -> None:
    for name in ("gone", "kept", "other"):
        log = tmp_path / "logs" / name / DRIVER_LOG
        placed(store, name, log=str(log))
        spec = {**store.job(name).spec, "storage_path": str(tmp_path / "models"), FOLDER_ID: name}
        store.update_job(name, spec=spec)
        for folder in (tmp_path / "models" / name, log.parent):
            claim(str(folder), store.job(name), begun=False, logs=folder == log.parent)
        (tmp_path / "models" / name / "inputs").mkdir(parents=True)
        (tmp_path / "models" / name / "inputs" / "train-0123456789ab0123456789ab.npz").write_text("x")
        log.write_text("x")
        (home / "logs" / name).mkdir(parents=True)
        (home / "logs" / name / f"{name}-000.log").write_text("x")
    (tmp_path / "models" / "gone" / "notes.txt").write_text("somebody's")
    said = hpo("delete", "gone", "--yes", columns=300)
    line, left = said.splitlines()
    mentions(line, "gone", 2, f"{tmp_path}/models/gone")
    mentions(left, f"{tmp_path}/models/gone/notes.txt")
    (tmp_path / "models" / "gone" / "notes.txt").unlink()
    (tmp_path / "models" / "gone").rmdir()
    mentions(hpo("delete", "kept", "--keep-files", "--yes", columns=300), "kept", f"{tmp_path}/models/kept")
    assert [each.name for each in store.jobs()] == ["other"]
    assert store.trials("other")
    assert sorted(each.name for each in (tmp_path / "models").iterdir()) == ["kept", "other"]
    assert sorted(each.name for each in (tmp_path / "logs").iterdir()) == ["kept", "other"]
    assert sorted(each.name for each in (home / "logs").iterdir()) == ["kept", "other"]
