"""Processes and whole clusters killed in the middle of a job: `hpo resume`, from another process, ends it alike."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hpo.store import Store
from tests.support.command import run as hpo
from tests.support.driving import CHANNELS, answer, run_until, tuner
from tests.support.resuming import DIGITS, torch_tuner

pytestmark = pytest.mark.fault

WORKERS = 2


@pytest.fixture(scope="module")
def expected(ray_cluster: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answer of a job of gangs of two that nothing interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    tuner(folder, workers=WORKERS).fit(CHANNELS, job_name="whole")
    return answer(folder, "whole")


def test_a_driver_killed_with_its_ray_is_followed_by_another_process(
    expected: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """That process is this one, and the cluster another."""
    assert run_until(tmp_path, 17, signal.SIGKILL, WORKERS).returncode == -signal.SIGKILL
    assert hpo(monkeypatch, "resume", "job", "--store", f"sqlite:///{tmp_path}/record.db", "--json") == 0
    assert json.loads(capsys.readouterr().out)["HyperParameterTuningJobStatus"] == "Completed"
    assert answer(tmp_path, "job") == expected
    with Store(f"sqlite:///{tmp_path}/record.db") as store:
        rows, summary = store.ledger("job"), store.job("job").summary
    assert sum(row.worker_seconds for row in rows) == pytest.approx(sum(summary["worker_seconds"].values()))
    assert len(summary["runs"]) == 2
    first, both = (sum(end - began for began, end in summary["runs"][:count]) for count in (1, 2))
    assert first < summary["wall_seconds"] <= both


def test_a_whole_cluster_may_go_under_a_driver_that_joined_it(
    expected: dict[str, Any], tmp_path: Path, short: str
) -> None:
    head = subprocess.Popen(
        [
            *("ray", "start", "--head", "--block", "--port=0", "--num-cpus=8", "--include-dashboard=false"),
            *("--node-ip-address=127.0.0.1", f"--temp-dir={short}", "--disable-usage-stats"),
        ],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        address = joined_at(head)
        script = textwrap.dedent(KILLS_ITS_CLUSTER)
        ended = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path), str(head.pid)],
            # How long Ray looks for a head that is gone.
            env={**os.environ, "RAY_ADDRESS": address, "RAY_gcs_rpc_server_reconnect_timeout_s": "10"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert ended.returncode != 0, "it cannot go on without its cluster"
    finally:
        head.kill()
        head.wait(30)
    ended = subprocess.run(
        [sys.executable, "-m", "hpo", "resume", "job", "--store", f"sqlite:///{tmp_path}/record.db"],
        env={**os.environ, "RAY_ADDRESS": ""},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert answer(tmp_path, "job") == expected


KILLS_ITS_CLUSTER = """
    import os, signal, sys
    from pathlib import Path
    from tests.support.cluster.machine import children
    from tests.support.driving import CHANNELS, Counting, tuner

    def kill(pid):
        # With all that it started: else its workers may end the job before they miss their cluster.
        below = children(pid)
        os.kill(pid, signal.SIGKILL)
        for child in below:
            kill(child)

    folder, head = Path(sys.argv[1]), int(sys.argv[2])
    counting = Counting(17, lambda: kill(head))
    tuner(folder, (counting,), 2, max_parallel_jobs=2).fit(CHANNELS, job_name="job")
"""


@pytest.fixture
def short() -> Iterator[str]:
    """A folder whose name leaves room for the names of Ray's sockets in it."""
    with tempfile.TemporaryDirectory(prefix="wb", ignore_cleanup_errors=True) as folder:
        yield folder


def joined_at(head: subprocess.Popen[str]) -> str:
    """The address that `ray start` prints."""
    assert head.stdout is not None
    for line in head.stdout:
        if "--address='" in line:
            return line.partition("--address='")[2].partition("'")[0]
    raise AssertionError("ray start ended without an address")


# ---- PyTorch

TORCH_SCRIPT = """
    import os, signal, sys
    from pathlib import Path
    from tests.support.driving import Counting
    from tests.support.resuming import DIGITS, torch_tuner

    folder, at, number = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    counting = Counting(at, lambda: os.kill(os.getpid(), number))
    torch_tuner(folder, (counting,)).fit(DIGITS, job_name="job")
"""


@pytest.fixture(scope="module")
def expected_of_torch(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The answer of a job that nothing interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    torch_tuner(folder).fit(DIGITS, job_name="whole")
    return answer(folder, "whole")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_pytorch_goes_on_to_the_same_bytes(
    expected_of_torch: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: signal.Signals,
) -> None:
    script = textwrap.dedent(TORCH_SCRIPT)
    arguments = [str(tmp_path), "7", str(int(number))]
    ended = subprocess.run([sys.executable, "-c", script, *arguments], timeout=300, check=False)
    assert ended.returncode == (143 if number is signal.SIGTERM else -number)
    store = f"sqlite:///{tmp_path}/record.db"
    assert hpo(monkeypatch, "resume", "job", "--store", store) == 2
    assert "give --allow-code if you trust it" in capsys.readouterr().err
    assert hpo(monkeypatch, "resume", "job", "--store", store, "--allow-code") == 0
    assert answer(tmp_path, "job") == expected_of_torch
