"""Clusters of several machines: one for the tests that leave it whole, and new ones for the others."""

from __future__ import annotations

import os
from collections.abc import Iterator
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
    with ThreadPoolExecutor(max(1, workers) if cluster.own_network else 1) as pool:
        list(pool.map(lambda _: cluster.add(), range(workers)))


WORKERS = 2


@pytest.fixture(scope="session")
def cluster() -> Iterator[Machines]:
    """A head and two workers of 4 logical CPUs each, for all tests; take `machines` if a test wants them whole."""
    with KIND() as made:
        add(made, WORKERS)
        yield made


@pytest.fixture
def machines(cluster: Machines) -> Machines:
    """The cluster with its two workers: those that an earlier test killed are replaced."""
    add(cluster, WORKERS + 1 - len(cluster.machines))
    return cluster
