"""Jobs on several machines, which join, are taken away, die or are cut off: they end with the answer of one left alone.

All in one module, for all of it stands on one cluster.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable

import pytest

from hpo.record.store import Store
from tests.support.cluster.drive import ROUNDS
from tests.support.cluster.helper_machines import Machines
from tests.support.cluster.jobs import END_SECONDS, STANDING, START_SECONDS, WORKER, Answer, Job, freeze
from tests.support.cluster.machine import Machine, signal_it
from tests.support.cluster.ray_machines import RayMachines, until
from tests.support.refusals import mentions, missing_names

NOTICE = [
    "--reason=DRAIN_NODE_REASON_PREEMPTION",
    "--reason-message=taken back",
    "--deadline-remaining-seconds=120",
]
RUNG = 3
"""After so many epochs a trial has six more to the next rung, in the middle of which its machine goes."""


def until_left(job: Job, victim: Machine) -> int:
    """Waits until a job that was given notice of a machine has left it; how many epochs it had begun then.

    The epoch in which the machine was given notice ends once the job has heard of it, and not before.
    """
    told = "is being taken away: its trial goes on elsewhere"
    job.until(lambda: told in job.said, "the job to hear of the notice", END_SECONDS)
    job.slow(1.0)
    job.until(lambda: not victim.processes(WORKER), "the machine to be empty", END_SECONDS)
    job.slow(STANDING)
    epochs = job.trained()
    assert int(epochs[-1][1]) < ROUNDS - 1, "the trial was left to come to its rung"
    return len(epochs)


@pytest.mark.fault
@pytest.mark.parametrize("machines", [0], indirect=True)
def test_machines_get_sigterm_join_and_are_cut_off_in_the_middle(
    machines: Machines, expected: Callable[..., Answer]
) -> None:
    """A worker fills a machine, so that a gang that loses one of its two needs another machine."""
    if not isinstance(machines, RayMachines):
        pytest.skip("without namespaces a process cannot tell which node of this machine is its own")
    undisturbed = expected(trainer="torch")
    nodes = dict(blocking(machines) for _ in range(2))
    job = Job(machines, name="faults", trainer="torch", cpus=4, slow=STANDING, slow_after=RUNG)
    job.until_epoch(RUNG)
    assert len(job.used()) == 2

    # Ray says on a node that gets SIGTERM that it is drained, and ends it when nothing runs there.
    victim = next(machine for machine in nodes if machine.processes(WORKER))
    signal_it(nodes[victim], signal.SIGTERM)
    seen = until_left(job, victim)
    nodes.pop(victim).wait(110)
    assert "finished draining" in (machines.base / f"{victim.name}.log").read_text()
    machines.kill(victim)
    job.until_epoch(RUNG, seen)
    assert job.attempts() == 0
    # No epoch twice: neither those before the notice nor the one that was being trained.
    lines = [tuple(line[:2]) for line in job.trials()]
    assert len(lines) == len(set(lines))
    [other] = nodes
    assert job.used() == {machines.head.name, other.name}

    # The peer of the worker that is cut off goes on to wait for it, and nobody tells that it need not.
    newcomer = machines.add()
    machines.cut(other)
    seen = len(job.trained())
    job.slow(0.0)
    job.until(lambda: job.attempts() >= 1, "the gang to be given up", END_SECONDS)
    job.slow(STANDING)
    job.until_epoch(RUNG, seen)
    assert newcomer.processes(WORKER)
    assert machines.head.processes(WORKER)
    job.slow(None)
    assert job.answer() == undisturbed
    assert set(map(tuple, job.trials())) == set(map(tuple, undisturbed.epochs))
    # What still runs there has been given up, and ends by itself once it hears of that.
    machines.heal(other)
    for machine in (newcomer, other):
        machines.kill(machine)


def blocking(machines: RayMachines) -> tuple[Machine, subprocess.Popen[str]]:
    """A machine more, whose `ray start` waits for its end, and that."""
    machine = machines.machine()
    log = machines.base / f"{machine.name}.log"
    with log.open("w") as said:
        extra = {"RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "100"}
        node = machines.start([*machines.starting(machine), "--block"], said, on=machine, extra=extra)
    until(lambda: "Ray runtime started" in log.read_text() or node.poll() is not None, "the node", START_SECONDS)
    assert node.poll() is None, log.read_text()
    return machine, node


@pytest.mark.fault
@pytest.mark.parametrize("machines", [1], indirect=True)
def test_an_elastic_gang_goes_on_with_fewer_workers_and_says_so(machines: Machines) -> None:
    """Each machine has room for one worker; the second is given notice, as a cloud does, or else killed."""
    job = Job(
        machines,
        name="elastic",
        trainer="torch",
        trials=1,
        placement="SPREAD",
        workers=[1, 2],
        cpus=3,
        slow=STANDING,
        slow_after=RUNG,
        # How long Ray Train waits for as much room as the gang had.
        environment={"RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "5"},
    )
    job.until_epoch(RUNG)
    _, victim = machines.machines
    assert victim.processes(WORKER)
    if isinstance(machines, RayMachines):
        assert isinstance(victim, Machine)
        command = ["ray", "drain-node", f"--address={machines.address}", *NOTICE]
        said = machines.run(command, on=victim, timeout=60)
        assert said.returncode == 0, said.stdout
        until_left(job, victim)
    machines.kill(victim)
    job.slow(None)
    job.answer()
    if isinstance(machines, RayMachines):
        assert job.attempts() == 0
        lines = [tuple(line[:2]) for line in job.trials()]
        assert len(lines) == len(set(lines)), "an epoch was trained twice"
    mentions(job.said, "1 of 2", "shards")
    trained = [line[2] for line in job.trained()]
    assert trained == sorted(trained, reverse=True)
    assert set(trained) == {"2", "1"}
    with Store(job.store) as store:
        details = [trial.details for trial in store.trials(job.name) if trial.number >= 0]
        billed = {row.workers for row in store.ledger(job.name)}
    assert [sum(one["units_by_workers"].values()) for one in details] == [9]
    assert billed == {2, 1}


@pytest.mark.fault
def test_on_an_object_store_a_machine_is_killed_and_the_next_cut_off_in_the_middle(
    machines: Machines, stored: dict[str, object], expected: Callable[..., Answer]
) -> None:
    """Of the two workers each time one is lost; the cluster that has no other machine left runs both on its head."""
    undisturbed = expected(trainer="xgboost")
    job = Job(machines, name="stored", trainer="xgboost", placement="SPREAD", holds=2, **stored)
    job.until_held()
    used = job.used()
    assert len(used) == 2
    # What the gang serves next waits for ever for this worker: the machine dies in the middle of it.
    victim = next(machine for machine in machines.machines[1:] if machine.processes(WORKER))
    freeze(victim.processes(WORKER))
    job.release()
    machines.kill(victim)

    job.until_held()
    assert job.attempts() >= 1
    head, other = machines.machines
    assert job.used() == {head.name, other.name}
    if machines.own_network:
        machines.cut(other)
        job.release()  # What the gang serves next, it begins without this worker, and nobody tells its peers.
        answer = job.answer()
        assert job.attempts() >= 2
        # What still runs there has been given up, and ends by itself once it hears of that.
        machines.heal(other)
        machines.kill(other)
    else:  # They have one network, which cannot be cut.
        job.release()
        answer = job.answer()
    assert answer == undisturbed
    assert answer.checkpoint.startswith(f"{str(stored['storage_path']).partition('?')[0]}/stored/")
    assert len(answer.model) == 64


REFUSED = """
import io, json, sys
import ray
from rich.console import Console
from ray.util import placement_group_table
from hpo.record.store import Store
from tests.support.cluster.drive import table, tuner
from trainers import ConfigurationError

