"""The store: what goes in comes out, and sums are those of the rows, whoever else writes at once."""

from __future__ import annotations

import json
import math
import threading
from collections import Counter
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hpo.record.job_view import best_trial, objective
from hpo.record.maintenance import check
from hpo.record.store import Store, TrialRow
from hpo.record.tables import LedgerKind, decode, encode
from hpo.record.totals import State
from tests.support.at_once import GATE, LIGHT, at_once
from tests.support.refusals import refuses
from tests.support.rows import bill, job, report, trial_with
from trainers.errors import ConfigurationError

KINDS = get_args(LedgerKind)


# ---- round trips


def test_job_comes_back(store):
    spec = {
        "ranges": {"eta": [0.1, math.inf]},
        "workers": 3,
        "early_stopping": True,
        "note": None,
        "static": {"a": "1"},
    }
    row = job("other", created_at=2000.5, spec=spec, plan={"brackets": [{"rungs": [1, 3]}]}, reason="naïve ✓")
    store.create_job(row)
    found = store.job("other")
    assert found == replace(row, heartbeat=found.heartbeat)
    assert [each.name for each in store.jobs()] == ["other", "bank"]


def test_trial_comes_back_with_the_types_of_its_hyperparameters(store):
    values = {
        "depth": 3,
        "eta": 3.0,
        "tiny": 1e-300,
        "flag": True,
        "none": None,
        "text": "3",
        "big": 2**70,
        "nan": "NaN",
    }
    row = TrialRow(
        job="bank",
        trial_id="t0",
        number=0,
        status="Completed",
        hyperparameters=values,
        bracket=2,
        resource=30,
        objective=0.75,
        best_objective=0.8,
        best_resource=17,
        checkpoint="file:///c",
        checkpoint_bytes=5 * 2**30,
        failure_reason="",
        traceback="",
        attempts=2,
        started_at=1.25,
        ended_at=2.5,
    )
    bare = TrialRow(job="bank", trial_id="t1", number=1)
    with store.writer("bank") as writer:
        writer.trial(bare)
        writer.trial(row)
    assert store.trials("bank") == [row, bare]
    found = store.trials("bank")[0].hyperparameters
    assert list(found) == list(values)
    assert [type(value) for value in found.values()] == [type(value) for value in values.values()]


def test_numbers_of_numpy_come_back_as_python_s(store):
    with store.writer("bank") as writer:
        writer.report(report(np.int64(1), np.float32(0.5), metrics={"n": np.int32(2), "auc": np.float64(0.25)}))
        writer.trial(TrialRow(job="bank", trial_id="t0", number=0, hyperparameters={"a": np.arange(2), "b": (1, "x")}))
    assert store.reports("bank")[0].metrics == {"n": 2, "auc": 0.25}
    assert store.trials("bank")[0].hyperparameters == {"a": [0, 1], "b": [1, "x"]}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_null_as_objective_and_itself_as_metric(store, value):
    with store.writer("bank") as writer:
        writer.report(report(1, value))
        writer.trial(TrialRow(job="bank", trial_id="t0", number=0, objective=value))
    (row,) = store.reports("bank")
    assert row.objective is None
    assert repr(row.metrics) == repr({"auc": value})
    assert store.trials("bank")[0].objective is None


def test_text_that_no_database_takes_does_not_block_the_rows_behind_it(store):
    with store.writer("bank") as writer:
        writer.trial(
            TrialRow(job="bank", trial_id="t0", number=0, traceback="a\0b\udc80c", hyperparameters={"x": "\0"})
        )
        writer.report(report(1))
    assert store.trials("bank")[0].traceback == "a\ufffdb?c"
    assert len(store.reports("bank")) == 1


words = st.sampled_from(["NaN", "Infinity", "-Infinity", "\\NaN", "\\\\-Infinity", "\\"])
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])) | words
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts


@given(st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)))
def test_encode_and_decode_are_each_other_s_reverse_through_strict_json(value):
    assert repr(decode(json.loads(json.dumps(encode(value), allow_nan=False)))) == repr(value)


def test_rows_come_in_their_order(store):
    rows = [report(step, trial_id=trial) for trial in ("t1", "t0") for step in (10, 9, 1)]
    with store.writer("bank") as writer:
        writer.report(*rows)
        writer.ledger(*(bill(seconds) for seconds in range(20)))
        writer.ledger(bill(99, at=0.5, trial_id="t0", kind="starting"))
        for number, trial in enumerate(["z", "y"]):
            writer.trial(TrialRow(job="bank", trial_id=trial, number=number))
    assert [(row.trial_id, row.step) for row in store.reports("bank")] == [
        (t, s) for t in ("t0", "t1") for s in (1, 9, 10)
    ]
    assert [row.step for row in store.reports("bank", "t1")] == [1, 9, 10]
    assert [row.worker_seconds for row in store.ledger("bank")] == [99, *range(20)]
    assert [row.trial_id for row in store.trials("bank")] == ["z", "y"]


# ---- what follows from the rows


