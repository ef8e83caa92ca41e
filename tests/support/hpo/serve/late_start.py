"""A process of its own that creates a job, and hangs before or after the job is in the record."""

from __future__ import annotations

import time
from typing import Any

from hpo.record import JobRow, Store
from hpo.serve import starting
from hpo.serve.apart import answer

SECONDS = 0.5


def create(given: dict[str, Any]) -> dict[str, Any]:
    """Writes the job where it is told to, and goes on for longer than it may take."""
    starting.SECONDS = SECONDS
    with starting._in_time(given["store"], "late"):
        if given["written"]:
            with Store(given["store"]) as store:
                store.create_job(JobRow(name="late", created_at=time.time(), spec={}))
        time.sleep(4 * SECONDS if given["written"] else 60.0)
    return {"job": "late"}


if __name__ == "__main__":
    answer(create)
