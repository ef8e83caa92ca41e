"""The ledger as time: bars add up to what was billed."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from hpo.record.store import JobRow, LedgerRow
from hpo.report.data import JobData
from hpo.report.pictures.timeline import billed_until, by_gang, spans, workers_of
from tests.support.records import CREATED, made_up

KINDS = ("starting", "training", "checkpointing", "idle")


@st.composite
def ledgers(draw) -> list[LedgerRow]:
    """What gangs of several sizes booked, one booking after another, each of a few entries without gaps."""
    rows = []
    for gang in range(draw(st.integers(1, 4))):
        workers, now = draw(st.integers(1, 5)), CREATED + draw(st.floats(0, 50))
        for trial in range(draw(st.integers(1, 5))):
            parts = draw(st.lists(st.tuples(st.sampled_from(KINDS), st.floats(0.01, 100)), min_size=1, max_size=3))
            now += sum(seconds for _, seconds in parts)
            rows += [
                LedgerRow(
                    job="job",
                    trial_id=f"t{trial}",
                    gang=f"g{gang}",
                    kind=kind,
                    worker_seconds=seconds * workers,
                    workers=workers,
                    at=now,
                    id=f"{len(rows) + place:04}",
                )
                for place, (kind, seconds) in enumerate(parts)
            ]
    return sorted(rows, key=lambda row: (row.at, row.id))


def job(ledger: list[LedgerRow]) -> JobData:
    return JobData(job=JobRow(name="job", created_at=CREATED), reports={}, ledger=tuple(ledger))


@given(ledgers())
def test_every_entry_is_a_span_and_a_gangs_spans_have_no_gaps(ledger):
    line = spans(job(ledger))
    assert len(line) == len(ledger)
    assert math.isclose(sum(span.worker_seconds for span in line), sum(row.worker_seconds for row in ledger))
    for gang in {span.gang for span in line}:
        own = [span for span in line if span.gang == gang]
        for before, after in pairwise(own):
            assert before.end == pytest.approx(after.start, abs=1e-5)
        assert [span.kind for span in own] == [row.kind for row in by_gang(ledger)[gang]]


@given(ledgers())
def test_what_is_billed_rises_from_nothing_to_all_of_it(ledger):
    until = billed_until(job(ledger))
    times = [CREATED - 1, *sorted({row.at for row in ledger}), CREATED + 10_000]
    billed = [until(when) for when in times]
    assert billed == sorted(billed)
    assert billed[0] == 0
    assert billed[-1] == pytest.approx(sum(row.worker_seconds for row in ledger), rel=1e-6)


@given(ledgers())
def test_a_gangs_size_follows_from_its_bookings(ledger):
    for entries in by_gang(ledger).values():
        untold = [replace(entry, workers=0) for entry in entries]
        if entries[0].at < entries[-1].at:
            assert workers_of(untold) == workers_of(entries) == entries[0].workers
        else:
            assert workers_of(untold) == 0


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
