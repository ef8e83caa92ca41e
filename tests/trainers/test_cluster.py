"""The Ray cluster of a job: an open one is left as it was; one of its own ends with it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray

from trainers.cluster import cluster

ROOT = Path(__file__).resolve().parents[2]


def test_an_open_session_is_used_and_left_open(ray_cluster: None) -> None:
    said: list[str] = []
    before = ray.get_runtime_context().get_job_id()
    with cluster(1000, said.append) as found:
        assert not found.private
        assert ray.get_runtime_context().get_job_id() == before
        assert ray.cluster_resources()["CPU"] == 16
    assert ray.is_initialized()
    assert ray.get_runtime_context().get_job_id() == before
    assert not said


def test_an_open_session_is_left_open_after_an_error(ray_cluster: None) -> None:
    with pytest.raises(RuntimeError, match="in the job"), cluster(1):
        raise RuntimeError("in the job")
    assert ray.is_initialized()


@pytest.fixture
def short_folder() -> Iterator[str]:
    """A folder for temporary files whose path is short enough for Ray's sockets."""
    with tempfile.TemporaryDirectory(prefix="wb") as folder:
        yield folder


SCRIPT = """
    import os
    from trainers import XGBoostTrainer  # Before Ray, which is then kept to this machine.
    import ray
    from trainers.cluster import cluster

    said = []
    cpus = (os.cpu_count() or 1) + 3
    try:
        with cluster(cpus, said.append) as found:
            assert found.private
            assert ray.is_initialized()
            assert ray.cluster_resources()["CPU"] == cpus, ray.cluster_resources()
            raise RuntimeError("in the job")
    except RuntimeError as error:
        assert str(error) == "in the job", error
    assert not ray.is_initialized()
    (line,) = said
    assert f"{cpus} logical CPUs on {os.cpu_count()} cores" in line, line
    print("as it should be")
"""


@pytest.mark.slow
def test_a_cluster_of_its_own_ends_with_the_job(short_folder: str) -> None:
    """In a process of its own, since this one has the tests' session open. An error in the job changes nothing."""
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)],
        cwd=ROOT,
        env={**environment, "TMPDIR": short_folder},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "as it should be\n"
