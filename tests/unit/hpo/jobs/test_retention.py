"""Retention: what a trial needs next is never dropped, the best stay, and removing never delays a job."""

from __future__ import annotations

import logging
import math
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import sqlalchemy as sa
from hypothesis import given, strategies as st
from ray.tune.experiment import Trial

from hpo.jobs.files import checkpoints as module
from hpo.jobs.files.checkpoints import Checkpoints
from hpo.jobs.files.retention import Retention, dropped
from hpo.jobs.options import check_option
from hpo.jobs.recorder import JobRecord
from hpo.record.tables import JOBS
from hpo.search.trial import UNTUNED, TrialRun, rank_of
from tests.support.hpo.jobs.retention import (
    SEARCH,
    on_disk,
    quick,  # noqa: F401  # Of every test.
    run_job,
    writer,  # noqa: F401  # Fixtures.
)
from tests.support.refusals import mentions, refuses_each
from tests.support.rows import until
from tests.support.simulated import METRIC, simulate
from trainers import checkpoint, storage
from trainers.checkpoint import sized
from trainers.errors import ConfigurationError, DataError, WarmbandError
from trainers.gangs.messages import Assignment


def a_run(number: int, value: float = math.nan, resource: int = 0, **changes) -> TrialRun:
    trial = Trial("warmband", trial_id=UNTUNED if number < 0 else f"job-{number:03d}", stub=True)
    return TrialRun(
        trial=trial,
        number=number,
        hyperparameters={},
        seed=0,
        limit=27,
        value=value,
        best_value=value,
        resource=resource,
        **changes,
    )


@given(
    st.lists(
        st.tuples(
            st.integers(-1, 6),  # which trial
            st.sampled_from(["serve", "serve", "serve again", "end", "fail"]),
            st.sampled_from([0.1, 0.5, 0.9, math.nan, math.inf]),
        ),
        max_size=60,
    ),
    st.sampled_from([1, 2, 5, None]),
)
def test_what_is_needed_next_is_there_and_the_best_stay(events, num_to_keep):
    """Files as a disk would hold them, against what the definition says of them."""
    retention = Retention(num_to_keep)
    runs = {number: a_run(number) for number in range(-1, 7)}
    disk: dict[str, str] = {}
    ended: dict[int, bool] = {}
    written = 0
    for number, what, value in events:
        run = runs[number]
        if number in ended:
            continue
        if what == "serve" or (what == "serve again" and not run.checkpoint):
            run.resource += 1
            run.value, run.checkpoint = value, f"{run.id}/{run.resource}"
            run.manifest = sized(run.checkpoint, 10)
            disk[run.checkpoint] = run.id
            written += 10
        if what.startswith("serve"):
            older = retention.served(run)
            if older is not None:
                del disk[older.uri]
        else:
            ended[number] = what == "end"
            run.failure = "" if what == "end" else "broke"
            gone = retention.ended(run, rank_of(SEARCH.ranking, run))
            if gone is not None:
                del disk[gone.uri]
        for live in (run for number, run in runs.items() if number not in ended and run.checkpoint):
            assert live.checkpoint in disk
        assert len(disk) == len(set(disk.values())), "one a trial"
    trained = [number for number in ended if runs[number].checkpoint and number >= 0]
    finite = [number for number in trained if ended[number] and math.isfinite(runs[number].value)]
    best = sorted(finite, key=lambda n: (-runs[n].value, runs[n].resource, n))[:num_to_keep]
    stays = {*(trained if num_to_keep is None else best), *(n for n in runs if n not in ended or n < 0)}
    assert set(disk) == {runs[n].checkpoint for n in stays if runs[n].checkpoint}
    assert retention.totals == {"kept": len(disk), "kept_bytes": 10 * len(disk), "written_bytes": written}
    if num_to_keep is not None:
        assert {checkpoint.uri for checkpoint in retention.listed} == set(disk)


