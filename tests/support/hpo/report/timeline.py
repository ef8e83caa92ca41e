"""Ledgers of gangs, drawn by Hypothesis."""

from hypothesis import strategies as st

from hpo.record.store import JobRow, LedgerRow
from hpo.report.data import JobData
from tests.support.records import CREATED

KINDS = ("starting", "training", "checkpointing", "idle")


@st.composite
def ledgers(draw) -> list[LedgerRow]:
    """Draw bookings of gangs of several sizes, each of a few entries without gaps."""
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
