"""A job as a study of Optuna: the same trials, the same best, and what optuna-dashboard shows of it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hpo.cli import app
from hpo.record.store import Store
from tests.support.hpo.export.files import (
    store,  # noqa: F401  # A fixture.
    url,
)
from tests.support.hpo.export.study import best_of, goal, trials_of
from tests.support.ports import free_port


@pytest.fixture
def dashboard(store: Store, tmp_path: Path) -> Iterator[str]:
    """The URL of a real optuna-dashboard, on the study that the command wrote."""
    arguments = ["export", "job", "--format", "optuna", "-o", goal(tmp_path), "--store", url(tmp_path)]
    done = CliRunner(env={"COLUMNS": "300"}).invoke(app, arguments)
    assert f"optuna-dashboard {goal(tmp_path)}" in done.stdout
    port = free_port()
    program = Path(sys.executable).with_name("optuna-dashboard")
    server = subprocess.Popen(
        [program, goal(tmp_path), "--host", "127.0.0.1", "--port", str(port), "--server", "wsgiref"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert server.poll() is None, "it ended"
                assert time.monotonic() < deadline, "it did not answer in a minute"
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)


def test_the_real_dashboard_shows_the_study(dashboard: str, store: Store) -> None:
    def get(path: str) -> Any:
        with urllib.request.urlopen(f"{dashboard}{path}", timeout=30) as answer:
            return json.loads(answer.read(), parse_constant=pytest.fail)

    [summary] = get("/api/studies")["study_summaries"]
    assert summary["study_name"] == "job"
    detail = get(f"/api/studies/{summary['study_id']}?after=0")
    rows = trials_of(store)
    assert len(detail["trials"]) == len(rows)
    best = {each["key"]: each["value"] for each in detail["best_trials"][0]["user_attrs"]}
    assert best["trial_id"] == best_of(store)["TrainingJobName"]
    curve = detail["trials"][3]["intermediate_values"]
    assert [point["value"] for point in curve] == [report.objective for report in store.reports("job", "job-003")]
