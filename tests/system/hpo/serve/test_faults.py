"""The server as a process under faults: databases that are away, requests that are none, clients that take nothing."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpo.record import Store
from tests.support.listed import job
from tests.support.postgres import PASSWORD, Postgres
from tests.support.rows import until
from tests.support.served import served


@pytest.mark.fault
def test_the_server_goes_on_once_its_database_is_back(tmp_path: Path, home: Path) -> None:
    with Postgres("fsync=off") as database:
        url = database.new_database()
        database.stop()
        with served(url, home, database_seconds=3.0) as (process, client):
            refused = client.get("/api/jobs")
            assert (refused.status_code, refused.json()["error"]["type"]) == (503, "DatabaseAway"), refused.text
            assert int(refused.headers["retry-after"]) > 0
            assert PASSWORD not in refused.text
            assert client.post("/api/jobs/bank/stop").status_code == 503
            database.start()
            with Store(url) as store:
                job(store, "bank", values=[0.5])
            until(lambda: client.get("/api/jobs/bank").status_code == 200)
            with client.stream("GET", "/api/jobs/bank/events") as events:
                lines = events.iter_lines()
                told(lines, "hello")
                database.stop(signal.SIGQUIT)
                told(lines, "away")
                for path in ("jobs", "jobs/bank", "jobs/bank/lines", "jobs/other"):
                    until(lambda path=path: client.get(f"/api/{path}").status_code == 503)
                database.start()
                told(lines, "back")
            until(lambda: client.get("/api/jobs/bank").status_code == 200)
            database.freeze()
            until(lambda: client.get("/api/jobs/bank").status_code == 503)
            assert client.get("/healthz").status_code == 200
            database.thaw()
            until(lambda: client.get("/api/jobs/bank").status_code == 200)
            assert client.post("/api/jobs/bank/stop").status_code == 202
            assert process.poll() is None


def told(lines: Iterator[str], kind: str) -> None:
    """Reads events until one of a kind; the client's timeout bounds it."""
    assert any(line == f"event: {kind}" for line in lines), kind
