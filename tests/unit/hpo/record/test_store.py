"""The store: what goes in comes out, and sums are those of the rows, whoever else writes at once."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hpo.record.job_view import best_trial, objective
from hpo.record.store import TrialRow
from hpo.record.tables import LedgerKind, decode, encode, parse
from hpo.record.totals import State
from tests.support.refusals import refuses
from tests.support.rows import bill, job, report, trial_with
from trainers.errors import ConfigurationError

KINDS = get_args(LedgerKind)


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
    text = json.dumps(encode(value), allow_nan=False)
    assert repr(decode(json.loads(text))) == repr(parse(text)) == repr(parse(text.encode())) == repr(value)


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
                resource=number,
                parent_resource=2 if number > 36 else 0,
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
    assert (store.units_trained("one"), store.units_trained("none")) == (40 * 39 / 2 - 3 * 2, 0)
    with refuses(ConfigurationError, field="nobody", remedy="bank"):
        store.billed("nobody")


def test_a_job_is_lost_while_it_should_run_and_its_writer_is_silent():
    assert not job(silent=60.0).lost
    assert job(silent=60.1).lost
    assert job(status="Stopping", silent=1000.0).lost
    assert not job(status="Stopped", silent=1000.0).lost


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
