"""The ledger as time: bars add up to what was billed."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given

from hpo.report.pictures.timeline import by_gang, spans, workers_of
from tests.support.hpo.report.timeline import job, ledgers


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
def test_a_gangs_size_follows_from_its_bookings(ledger):
    for entries in by_gang(ledger).values():
        untold = [replace(entry, workers=0) for entry in entries]
        if entries[0].at < entries[-1].at:
            assert workers_of(untold) == workers_of(entries) == entries[0].workers
        else:
            assert workers_of(untold) == 0
