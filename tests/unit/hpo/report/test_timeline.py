"""The ledger as time: bars add up to what was billed."""

import pytest
from hypothesis import given

from hpo.record.store import LedgerRow
from hpo.report.pictures.timeline import billed_until, spans
from tests.support.hpo.report.timeline import job, ledgers
from tests.support.records import CREATED, made_up


@given(ledgers())
def test_what_is_billed_rises_from_nothing_to_all_of_it(ledger):
    until = billed_until(job(ledger))
    times = [CREATED - 1, *sorted({row.at for row in ledger}), CREATED + 10_000]
    billed = [until(when) for when in times]
    assert billed == sorted(billed)
    assert billed[0] == 0
    assert billed[-1] == pytest.approx(sum(row.worker_seconds for row in ledger), rel=1e-6)


def test_a_gang_of_unknown_size_bills_when_it_books():
    lone = LedgerRow(job="job", gang="g", kind="training", worker_seconds=6.0, at=CREATED + 3)
    assert spans(job([lone])) == []
    until = billed_until(job([lone]))
    assert [until(CREATED + when) for when in (2.9, 3.0, 3.1)] == [0.0, 0.0, 6.0]


def test_assignments_say_how_far_their_trial_came():
    data = made_up()
    reached = {}
    for span in sorted(spans(data), key=lambda span: span.start):
        if span.kind == "training" and span.resource:
            reached.setdefault(span.trial_id, []).append(span.resource)
    for trial in data.trials:
        rungs = [rung for rung in data.job.plan["brackets"][trial.bracket]["rungs"] if rung <= trial.resource]
        assert reached.get(trial.trial_id, []) == rungs


def test_older_records_have_one_time_for_all_of_an_assignment():
    older, newer = spans(made_up(together=True)), spans(made_up())
    assert len(older) == len(newer)
    for before, after in zip(older, newer, strict=True):
        assert (after.trial_id, after.kind, after.resource) == (before.trial_id, before.kind, before.resource)
        assert (after.start, after.end) == pytest.approx((before.start, before.end), abs=1e-5)


def test_what_failed_reached_nothing():
    data = made_up()
    failed = {trial.trial_id for trial in data.trials if trial.status == "Failed"}
    assert failed
    assert {span.resource for span in spans(data) if span.trial_id in failed} == {0}
