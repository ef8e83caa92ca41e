"""A machine that is to be taken away: its trial moves, nothing is trained twice, and the answer is the same."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from hpo.store import Store
from tests.cluster.conftest import Machines
from tests.cluster.jobs import END_SECONDS, START_SECONDS, WORKER, Job
from tests.cluster.machine import Machine, signal_it
from tests.cluster.ray_machines import RayMachines

pytestmark = [pytest.mark.fault, pytest.mark.slow]

NOTICE = [
    "--reason=DRAIN_NODE_REASON_PREEMPTION",
    "--reason-message=taken back",
    "--deadline-remaining-seconds=120",
]


class Slow(Job):
    """One trial of nine epochs, the last six in one rung; each leaves a line."""

    def __init__(self, machines: Machines, name: str, epoch_seconds: float, **job: Any) -> None:
        self.trace = machines.base / f"{name}.trace"
        static = {"trace": str(self.trace), "epoch_seconds": epoch_seconds, "global_batch_size": 60, "eta": 0.1}
        super().__init__(machines, name=name, trainer="torch", trials=1, placement="SPREAD", static=static, **job)

    def trained(self) -> list[list[str]]:
        """Of each epoch: the trial's seed, its number, the workers."""
        path = Path(self.trace)
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def trials(self) -> list[list[str]]:
        """Of each epoch of the trial and the un-tuned run; the probe, which comes first, takes as long as it may."""
        lines = self.trained()
        return sorted(line for line in lines if line[0] != lines[0][0])

    def until_epoch(self, number: int) -> None:
        self.until(lambda: len(self.trained()) >= number, f"epoch {number}", START_SECONDS)


def test_a_drained_machine_is_left_at_the_next_report(machines: Machines) -> None:
    undisturbed = Slow(machines, "still", 0.0)
    expected = undisturbed.answer()
    job = Slow(machines, "drained", 2.0)
    job.until_epoch(4)
    victim = machines.machines[-1]
    assert victim.processes(WORKER)
    assert isinstance(victim, Machine)
    said = machines.run(["ray", "drain-node", f"--address={machines.address}", *NOTICE], on=victim, timeout=60)
    assert said.returncode == 0, said.stdout
    job.until(lambda: not victim.processes(WORKER), "the machine to be empty", END_SECONDS)
    machines.kill(victim)
    assert job.answer() == expected
    assert "is being taken away: its trial goes on elsewhere" in job.said
    assert job.attempts() == 0
    # No epoch twice: neither those before the notice nor the one that was being trained.
    assert job.trials() == undisturbed.trials()


def test_sigterm_makes_a_node_leave_before_it_ends(machines: Machines) -> None:
    if not isinstance(machines, RayMachines):
        pytest.skip("without namespaces a process cannot tell which node of this machine is its own")
    machine = machines.machine()
    options = [
        f"--node-ip-address={machine.address}",
        "--num-cpus=4",
        "--object-store-memory=100000000",
        f"--temp-dir={machines.private}/ray",
        "--disable-usage-stats",
    ]
    log = machines.base / "node.log"
    with log.open("w") as said:
        start = ["ray", "start", f"--address={machines.address}", "--block", *options]
        node = machines.start(start, said, on=machine, extra={"RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "100"})
    job = Slow(machines, "terminated", 2.0, workers=4)
    job.until_epoch(4)
    assert machine.processes(WORKER), "four workers are spread over four machines"
    signal_it(node, signal.SIGTERM)
    node.wait(110)
    assert "finished draining" in log.read_text()
    machines.kill(machine)
    job.answer()
    assert job.attempts() == 0
    lines = job.trials()
    assert len(lines) == len({tuple(line) for line in lines}), "an epoch was trained twice"


@pytest.mark.parametrize("how", ["drained", "killed"])
def test_an_elastic_gang_goes_on_with_fewer_workers_and_says_so(machines: Machines, how: str) -> None:
    """Each machine has room for one worker."""
    job = Slow(machines, f"elastic-{how}", 2.0, workers=[2, 3], cpus=3)
    job.until_epoch(4)
    victim = machines.machines[-1]
    assert victim.processes(WORKER)
    if how == "drained":
        said = machines.run(["ray", "drain-node", f"--address={machines.address}", *NOTICE], on=victim, timeout=60)
        assert said.returncode == 0, said.stdout
        job.until(lambda: not victim.processes(WORKER), "the machine to be empty", END_SECONDS)
    machines.kill(victim)
    job.answer()
    assert "starts with 2 of 3 workers, for want of room" in job.said
    sizes = [line[2] for line in job.trained()]
    assert sizes == sorted(sizes, reverse=True)
    assert set(sizes) == {"3", "2"}
    if how == "drained":
        lines = job.trials()
        assert len(lines) == len({tuple(line[:2]) for line in lines}), "an epoch was trained twice"
    with Store(job.store) as store:
        details = [trial.details for trial in store.trials(job.name) if trial.number >= 0]
        billed = {row.workers for row in store.ledger(job.name)}
    assert [sum(one["units_by_workers"].values()) for one in details] == [9]
    assert billed == {3, 2}