def test_it_holds_no_more_than_it_keeps():
    retention = Retention(3)
    for number in range(1000):
        run = a_run(number, value=number % 7, resource=1, checkpoint=f"{number}")
        retention.served(run)
        retention.ended(run, rank_of(SEARCH.ranking, run))
    assert [checkpoint.run.number for checkpoint in retention.listed] == [6, 13, 20]


def test_a_number_that_cannot_be_is_refused():
    refuses_each(
        [
            (partial(check_option, "num_to_keep", wrong), ("num_to_keep", repr(wrong), "1", "None"))
            for wrong in (0, -1, 2.0, True, "5")
        ],
        ConfigurationError,
    )


def test_what_was_dropped_says_how_to_keep_it():
    assert "num_to_keep=None" in dropped("job-003")
    assert "'job-003'" in dropped("job-003")


def test_a_driver_that_was_replaced_removes_nothing(writer, tmp_path, monkeypatch):
    """The new one writes into the same folder."""
    monkeypatch.setattr(module, "BATCH_SECONDS", 3600.0)  # All removals are left to the end.
    folder = tmp_path / "jobs" / "job"
    _, _, keeper = run_job(writer, str(folder))
    writer.flush()
    with writer.store._engine.begin() as connection:
        # A heartbeat that came in between would keep the lease, if it were still the first writer's.
        connection.execute(sa.update(JOBS).values(heartbeat=1.0, lease="gone"))
    with writer.store.writer("job"):
        storage.write(str(folder / "job-029" / "000001"), b"of the new driver")
        before = on_disk(folder)
        keeper.close(sweep=True)
        assert on_disk(folder) == before
    assert writer.lost_lease


def test_a_job_that_keeps_all_keeps_each_trial_s_last(writer, tmp_path):
    folder = tmp_path / "jobs"
    controller, _, keeper = run_job(writer, str(folder), num_to_keep=None)
    totals = keeper.close(sweep=True)
    lasts = {run.id: [f"{run.resource:06d}"] for run in controller.runs.values() if run.resource}
    assert on_disk(folder) == {**lasts, UNTUNED: ["000030"]}
    assert totals["kept"] == len(lasts) + 1


def test_a_trial_without_a_checkpoint_leaves_no_folder(writer, tmp_path):
    def broken(assignment: Assignment, step: int) -> float:
        storage.write(assignment.save_to, b"too early")
        raise RuntimeError("boom")

    folder = tmp_path / "jobs" / "job"
    keeper = Checkpoints(replace(SEARCH, storage_path=str(folder)), writer.flush)
    simulate(curve=broken, record=JobRecord(writer, METRIC, (), keeper), storage_path=str(folder))
    assert keeper.close(sweep=True) == {"kept": 0, "kept_bytes": 0, "written_bytes": 0}
    assert list(folder.iterdir()) == []


def end(keeper: Checkpoints, folder: Path, number: int, value: float) -> Path:
    """A trial that has trained for 3 units and ended; returns its file."""
    run = a_run(number, value, 3, checkpoint=str(folder / f"job-{number:03d}" / "000003"))
    storage.write(run.checkpoint, b"model")
    run.manifest = sized(run.checkpoint, 5)
    path = Path(run.checkpoint)
    run.trial.set_status(Trial.TERMINATED)
    keeper.trial(run)
    keeper.recorded()
    return path


def test_nothing_is_removed_before_the_store_has_the_newer_state(tmp_path):
    durable, asked = threading.Event(), threading.Event()

    def flush() -> None:
        asked.set()
        if not durable.wait(0.05):
            raise WarmbandError("rows still wait")

    keeper = Checkpoints(replace(SEARCH, storage_path=str(tmp_path)), flush, num_to_keep=1)
    first = end(keeper, tmp_path, 0, 0.5)
    second = end(keeper, tmp_path, 1, 0.9)
    assert asked.wait(60)
    assert first.exists()
    durable.set()
    until(lambda: not first.exists())
    assert keeper.close(sweep=True) == {"kept": 1, "kept_bytes": 5, "written_bytes": 10}
    assert second.exists()


