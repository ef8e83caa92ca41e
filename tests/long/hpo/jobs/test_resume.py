"""Processes and whole clusters killed in the middle of a job: `hpo resume`, from another process, ends it alike."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hpo.record.store import Store
from tests.support.command import run as hpo
from tests.support.driving import CHANNELS, answer, run_until, tuner
from tests.support.heads import head  # noqa: F401  # A fixture.
from tests.support.processes import python

pytestmark = pytest.mark.fault

WORKERS = 1
"""A gang; of several workers and sizes, on several machines: tests/long/cluster/test_drivers.py."""


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answer of a job that nothing interrupts, in this process, which is that of a gang of one."""
    folder = tmp_path_factory.mktemp("whole")
    tuner(folder).fit(CHANNELS, job_name="whole")
    return answer(folder, "whole")


def test_a_job_whose_driver_and_then_whose_cluster_is_killed_ends_alike(
    ray_cluster: None,
    expected: dict[str, Any],
    tmp_path: Path,
    head: tuple[subprocess.Popen[str], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Three processes drive it: one is killed, one has its cluster killed, and the last, this one, is on another."""
    cluster, address = head
    # The figure is how long Ray looks for a head that is gone.
    joined = {**os.environ, "RAY_ADDRESS": address, "RAY_gcs_rpc_server_reconnect_timeout_s": "5"}
    assert run_until(tmp_path, 12, signal.SIGKILL, WORKERS, joined).returncode == -signal.SIGKILL
    ended = python("-c", KILLS_ITS_CLUSTER, str(tmp_path), str(cluster.pid), environment=joined)
    assert "the cluster is killed" in ended.stdout, ended.stderr
    assert ended.returncode != 0, "it cannot go on without its cluster"
    assert hpo(monkeypatch, "resume", "job", "--store", f"sqlite:///{tmp_path}/record.db", "--json") == 0
    assert json.loads(capsys.readouterr().out)["HyperParameterTuningJobStatus"] == "Completed"
    assert answer(tmp_path, "job") == expected
    with Store(f"sqlite:///{tmp_path}/record.db") as store:
        rows, summary = store.ledger("job"), store.job("job").summary
    assert sum(row.worker_seconds for row in rows) == pytest.approx(sum(summary["worker_seconds"].values()))
    assert len(summary["runs"]) == 3
    before, all_three = (sum(end - began for began, end in summary["runs"][:count]) for count in (2, 3))
    assert before < summary["wall_seconds"] <= all_three


KILLS_ITS_CLUSTER = """
    import io, os, signal, sys
    from rich.console import Console
    from hpo.jobs.driver import drive
    from tests.support.cluster.machine import children
    from tests.support.driving import Counting

    def kill(pid):
        # With all that it started: else its workers may end the job before they miss their cluster.
        below = children(pid)
        os.kill(pid, signal.SIGKILL)
        for child in below:
            kill(child)

    def kill_the_cluster():
        kill(int(sys.argv[2]))
        print("the cluster is killed", flush=True)

    counting = Counting(12, kill_the_cluster)
    drive(f"sqlite:///{sys.argv[1]}/record.db", "job", console=Console(file=io.StringIO()), callbacks=(counting,))
"""
