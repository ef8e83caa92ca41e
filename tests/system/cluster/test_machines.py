"""Jobs on several machines, which join, are taken away, die or are cut off: they end with the answer of one left alone.

All in one module, for all of it stands on one cluster.
"""

from __future__ import annotations

from tests.support.cluster.helper_machines import Machines
from tests.support.refusals import mentions

JOIN = """
from trainers.cluster.session import cluster
from trainers.errors import ConfigurationError
try:
    with cluster(1):
        print("joined")
except ConfigurationError as error:
    print(error)
"""


def test_a_wrong_token_is_named(cluster: Machines) -> None:
    ran = cluster.run(["python", "-c", JOIN], timeout=120, extra={"RAY_AUTH_TOKEN": "0" * 32})
    assert ran.returncode == 0, ran.stdout
    mentions(ran.stdout, "RAY_ADDRESS", cluster.address, "RAY_AUTH_MODE=token", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