base, own = sys.argv[1:]
store = f"sqlite:///{base}/refused.db"
table(60, 1).to_csv(f"{own}/train.csv", index=False)
ray.init(log_to_driver=False)
earlier = set(placement_group_table())  # Ray keeps the groups that are no more.
said = []
for number, (storage, inputs) in enumerate(
    [(f"{own}/models", {"train": table(60, 1), "validation": table(60, 2)}),
     (None, {"train": table(60, 1), "validation": table(60, 2)}),
     (f"{base}/shared", {"train": f"{own}/train.csv", "validation": table(60, 2)})]
):
    job = tuner({"store": store, "storage_path": storage}, Console(file=io.StringIO()))
    try:
        job.fit(inputs, job_name=f"refused-{number}")
    except ConfigurationError as error:
        said.append(str(error))
    with Store(store) as record:
        assert record.job(f"refused-{number}").status == "Failed"
        assert not record.trials(f"refused-{number}")
assert set(placement_group_table()) == earlier, "a gang was started"
print(json.dumps(said))
"""


def test_what_only_the_drivers_machine_sees_is_refused_before_anything_is_trained(machines: Machines) -> None:
    """Every other machine is named: what looks for it has run on each, which has an address and a disk of its own."""
    if not machines.own_disks:
        pytest.skip("machines without namespaces share their disks")
    ran = machines.run(["python", "-c", REFUSED, machines.base, machines.private], timeout=240)
    assert ran.returncode == 0, ran.stdout
    given, default, file = json.loads(ran.stdout.splitlines()[-1])
    head, *others = (machine.address for machine in machines.machines)
    for error, path in ((given, machines.private / "models"), (default, machines.private / "home" / "jobs")):
        mentions(error, *others, "storage_path", f"{path}/refused-", "s3://", "gs://")
    mentions(file, *others, "train", f"{machines.private}/train.csv", "s3://", "gs://", "memory")
    assert missing_names(" ".join((given, default, file)), head) == [head]
    # What was written to find out is taken away again.
    left = machines.run(
        ["find", machines.private / "models", machines.base / "shared", "-name", ".warmband-reach-*"], timeout=30
    )
    assert ".warmband-" not in left.stdout


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
