"""Machines that die, are cut off or join in the middle of a job: it ends with the answer of one left alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cluster.conftest import Machines
from tests.cluster.jobs import START_SECONDS, WORKER, Answer, Job, freeze
from tests.cluster.machine import Machine

pytestmark = [pytest.mark.fault, pytest.mark.slow]


@pytest.fixture(scope="session")
def expected(cluster: Machines) -> Callable[[str], Answer]:
    """What a job of a trainer answers on one machine, undisturbed."""
    answers: dict[str, Answer] = {}

    def answer(trainer: str) -> Answer:
        if trainer not in answers:
            job = Job(cluster, name=f"{trainer}-alone", trainer=trainer)
            job.until_trained()
            used = job.used()
            answers[trainer] = job.answer()
            assert len(used) == 1, f"a gang that fits on one machine was put on {used}"
        return answers[trainer]

    return answer


@pytest.mark.parametrize("trainer", ["xgboost", "torch"])
def test_a_machine_is_killed_in_the_middle(machines: Machines, expected: Callable[[str], Answer], trainer: str) -> None:
    undisturbed = expected(trainer)
    job = Job(machines, name=f"{trainer}-killed", trainer=trainer, placement="SPREAD")
    job.until_trained()
    assert job.used() == {machine.name for machine in machines.machines}
    # What the gang serves now, or next, waits for ever for this worker: the machine dies in the middle of it.
    victim = machines.machines[-1]
    freeze(victim.processes(WORKER))
    machines.kill(victim)
    assert job.answer() == undisturbed
    assert job.attempts() >= 1


def test_a_machine_joins_in_the_middle_and_is_used(machines: Machines, expected: Callable[[str], Answer]) -> None:
    undisturbed = expected("torch")
    slow = machines.base / "slow"
    slow.touch()
    # A worker fills a machine, so that one gang fills the cluster.
    job = Job(machines, name="joined", trainer="torch", cpus=4, at_once=2, slow_while=str(slow))
    job.until_trained()
    before = job.used()
    assert before == {machine.name for machine in machines.machines}
    newcomer = machines.add(cpus=12)
    job.until(lambda: newcomer.processes(WORKER), "a gang on the machine that joined", START_SECONDS)
    job.until(lambda: job.serving() >= 2, "that gang to serve", START_SECONDS)
    slow.unlink()
    assert job.answer() == undisturbed
    machines.kill(newcomer)


@pytest.mark.parametrize("trainer", ["xgboost", "torch"])
def test_a_machine_is_cut_off_in_the_middle(
    machines: Machines, expected: Callable[[str], Answer], trainer: str
) -> None:
    if not machines.own_network:
        pytest.skip("machines without namespaces have one network, which cannot be cut")
    undisturbed = expected(trainer)
    job = Job(machines, name=f"{trainer}-cut", trainer=trainer, placement="SPREAD")
    job.until_trained()
    victim = machines.machines[-1]
    assert isinstance(victim, Machine)
    machines.cut(victim)
    assert job.answer() == undisturbed
    assert job.attempts() >= 1
    # What still runs there has been given up, and ends by itself once it hears of that.
    machines.heal(victim)
    machines.kill(victim)
