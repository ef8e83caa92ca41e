"""Clusters of several machines: one for the tests that leave it whole, and new ones for the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.cluster.helper_machines import HelperMachines
from tests.cluster.machine import possible
from tests.cluster.ray_machines import RayMachines

Machines = RayMachines | HelperMachines
KIND = RayMachines if possible() and os.environ.get("WARMBAND_TEST_MACHINES") != "helper" else HelperMachines
"""The second can be asked for, to test it where the first is possible."""


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says which kind of cluster these tests ran on."""
    terminalreporter.write_line(f"clusters of several machines (tests/cluster) were made of: {KIND.kind}")


def add(cluster: Machines, workers: int) -> None:
    """Adds so many machines, at once where that is possible: most of `ray start` is waiting."""
    with ThreadPoolExecutor(workers if cluster.own_network else 1) as pool:
        list(pool.map(lambda _: cluster.add(), range(workers)))


@pytest.fixture(scope="session")
def machines() -> Iterator[Machines]:
    """A head and two workers of 4 logical CPUs each; tests leave it as they found it."""
    with KIND() as cluster:
        add(cluster, 2)
        yield cluster


@pytest.fixture
def new_machines() -> Iterator[Callable[..., Machines]]:
    """Makes clusters that a test may break; they end with it."""
    made: list[Machines] = []

    def make(workers: int, **options: Any) -> Machines:
        made.append(KIND(**options))
        add(made[-1], workers)
        return made[-1]

    yield make
    for cluster in made:
        cluster.close()
