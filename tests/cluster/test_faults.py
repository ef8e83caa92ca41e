"""Machines that die, are cut off or join in the middle of a job: it ends with the answer of one left alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.cluster.helper_machines import Machines
from tests.support.cluster.jobs import START_SECONDS, WORKER, Answer, Job, freeze

pytestmark = pytest.mark.fault


@pytest.mark.parametrize("machines", [1], indirect=True)
def test_a_machine_joins_in_the_middle_and_is_used(machines: Machines, expected: Callable[[str], Answer]) -> None:
    undisturbed = expected("torch")
    # A worker fills a machine, so that one gang fills the cluster.
    job = Job(machines, name="joined", trainer="torch", cpus=4, at_once=2, slow=3.0)
    job.until(lambda: job.serving() == 1, "its first trial", START_SECONDS)
    assert job.used() == {machine.name for machine in machines.machines}
    newcomer = machines.add(cpus=8)
    job.until(lambda: newcomer.processes(WORKER), "a gang on the machine that joined", START_SECONDS)
    job.until(lambda: job.serving() >= 2, "that gang to serve", START_SECONDS)
    job.slow(None)
    assert job.answer() == undisturbed
    machines.kill(newcomer)


@pytest.mark.parametrize("trainer", ["xgboost", "torch"])
def test_a_machine_is_killed_and_the_next_cut_off_in_the_middle(
    machines: Machines, expected: Callable[[str], Answer], trainer: str
) -> None:
    """Of the two workers each time one is lost; the cluster that has no other machine left runs both on its head."""
    undisturbed = expected(trainer)
    job = Job(machines, name=f"{trainer}-faults", trainer=trainer, placement="SPREAD", holds=2)
    job.until_held()
    assert len(job.used()) == 2
    # What the gang serves next waits for ever for this worker: the machine dies in the middle of it.
    victim = next(machine for machine in machines.machines[1:] if machine.processes(WORKER))
    freeze(victim.processes(WORKER))
    job.release()
    machines.kill(victim)

    job.until_held()
    assert job.attempts() >= 1
    head, other = machines.machines
    assert job.used() == {head.name, other.name}
    if not machines.own_network:
        job.release()
        assert job.answer() == undisturbed
        pytest.skip("machines without namespaces have one network, which cannot be cut; the killed one was replaced")
    machines.cut(other)
    job.release()  # What the gang serves next, it begins without this worker, and nobody tells its peers.
    assert job.answer() == undisturbed
    assert job.attempts() >= 2
    # What still runs there has been given up, and ends by itself once it hears of that.
    machines.heal(other)
    machines.kill(other)
