"""A machine that is to be taken away: its trial moves, nothing is trained twice, and the answer is the same."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable

import pytest

from hpo.store import Store
from tests.support.cluster.helper_machines import Machines
from tests.support.cluster.jobs import END_SECONDS, STANDING, WORKER, Answer, Job
from tests.support.cluster.machine import Machine, signal_it
from tests.support.cluster.ray_machines import RayMachines

pytestmark = pytest.mark.fault

NOTICE = [
    "--reason=DRAIN_NODE_REASON_PREEMPTION",
    "--reason-message=taken back",
    "--deadline-remaining-seconds=120",
]
RUNG = 3
"""After so many epochs a trial has six more to the next rung, in the middle of which its machine goes."""


def drain(machines: RayMachines, victim: Machine) -> None:
    """Gives a machine notice, as a cloud does."""
    said = machines.run(["ray", "drain-node", f"--address={machines.address}", *NOTICE], on=victim, timeout=60)
    assert said.returncode == 0, said.stdout


def blocking(machines: RayMachines) -> tuple[Machine, subprocess.Popen[str]]:
    """A machine more, whose `ray start` waits for its end, and that."""
    machine = machines.machine()
    options = [
        f"--node-ip-address={machine.address}",
        "--num-cpus=4",
        "--object-store-memory=100000000",
        f"--temp-dir={machines.private}/ray",
        "--disable-usage-stats",
    ]
    with (machines.base / "node.log").open("w") as said:
        start = ["ray", "start", f"--address={machines.address}", "--block", *options]
        extra = {"RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "100"}
        return machine, machines.start(start, said, on=machine, extra=extra)


def until_left(job: Job, victim: Machine, notices: int) -> int:
    """Waits until a job has left a machine, of which it heard as its `notices`-th; how many epochs it had begun then.

    The epoch in which the machine was given notice ends once the job has heard of it, and not before.
    """
    told = "is being taken away: its trial goes on elsewhere"
    job.until(lambda: job.said.count(told) >= notices, "the job to hear of the notice", END_SECONDS)
    job.slow(1.0)
    job.until(lambda: not victim.processes(WORKER), "the machine to be empty", END_SECONDS)
    job.slow(STANDING)
    epochs = job.trained()
    assert int(epochs[-1][1]) < 9, "the trial was left to come to its rung"
    return len(epochs)


@pytest.mark.parametrize("machines", [1], indirect=True)
def test_a_machine_that_is_drained_or_gets_sigterm_is_left_at_the_next_report(
    machines: Machines, expected: Callable[[str], Answer]
) -> None:
    """One after the other, whichever the gang's two workers are on."""
    if not isinstance(machines, RayMachines):
        pytest.skip("without namespaces a process cannot tell which node of this machine is its own")
    undisturbed = expected("torch")
    to_drain = machines.machines[-1]
    to_end, node = blocking(machines)
    log = machines.base / "node.log"
    job = Job(machines, name="leaving", trainer="torch", placement="SPREAD", slow=STANDING, slow_after=RUNG)
    left, seen = [to_drain, to_end], 0
    for notices in (1, 2):
        job.until_epoch(RUNG, seen)
        victim = next(machine for machine in left if machine.processes(WORKER))
        left.remove(victim)
        if victim is to_drain:
            drain(machines, victim)
        else:
            signal_it(node, signal.SIGTERM)
        seen = until_left(job, victim, notices)
        if victim is to_end:
            node.wait(110)
            assert "finished draining" in log.read_text()
        machines.kill(victim)
    job.slow(None)
    assert job.answer() == undisturbed
    assert job.attempts() == 0
    # No epoch twice: neither those before a notice nor the one that was being trained.
    assert job.trials() == undisturbed.epochs


def test_an_elastic_gang_goes_on_with_fewer_workers_and_says_so(machines: Machines) -> None:
    """Each machine has room for one worker; one is drained, then another killed."""
    job = Job(
        machines,
        name="elastic",
        trainer="torch",
        trials=1,
        placement="SPREAD",
        workers=[1, 3],
        cpus=3,
        slow=STANDING,
        slow_after=RUNG,
        # How long Ray Train waits for as much room as the gang had.
        environment={"RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "5"},
    )
    job.until_epoch(RUNG)
    _, killed, drained = machines.machines
    assert killed.processes(WORKER)
    assert drained.processes(WORKER)
    if isinstance(machines, RayMachines):
        assert isinstance(drained, Machine)
        drain(machines, drained)
        seen = until_left(job, drained, 1)
        machines.kill(drained)
        job.until_epoch(RUNG, seen)
        lines = job.trials()
        assert len(lines) == len({tuple(line[:2]) for line in lines}), "an epoch was trained twice"
    machines.kill(killed)
    job.slow(None)
    job.answer()
    sizes = ["3", "2", "1"] if isinstance(machines, RayMachines) else ["3", "2"]
    for size in sizes[1:]:
        assert f"starts with {size} of 3 workers, for want of room" in job.said
    trained = [line[2] for line in job.trained()]
    assert trained == sorted(trained, reverse=True)
    assert set(trained) == set(sizes)
    with Store(job.store) as store:
        details = [trial.details for trial in store.trials(job.name) if trial.number >= 0]
        billed = {row.workers for row in store.ledger(job.name)}
    assert [sum(one["units_by_workers"].values()) for one in details] == [9]
    assert billed == {int(size) for size in sizes}
