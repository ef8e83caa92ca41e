"""What the probe measures in this process, and what it makes of figures; one test trains on Ray."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hpo.cost.throughput import PROBE_UNITS, WARM_UP_UNITS, ManyWorkers, Probed, job_on_gangs
from hpo.forecasts import one_worker
from hpo.forecasts.busy import Busy
from hpo.forecasts.one_worker import NotMeasured, OneWorker, measure_here, probe_assignment, rows_of
from hpo.forecasts.probe import Probe, verdict
from tests.support.assignments import segment
from tests.support.boosting import CHANNELS, STATIC
from tests.support.hpo.forecasts.probe import (
    Noting,
    csv,
    noting,  # noqa: F401  # Fixtures.
    trainer,
)
from tests.support.refusals import mentions, missing_names
from trainers import TorchTrainer, Trainer, XGBoostTrainer
from trainers.channels import open_channels
from trainers.channels.files import files
from trainers.gangs.in_process import cores
from trainers.gangs.messages import Report
from trainers.parameter_server.trainer import ParameterServerTrainer

ONE = OneWorker(
    rows=35010,
    features=59,
    part=1,
    load=0.2,
    threads=2,
    a_round=0.0023,
    worker_threads=1,
    a_worker_round=0.004,
    an_assignment=0.002,
)
MANY = ManyWorkers(workers=3, start=12.1, held=9.0, a_round=0.0081, an_assignment=0.02)
JOB: dict[str, Any] = {"unit": "round", "units": 364, "assignments": 46, "gangs": 4}


def test_small_data_is_told_what_distributing_costs() -> None:
    said = verdict(ONE, MANY, **JOB)
    mentions(said, "35,010 rows", "59 features", "round", "2.3 ms", "2 threads", "8.1 ms", "3 workers", "12.1 s")
    mentions(said, "num_workers=0", "1 s", "16 s", "distributing", "costs")


def test_large_data_is_told_what_it_gains() -> None:
    slow = replace(ONE, rows=3_501_000, part=18, a_round=1.2, a_worker_round=2.4)
    said = verdict(slow, replace(MANY, a_round=0.42), **JOB)
    mentions(said, "3,501,000 rows", "59 features", 18, "1.2 s")
    mentions(said, "7 min", "69 s", "distributing", 6.4)
    assert missing_names(said, "costs") == ["costs"]


def test_a_difference_within_the_noise_is_none() -> None:
    said = verdict(replace(ONE, a_round=0.043, a_worker_round=0.05), MANY, **JOB)
    mentions(said, "distributing", "difference")
    assert missing_names(said, "costs", "fast") == ["costs", "fast"]


def test_fewer_threads_that_are_faster_are_named() -> None:
    said = verdict(replace(ONE, a_round=0.6), MANY, **JOB)
    mentions(said, "4.0 ms", "1 thread", 'num_workers=0, resources_per_worker={"CPU": 1}')


def test_a_job_in_hand_has_one_side() -> None:
    said = verdict(ONE, None, **JOB)
    mentions(said, "35,010 rows", "59 features", "round", "2.3 ms", "2 threads", "364 rounds", "un-tuned", "1 s")
    assert missing_names(said, "distributing", "workers") == ["distributing", "workers"]


def test_what_was_not_measured_is_said_with_its_reason() -> None:
    none = NotMeasured(reason="it trains on a GPU")
    mentions(verdict(none, None, **JOB), "process", "it trains on a GPU")
    mentions(verdict(none, MANY, **JOB), "it trains on a GPU", "round", "8.1 ms", "3 workers", "12.1 s")


def test_a_unit_has_its_trainers_name() -> None:
    said = verdict(NotMeasured(reason="it trains on a GPU"), MANY, **{**JOB, "unit": "epoch"})
    mentions(said, "epoch", "8.1 ms")
    mentions(verdict(ONE, None, **{**JOB, "unit": "epoch"}), "364 epochs")
    mentions(verdict(ONE, None, **{**JOB, "unit": "unit"}), "unit", "2.3 ms")


def test_gangs_start_one_after_the_other() -> None:
    """100 gang-seconds, 10 s a start: one gang is done at 110 s, two at 65 s, and four at 50 s."""
    many = ManyWorkers(workers=3, start=10.0, held=10.0, a_round=1.0, an_assignment=0.0)
    times = [job_on_gangs(many, units=100, assignments=1, gangs=gangs) for gangs in (1, 2, 4)]
    assert times == [110.0, 65.0, 50.0]
    # Ray's own start comes before all of them.
    assert job_on_gangs(replace(many, before=9.0), units=100, assignments=1, gangs=2) == 74.0
    # More than the work needs make it no slower: they are not started.
    assert job_on_gangs(many, units=1, assignments=1, gangs=50) == 11.0


@given(st.floats(0.001, 100), st.floats(0, 60), st.floats(0, 1), st.integers(1, 10_000), st.integers(1, 50))
def test_a_job_is_never_done_before_its_first_gang_nor_slower_for_more_gangs(
    a_round: float, start: float, own: float, rounds: int, gangs: int
) -> None:
    many = ManyWorkers(workers=2, start=start, held=start, a_round=a_round, an_assignment=own)
    fewer, more = (job_on_gangs(many, units=rounds, assignments=5, gangs=count) for count in (gangs, gangs + 1))
    assert start <= more <= fewer


def test_a_gangs_side_comes_from_its_assignment() -> None:
    reports = [Report(step=step, metrics={}) for step in range(1, 6)]
    five = segment(*reports, training_seconds=0.5, checkpointing_seconds=0.1)
    many = ManyWorkers.of(Probed(segment=five, start_seconds=8.0, held_seconds=6.0, served_seconds=0.75), 3)
    assert many == ManyWorkers(workers=3, start=8.0, held=6.0, a_round=0.1, an_assignment=0.25)


def test_the_record_is_json() -> None:
    kept = json.loads(json.dumps(Probe(one=ONE, many=MANY, verdict="said").to_json()))
    assert (kept["one_worker"]["rows"], kept["many_workers"]["workers"], kept["verdict"]) == (35010, 3, "said")
    kept = Probe(one=NotMeasured(reason="why"), many=None, verdict="said").to_json()
    assert (kept["one_worker"], kept["many_workers"], kept["why_not"]) == (None, None, "why")
    assert kept["busy"] is None
    busy = Probe(one=ONE, many=None, verdict="said", busy=Busy(others=1.9, cores=2)).to_json()["busy"]
    assert Busy(**json.loads(json.dumps(busy))) == Busy(others=1.9, cores=2)


@pytest.mark.parametrize("workers", [0, 3])
def test_it_measures_the_job_it_is_for(workers: int) -> None:
    one = measure_here(trainer(workers), open_channels(CHANNELS))
    assert isinstance(one, OneWorker)
    assert (one.rows, one.features, one.part) == (2000, 6, 1)
    assert (one.threads, one.worker_threads) == (cores(None), 1 if workers else cores(None))
    assert min(one.load, one.a_round, one.a_worker_round) > 0
    assert one.an_assignment >= 0


def test_threads_are_those_asked_for() -> None:
    one = measure_here(trainer(3, {"resources_per_worker": {"CPU": 2}}), open_channels(CHANNELS))
    assert isinstance(one, OneWorker)
    assert (one.threads, one.worker_threads) == (cores(None), 2)
    one = measure_here(trainer(0, {"resources_per_worker": {"CPU": 2}}), open_channels(CHANNELS))
    assert isinstance(one, OneWorker)
    assert (one.threads, one.worker_threads) == (2, 2)


def test_a_cold_first_unit_is_not_what_is_said(noting: Noting, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that only the sleep moves, since how quick this machine is says nothing."""
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    Noting.sleeps = [9.0]
    one = measure_here(noting, open_channels(CHANNELS))
    assert isinstance(one, OneWorker)
    assert (one.a_round, one.cold) == (0.0, False)


