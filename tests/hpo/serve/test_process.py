"""The server as a process: its first token, its end, slow clients, and jobs that outlive it."""

from __future__ import annotations

import re
import signal
import socket
import threading
import time
from pathlib import Path

import httpx
import pytest

from hpo.record import Store
from tests.support.listed import job
from tests.support.rows import sqlite_url, until
from tests.support.served import served
from tests.support.small_job import write_job


@pytest.mark.process
def test_the_server_ends_in_time_and_cuts_off_who_sends_no_request(tmp_path: Path, home: Path) -> None:
    url = sqlite_url(tmp_path)
    with Store(url) as store:
        job(store, "bank", values=[0.5])
    with served(url, home) as (process, client):
        assert client.get("/api/jobs").json()["total"] == 1
        with socket.create_connection(("127.0.0.1", client.base_url.port or 0)) as idle:
            idle.sendall(b"GET /api/jobs HTTP/1.1\r\nHost: ")
            idle.settimeout(30)
            with pytest.raises(ConnectionResetError):
                idle.recv(1) or _reset()
        with client.stream("GET", "/api/jobs/bank/events") as events:
            lines = events.iter_lines()
            assert next(line for line in lines if line.startswith("event:")) == "event: hello"
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert "event: end" in list(lines)
        assert process.wait(30) in (0, -signal.SIGTERM)
        assert time.monotonic() - began < 8


def _reset() -> None:
    raise ConnectionResetError


@pytest.mark.fault
@pytest.mark.process
def test_a_job_that_is_created_as_the_server_is_killed_is_there_whole(tmp_path: Path, home: Path) -> None:
    url = sqlite_url(tmp_path)
    text = re.sub("type: xgboost", "type: xgboost\n  num_workers: 0", write_job(tmp_path).read_text())
    with served(url, home) as (process, client):
        checked = client.post("/api/jobs?dry_run=true", content=text)
        assert checked.json()["valid"], checked.text
        wrong = client.post("/api/jobs", content=text.replace("max_jobs: 2", "max_jobs: 0"))
        assert (wrong.status_code, "max_jobs" in wrong.json()["error"]["message"]) == (400, True)
        creating = threading.Thread(target=_post, args=(client, text))
        creating.start()
        until(lambda: bool(_children(process.pid)))
        time.sleep(1.0)
        process.kill()
        creating.join(30)
    with Store(url) as store:
        until(lambda: any(row.status == "Completed" for row in store.jobs()), 120)
        assert [row.name for row in store.jobs()] == ["tiny"]
        assert len(store.trials("tiny")) >= 2
        assert [(act.kind, act.by, act.door) for act in store.acts("tiny")] == [("created", "first", "REST")]


def _post(client: httpx.Client, text: str) -> None:
    with pytest.raises(httpx.HTTPError):
        client.post("/api/jobs", content=text)


def _children(pid: int) -> str:
    return " ".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))