@pytest.mark.parametrize("value", ["last", "best"])
@pytest.mark.parametrize("aim", ["Maximize", "Minimize"])
def test_sums_are_those_of_the_rows(store, value, aim):
    spec = {"objective_value": value, "objective_type": aim}
    store.create_job(job("one", spec=spec))
    store.create_job(job("none", spec=spec))
    trials = [trial_with(job="one", trial_id="untuned", number=-1, objective=9.0, best_objective=9.0, ended_at=1.0)]
    for number in range(40):
        trials.append(
            trial_with(
                job="one",
                trial_id=f"t{number}",
                number=number,
                status=("Completed", "Failed", "Diverged", "Running", "Stopped")[number % 5],
                objective=None if number % 3 == 0 else number / 7 % 1,
                best_objective=None if number % 7 == 0 else number / 11 % 1,
                ended_at=None if number % 5 == 3 else 5.0,
                replaces="t0" if number > 36 else "",
            )
        )
    bills = [bill(0.1 * n, job="one", trial_id=f"t{n % 3}" if n % 4 else "", kind=KINDS[n % 4]) for n in range(60)]
    with store.writer("one") as writer:
        for each in trials:
            writer.trial(each)
        writer.ledger(*bills)
    row, totals = store.job("one"), store.totals(store.jobs())
    best = best_trial(replace(row, spec=spec), trials[1:])
    assert totals["one"].best == objective(row, best) is not None
    assert (totals["one"].forks, totals["none"].forks) == (3, 0)
    assert totals["one"].ended == sum(each.ended_at is not None for each in trials[1:]) > 0
    values = {each.trial_id: objective(row, each) is not None for each in trials[1:]}
    states = Counter(
        State(status=each.status, ended=each.ended_at is not None, valued=values[each.trial_id]) for each in trials[1:]
    )
    assert totals["one"].trials == states
    by_trial, by_kind = Counter(), Counter()
    for each in bills:
        by_trial[each.trial_id, each.kind] += each.worker_seconds
        by_kind[each.kind] += each.worker_seconds
    assert store.billed("one") == pytest.approx(dict(by_trial))
    assert totals["one"].seconds == pytest.approx(dict(by_kind))
    assert (totals["none"].ended, totals["none"].best, totals["none"].worker_seconds) == (0, None, 0.0)
    assert store.billed("none") == {}
    with refuses(ConfigurationError, field="nobody", remedy="bank"):
        store.billed("nobody")


def test_a_job_is_lost_while_it_should_run_and_its_writer_is_silent():
    assert not job(silent=60.0).lost
    assert job(silent=60.1).lost
    assert job(status="Stopping", silent=1000.0).lost
    assert not job(status="Stopped", silent=1000.0).lost


# ---- many at once


def test_threads_that_open_a_new_file_at_once_find_its_tables(tmp_path):
    problems: list[Exception] = []

    def open_and_use(url: str, name: str, gate: threading.Barrier) -> None:
        gate.wait()
        try:
            with Store(url) as store:
                store.create_job(job(name))
        except Exception as error:
            problems.append(error)

    for number in range(5):
        url, gate = f"sqlite:///{tmp_path}/{number}.db", threading.Barrier(6)
        threads = [threading.Thread(target=open_and_use, args=(url, f"j{n}", gate)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        with Store(url) as store:
            assert len(store.jobs()) == 6


# The packages' own __init__ would bring Ray, which takes seconds to import.
WRITE_A_JOB = f"""{LIGHT}
from hpo.record.store import JobRow, LedgerRow, ReportRow, Store, TrialRow
url, name = sys.argv[1:]
{GATE}
store = Store(url)
store.create_job(JobRow(name=name, created_at=1.0))
with store.writer(name) as writer:
    for trial in range(20):
        writer.trial(TrialRow(job=name, trial_id=f"t{{trial}}", number=trial))
        for step in range(100):
            row = ReportRow(
                job=name, trial_id=f"t{{trial}}", step=step, objective=step / 7, metrics={{"auc": step / 7}}, at=1.0
            )
            writer.report(row)
        writer.ledger(LedgerRow(job=name, gang="g", kind="training", worker_seconds=1.0, at=float(trial)))
        if trial % 5 == 0:
            writer.flush()
    writer.job(status="Completed")
"""


@pytest.mark.process
def test_processes_that_make_and_fill_one_database_at_once_lose_nothing(database):
    names = [f"job-{number}" for number in range(4)]
    with at_once(WRITE_A_JOB, [[database, name] for name in names]) as processes:
        for process in processes:
            process.communicate(timeout=120)
    assert [process.returncode for process in processes] == [0] * 4
    with Store(database) as store:
        for name in names:
            reports = store.reports(name)
            steps = [(row.trial_id, row.step) for row in reports]
            assert steps == [(t, s) for t in sorted(f"t{n}" for n in range(20)) for s in range(100)]
            assert all(row.objective == row.metrics["auc"] == row.step / 7 for row in reports)
            assert [row.worker_seconds for row in store.ledger(name)] == [1.0] * 20
            assert (store.job(name).status, store.job(name).lease) == ("Completed", "")
    assert check(database).rows == {
        "jobs": 4,
        "trials": 80,
        "reports": 8_000,
        "ledger": 80,
        "lines": 0,
        "additions": 0,
        "acts": 4,
    }


# ---- mistakes


def test_an_unknown_job_is_an_error_that_names_the_nearest(store):
    with refuses(ConfigurationError, field=("bnak", store.url), remedy="bank"):
        store.job("bnak")
    for call in (store.trials, store.reports, store.ledger, store.request_stop, store.writer, store.delete_job):
        with refuses(ConfigurationError, field="bnak", remedy="bank"):
            call("bnak")
    assert store.trials("bank") == store.reports("bank") == store.ledger("bank") == []


def test_a_name_is_given_once(store):
    with refuses(ConfigurationError, field=("bank", store.url), remedy="name"):
        store.create_job(job(created_at=5.0))
    assert store.job("bank").created_at == 1000.0