def test_a_first_unit_that_takes_very_long_is_all_that_is_trained(
    noting: Noting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_worker, "MOST_SECONDS", 0.0)
    monkeypatch.setattr(one_worker, "COLD_SECONDS", 0.0)
    one = measure_here(noting, open_channels(CHANNELS))
    assert isinstance(one, OneWorker)
    assert Noting.asked == [WARM_UP_UNITS]
    assert (one.a_round, one.an_assignment, one.cold) == (one.a_worker_round, 0.0, True)


@pytest.mark.parametrize("kind", [TorchTrainer, ParameterServerTrainer])
def test_a_users_function_is_not_run_for_it(kind: type[Trainer]) -> None:
    def train(context: object) -> None:
        raise AssertionError("nobody asked for it")

    made = kind(train, hyperparameters={"per_worker_batch_size": 8})
    measured = measure_here(made, open_channels(CHANNELS))
    assert isinstance(measured, NotMeasured)
    mentions(measured.reason, "function")


def test_of_many_rows_a_part_is_measured_and_scaled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(one_worker, "MOST_ROWS", 500)
    one = measure_here(trainer(), open_channels(CHANNELS))
    assert isinstance(one, OneWorker)
    assert (one.rows, one.part) == (2000, 4)
    CHANNELS["train"].to_csv(tmp_path / "rows.csv", index=False)
    one = measure_here(trainer(), open_channels({**CHANNELS, "train": tmp_path / "rows.csv"}))
    assert isinstance(one, OneWorker)
    assert one.part > 1
    assert one.rows == pytest.approx(2000, abs=one.part)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (trainer(objective="reg:gamma"), "label"),
        (trainer(workers=0, device="cuda"), "GPU"),
        (trainer(scaling={"use_gpu": True}), "GPU"),
    ],
)
def test_what_cannot_be_measured_says_why(made: XGBoostTrainer, reason: str) -> None:
    one = measure_here(made, open_channels(CHANNELS))
    assert isinstance(one, NotMeasured)
    mentions(one.reason, reason)


def test_files_that_are_too_large_are_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    np.savetxt(tmp_path / "rows.csv", np.random.default_rng(0).random((100, 5)), delimiter=",")
    monkeypatch.setattr(one_worker, "MOST_FILE_CELLS", 100)
    one = measure_here(trainer(), open_channels({"train": tmp_path / "rows.csv"}))
    assert isinstance(one, NotMeasured)
    mentions(one.reason, "channel", "'train'", "large")


def test_its_assignment_belongs_to_no_trial() -> None:
    assignment = probe_assignment(STATIC, 7, "s3://bucket/job")
    assert (assignment.trial_id, assignment.start, assignment.stop) == ("probe", 0, PROBE_UNITS)
    assert assignment.save_to == "s3://bucket/job/probe/000005"


def test_of_a_large_csv_file_it_is_an_estimate_and_called_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "QUICK_BYTES", 10_000)
    channel = csv(tmp_path / "rows.csv", 4_321)
    rows, about = rows_of(channel)
    assert about
    assert rows == pytest.approx(4_321, rel=0.05)
    mentions(
        verdict(replace(ONE, rows=4_321, about=True, features=3), None, **JOB), "about", "4,300 rows", "3 features"
    )
    (tmp_path / "rows.csv").unlink()
    assert rows_of(channel) == (None, False)
    said = mentions(verdict(replace(ONE, rows=None, features=3), None, **JOB), "3 features")
    assert "rows" not in said
