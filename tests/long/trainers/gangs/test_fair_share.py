"""Fair shares: within the cluster, by priority, with nothing left over that somebody wants, and nobody starved."""

from __future__ import annotations

import json

import pytest

from tests.support.cluster.helper_machines import HelperMachines
from tests.support.refusals import mentions
from tests.support.sharing import WAIT_SECONDS, Sharer, until


@pytest.mark.usefixtures("ray_cluster")
def test_a_job_gives_gangs_back_for_another_and_takes_them_again_when_that_has_ended() -> None:
    """Three gangs fit. With the same priority the first job would keep both of its own."""
    first, second = Sharer("first", {1: 2}, cpus=5), Sharer("second", {1: 3}, cpus=5, priority=2)
    try:
        until("the first job has what it wants", lambda: len(first.up) == 2, first)
        until("the second has its share", lambda: len(second.up) == 2 and len(first.up) == 1, first, second)
        second.wants = {}
        until("the second has nothing to run", lambda: not second.up and len(first.up) == 2, first, second)
    finally:
        first.gangs.close()
        second.gangs.close()


def test_on_nodes_that_hold_one_gang_together_two_jobs_take_turns_and_say_for_whom_they_wait() -> None:
    """A head of 8 CPUs and a node of 4: a gang of two workers of 3 leaves 2 and 4, so that no other fits beside it."""
    with HelperMachines(cpus=8) as machines:
        machines.add(4)
        command = ["python", "-m", "tests.support.sharing", "300"]
        ran = machines.run(command, timeout=WAIT_SECONDS, extra={"RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0"})
    assert ran.returncode == 0, ran.stdout
    told = json.loads(ran.stdout.splitlines()[-1])
    assert told["up"] == [0, 1]
    for mine, other in (("high", "low"), ("low", "high")):
        shares, waits = told[mine][:2]
        mentions(shares, other, "0", "1", "gangs")
        mentions(waits, other, "gang", "2 workers", "3 CPU", "priority")
