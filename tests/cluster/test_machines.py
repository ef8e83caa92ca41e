"""The machines that the other tests stand on: several, each with its own address, processes and disk."""

from __future__ import annotations

import json

from tests.support.cluster.helper_machines import Machines

WHERE = """
import json, ray
ray.init(log_to_driver=False)
@ray.remote(num_cpus=1)
def where():
    import os, time
    time.sleep(0.5)
    return ray.util.get_node_ip_address()
found = ray.get([where.options(scheduling_strategy="SPREAD").remote() for _ in range(6)], timeout=60)
print(json.dumps([sorted(set(found)), sorted(node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"])]))
"""


def test_tasks_run_on_every_machine_of_a_cluster(machines: Machines) -> None:
    ran = machines.run(["python", "-c", WHERE], timeout=120)
    assert ran.returncode == 0, ran.stdout
    used, alive = json.loads(ran.stdout.splitlines()[-1])
    assert used == alive == sorted(machine.address for machine in machines.machines)
