"""A cluster of several machines for all tests, and what jobs answer on it that nothing happens to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.cluster.helper_machines import HelperMachines, Machines
from tests.support.cluster.jobs import Answer, Job
from tests.support.cluster.machine import possible
from tests.support.cluster.ray_machines import RayMachines

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


@pytest.fixture(scope="session")
def cluster() -> Iterator[Machines]:
    """A head of 4 logical CPUs, for all tests; take `machines` for others beside it."""
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


@pytest.fixture(scope="session")
def expected(cluster: Machines) -> Callable[[str], Answer]:
    """What a job of a trainer answers on one machine, undisturbed."""
    answers: dict[str, Answer] = {}

    def answer(trainer: str) -> Answer:
        if trainer not in answers:
            job = Job(cluster, name=f"{trainer}-alone", trainer=trainer, holds=1)
            job.until_held()
            used = job.used()
            job.release()
            answers[trainer] = job.answer()
            assert len(used) == 1, f"a gang that fits on one machine was put on {used}"
        return answers[trainer]

    return answer
