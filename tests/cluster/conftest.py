"""A cluster of several machines for all tests, and what jobs answer that nothing happens to."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.cluster.drive import table
from tests.support.cluster.helper_machines import HelperMachines, Machines
from tests.support.cluster.jobs import Answer
from tests.support.cluster.machine import possible
from tests.support.cluster.ray_machines import RayMachines, until
from tests.support.cluster.undisturbed import undisturbed

KIND = RayMachines if possible() and os.environ.get("WARMBAND_TEST_MACHINES") != "helper" else HelperMachines
"""The second can be asked for, to test it where the first is possible."""


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says which kind of cluster these tests ran on."""
    terminalreporter.write_line(f"clusters of several machines (tests/cluster) were made of: {KIND.kind}")


def add(cluster: Machines, workers: int) -> None:
    """Adds so many machines, at once where that is possible: most of `ray start` is waiting."""
    with ThreadPoolExecutor(max(1, workers) if cluster.own_network else 1) as pool:
        list(pool.map(lambda _: cluster.add(), range(workers)))


WORKERS = 2


@pytest.fixture(scope="module")
def cluster() -> Iterator[Machines]:
    """A head of 4 logical CPUs, for all tests of a module; take `machines` for others beside it."""
    with KIND() as made:
        yield made


@pytest.fixture
def machines(cluster: Machines, request: pytest.FixtureRequest) -> Machines:
    """The cluster with two workers of 4 logical CPUs each, or as many as its parameter says.

    Those that an earlier test killed are replaced, and those that are too many go.
    """
    workers = getattr(request, "param", WORKERS)
    for machine in cluster.machines[workers + 1 :]:
        cluster.kill(machine)
    add(cluster, workers + 1 - len(cluster.machines))
    return cluster


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Answer]:
    """What a job answers that nothing happens to; see `undisturbed` for what it is made of."""

    @cache
    def answer(**job: Any) -> Answer:
        return undisturbed(tmp_path_factory.mktemp("undisturbed"), **job)

    return answer


PUT = """
import json, pathlib, sys
from trainers import storage
base, folder, places = sys.argv[1:]
storage.check_writable(folder)
for name, uri in json.loads(places).items():
    storage.write(uri, pathlib.Path(base, f"{name}.csv").read_bytes())
"""


@pytest.fixture
def stored(machines: Machines) -> Iterator[dict[str, Any]]:
    """Where a job's channels are and its models go: on an S3-compatible server beside the head.

    The keys to it are in the machines' environment. The channels are the same as those of a job without. Machines
    without a network of their own have a shared folder instead: a server there would listen to more than them.
    """
    if not machines.own_network:
        yield {"storage_path": str(machines.base / "shared")}
        return
    port = 5000  # Of the machine's own, where nothing else listens.
    address = f"http://{machines.head.address}:{port}"
    with (machines.base / "s3.log").open("w") as log:
        server = machines.start(["python", "-m", "moto.server", "-H", machines.head.address, "-p", str(port)], log)
    try:
        # The machine's network has no way in from here.
        answers = ["bash", "-c", f"exec 3<>/dev/tcp/{machines.head.address}/{port}"]
        until(lambda: machines.run(answers, timeout=30).returncode == 0, "the S3 server", 60)
        bucket = f"s3://warmband/{{}}?endpoint_override={quote(address, safe='')}&region=us-east-1"
        bucket += "&allow_bucket_creation=true"
        inputs = {name: bucket.format(f"data/{name}.csv") for name in ("train", "validation")}
        table(600, 1).to_csv(machines.base / "train.csv", index=False)
        table(300, 2).to_csv(machines.base / "validation.csv", index=False)
        put = ["python", "-c", PUT, machines.base, bucket.format("data"), json.dumps(inputs)]
        ran = machines.run(put, timeout=60)
        assert ran.returncode == 0, ran.stdout
        yield {"storage_path": bucket.format("jobs"), "inputs": inputs}
    finally:
        machines.end(server)