def test_a_decision_is_not_carried_out_before_it_was_recorded(tmp_path):
    keeper = Checkpoints(replace(SEARCH, storage_path=str(tmp_path)), lambda: None, num_to_keep=1)
    path = tmp_path / "job-000" / "000003"
    run = a_run(0, math.nan, 3, checkpoint=str(path))
    storage.write(run.checkpoint, b"model")
    run.trial.set_status(Trial.TERMINATED)
    assert keeper.trial(run) == [run]
    assert run.checkpoint is None
    assert keeper._queue == []
    assert path.exists()
    keeper.close(sweep=True)
    assert not path.exists()


def test_of_several_files_the_manifest_goes_first(tmp_path, monkeypatch):
    keeper = Checkpoints(replace(SEARCH, storage_path=str(tmp_path)), lambda: None, num_to_keep=1)
    run = a_run(0, math.nan, 3, checkpoint=str(tmp_path / "job-000" / "000003"))
    parts = [checkpoint.save_part(run.checkpoint, name, b"half a model") for name in ("rank-0", "rank-1")]
    run.manifest = checkpoint.seal(run.checkpoint, parts)
    left, delete = [], storage.delete

    def seen(uri: str) -> None:
        delete(uri)
        left.append(sorted(path.name for path in tmp_path.rglob("*") if path.is_file()))

    monkeypatch.setattr(storage, "delete", seen)
    run.trial.set_status(Trial.TERMINATED)
    keeper.trial(run)
    keeper.recorded()
    keeper.close(sweep=False)
    assert left[0] == ["rank-0", "rank-1"], "a removal that breaks off leaves nothing that looks whole"
    assert not (tmp_path / "job-000").exists()


def test_what_cannot_be_removed_is_one_warning_and_the_job_goes_on(tmp_path, monkeypatch, caplog):
    def refuse(uri: str) -> None:
        raise DataError(f"{uri!r} cannot be removed: Permission denied")

    monkeypatch.setattr(storage, "delete", refuse)
    keeper = Checkpoints(replace(SEARCH, storage_path=str(tmp_path)), lambda: None, num_to_keep=1)
    with caplog.at_level(logging.WARNING):
        for number in range(5):
            end(keeper, tmp_path, number, number / 10)
        assert keeper.close(sweep=True)["kept"] == 1
    assert [record.getMessage().count("Permission denied") for record in caplog.records] == [1]


def test_closing_gives_up_at_its_deadline_and_says_where_to_look(tmp_path, monkeypatch, caplog):
    stuck = threading.Event()
    monkeypatch.setattr(storage, "delete", lambda uri: stuck.wait(300))
    keeper = Checkpoints(replace(SEARCH, storage_path=str(tmp_path)), lambda: None, num_to_keep=1)
    for number in range(3):
        end(keeper, tmp_path, number, number / 10)
    began = time.monotonic()
    with caplog.at_level(logging.WARNING):
        keeper.close(0.2, sweep=True)
    stuck.set()
    assert time.monotonic() - began < 150
    mentions(caplog.text, str(tmp_path))


def test_a_trial_that_waits_keeps_its_latest_when_a_job_breaks_off(tmp_path):
    keeper = Checkpoints(replace(SEARCH, storage_path=str(tmp_path)), lambda: None, num_to_keep=1)
    run = a_run(0)
    for rung in (1, 3):
        run.resource, run.checkpoint = rung, str(tmp_path / run.id / f"{rung:06d}")
        storage.write(run.checkpoint, b"model")
        assert keeper.trial(run) == []
        keeper.recorded()
    end(keeper, tmp_path, 1, 0.1)
    keeper.close(sweep=True)
    assert on_disk(tmp_path) == {"job-000": ["000003"], "job-001": ["000003"]}
