"""The server as a process: its first token, its end, slow clients, and jobs that outlive it."""

from __future__ import annotations

import re
import signal
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest

from hpo.record import Store
from tests.support.listed import job
from tests.support.rows import sqlite_url, until
from tests.support.served import served
from tests.support.small_job import write_job

KILLED_AFTER = (0.0, 0.2, 0.7, 1.5, 3.0)
"""Seconds after the process that creates the job has begun."""


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
def test_a_job_that_is_created_as_the_server_is_killed_is_there_whole_or_not_at_all(tmp_path: Path, home: Path) -> None:
    url = sqlite_url(tmp_path)
    text = re.sub("type: xgboost", "type: xgboost\n  num_workers: 0", write_job(tmp_path).read_text())
    with served(url, home) as (_, client):
        checked = client.post("/api/jobs?dry_run=true", content=text)
        assert checked.json()["valid"], checked.text
        wrong = client.post("/api/jobs", content=text.replace("max_jobs: 2", "max_jobs: 0"))
        assert (wrong.status_code, "max_jobs" in wrong.json()["error"]["message"]) == (400, True)
    begun: list[psutil.Process] = []
    for number, seconds in enumerate(KILLED_AFTER):
        with served(url, home) as (process, client):
            creating = threading.Thread(target=_post, args=(client, text.replace("name: tiny", f"name: tiny-{number}")))
            creating.start()
            until(lambda pid=process.pid: bool(psutil.Process(pid).children()))
            time.sleep(seconds)
            begun += psutil.Process(process.pid).children()
            process.kill()
            creating.join(60)
    _, left = psutil.wait_procs(begun, timeout=120)
    assert not left
    with Store(url) as store:
        until(lambda: all(row.status == "Completed" for row in store.jobs()), 120)
        names = {row.name for row in store.jobs()}
        assert f"tiny-{len(KILLED_AFTER) - 1}" in names  # By then its process has all that it needs.
        for name in names:
            assert len(store.trials(name)) >= 2
            assert [(act.kind, act.by, act.door) for act in store.acts(name)] == [("created", "first", "REST")]


def _post(client: httpx.Client, text: str) -> None:
    with suppress(httpx.HTTPError):  # The last may be answered before the server is killed.
        client.post("/api/jobs", content=text)
