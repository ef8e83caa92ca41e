"""Clusters that a driver cannot join: it says why, and what to do."""

from __future__ import annotations

from tests.support.cluster.helper_machines import Machines

JOIN = """
from trainers.cluster import cluster
from trainers.errors import ConfigurationError
try:
    with cluster(1):
        print("joined")
except ConfigurationError as error:
    print(error)
"""


def test_a_wrong_token_is_named(machines: Machines) -> None:
    ran = machines.run(["python", "-c", JOIN], timeout=120, extra={"RAY_AUTH_TOKEN": "0" * 32})
    assert ran.returncode == 0, ran.stdout
    expected = f"RAY_ADDRESS='{machines.address}': the cluster wants a token, and this process sends none or another"
    assert expected in ran.stdout
