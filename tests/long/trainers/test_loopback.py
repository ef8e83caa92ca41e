"""A cluster of a job's own: it listens on 127.0.0.1 alone, asks for its token, and ends with the job.

All in one module, for all of it stands on one job.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import python
from tests.support.refusals import mentions

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}

ANYWHERE = {
    # By these sockets XGBoost's workers find each other.
    "XGBoostTrainer": {("ray::RayTrainWo", "00000000")},
    # The store by which torch.distributed's processes find each other, rank 0's.
    "TorchTrainer": {("ray::RayTrainWo", "0" * 32)},
    "ParameterServerTrainer": {("ray::RayTrainWo", "0" * 32)},
}
"""What is bound to all addresses, in IPv4 and IPv6, and has no setting that would change it."""


@pytest.fixture(scope="module")
def short_home() -> Iterator[Path]:
    """A home, and folder for temporary files, whose path is short enough for Ray's sockets."""
    with tempfile.TemporaryDirectory(prefix="wb") as folder:
        yield Path(folder)


JOB = """
    import dataclasses, json, os, threading, time
    import numpy as np
    import psutil
    from trainers import ParameterServerTrainer, TorchTrainer, XGBoostTrainer
    from trainers.cluster.session import cluster
    from trainers.channels import open_channels
    import ray, torch
    from experiments.workloads.repeated_trial import RepeatedTrial
    from ray.train import ScalingConfig

    WORKER = "ray::RayTrainWo"

    def listening():
        '''Where this process and all below it listen: ((name of the process, address), socket), from /proc.'''
        below, parents = {os.getpid()}, {}
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                parents[int(entry)] = int(open(f"/proc/{entry}/stat").read().rpartition(")")[2].split()[1])
            except OSError:
                pass
        for _ in range(20):
            below |= {pid for pid, parent in parents.items() if parent in below}
        owners = {}
        for pid in below:
            try:
                name = open(f"/proc/{pid}/comm").read().strip()
                for fd in os.listdir(f"/proc/{pid}/fd"):
                    owners[os.readlink(f"/proc/{pid}/fd/{fd}")] = name
            except OSError:
                pass
        for table in ("tcp", "tcp6"):
            for line in open(f"/proc/net/{table}").read().splitlines()[1:]:
                parts = line.split()
                if parts[3] == "0A" and f"socket:[{parts[9]}]" in owners:
                    yield (owners[f"socket:[{parts[9]}]"], parts[1].partition(":")[0]), parts[9]

    def watch(gate, done, found, before):
        while not done.wait(0.2):
            training = os.path.exists(gate)
            found.update(where for where, socket in listening() if socket not in before)
            if training:
                open(gate + "-seen", "w").close()

    def learn(context):
        gate = context.hyperparameters["gate"]
        model = context.prepare_model(torch.nn.Linear(2, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        batches = context.prepare_data("train", labels=torch.long)
        for _ in context.epochs():
            for features, labels in batches:
                context.step(torch.nn.functional.cross_entropy(model(features), labels), optimizer)
            open(gate, "w").close()
            deadline = time.monotonic() + 60
            while not os.path.exists(gate + "-seen"):  # Until somebody has looked, all of this open.
                assert time.monotonic() < deadline, "waited 60 s for a look"
                time.sleep(0.05)
            context.report({"validation:loss": 1.0}, checkpoint={"model": model.state_dict()})

    class InTurn:
        '''The programs of several trainers in the same workers, each opened for its training and closed after it.'''

        def __init__(self, programs):
            self.programs = programs

        def open(self, context):
            self.context = context
            return {}

        def train(self, assignment, on_report, halted):
            words = dict(assignment.hyperparameters)
            program = self.programs[words.pop("trainer")]
            program.open(self.context)
            try:
                return program.train(dataclasses.replace(assignment, hyperparameters=words), on_report, halted)
            finally:
                program.close()

        def close(self):
            pass

    class AllTrainers(XGBoostTrainer):
        def program(self, channels):
            return InTurn({type(trainer).__name__: trainer.program(channels) for trainer in kinds})

    def found_while_it_trains(trainer, gang):
        name, found, done = type(trainer).__name__, set(), threading.Event()
        gate = os.path.abspath(name)
        # What the trainer before listened on stays with its workers.
        before = {socket for (who, where), socket in listening() if who == WORKER and {*where} == {"0"}}
        watcher = threading.Thread(target=watch, args=(gate, done, found, before))
        watcher.start()
        try:
            words = {**trainer.hyperparameters, "trainer": name}
            gang.train(words if trainer.unit == "round" else {**words, "gate": gate}, trainer.units)
        finally:
            done.set()
            watcher.join()
        return sorted(found)

    if __name__ == "__main__":
        rows = np.random.default_rng(0).normal(size=(4000, 2)).astype("f4")
        both = rows, (rows[:, 0] > 0).astype("f4")
        scaling, said, cpus = ScalingConfig(num_workers=2), [], (os.cpu_count() or 1) + 3
        epochs = {"epochs": 1, "per_worker_batch_size": 500}
        kinds = [
            XGBoostTrainer(scaling=scaling, hyperparameters={"eval_metric": "auc", "num_round": 300}),
            TorchTrainer(learn, scaling=scaling, hyperparameters=epochs),
            ParameterServerTrainer(learn, scaling=scaling, hyperparameters=epochs),
        ]
        try:
            with cluster(cpus, said.append) as own:
                assert own.private
                assert ray.cluster_resources()["CPU"] == cpus, ray.cluster_resources()
                there = {process.pid for process in psutil.Process().children(recursive=True)}
                worker = ray.get(ray.remote(num_cpus=0)(lambda: os.getpid()).remote(), timeout=120)
                channels = open_channels({"train": both, "validation": both})
                with AllTrainers(scaling=scaling).gangs("job", channels) as gangs:
                    gang = RepeatedTrial(gangs, {}, 1, os.path.abspath("models"))
                    gang.start(2)
                    found = {type(trainer).__name__: found_while_it_trains(trainer, gang) for trainer in kinds}
                raise RuntimeError("in the job")
        except RuntimeError as error:
            assert str(error) == "in the job", error
        print(json.dumps({"found": found, "said": said, "ray": ray.is_initialized(), "ahead": worker in there}))
"""


@pytest.fixture(scope="module")
def job(short_home: Path) -> dict[str, Any]:
    """Run a job with its own cluster in its own process: this one has the tests' session. Return its findings."""
    script = short_home / "job.py"
    script.write_text(textwrap.dedent(JOB))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment |= {"HOME": str(short_home), "TMPDIR": str(short_home)}
    done = python(str(script), folder=short_home, environment=environment, seconds=900)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_jobs_listen_on_this_machine_alone(job: dict[str, Any]) -> None:
    assert list(job["found"]) == ["XGBoostTrainer", "TorchTrainer", "ParameterServerTrainer"]
    for trainer, found in job["found"].items():
        # The watch sees what it is for.
        assert {"gcs_server", "raylet", "ray::RayTrainWo"} <= {name for name, _ in found}
        beyond = {(name, address) for name, address in found if address not in LOOPBACK}
        assert beyond <= ANYWHERE[trainer]


def test_a_cluster_of_its_own_says_so_and_ends_with_the_job(job: dict[str, Any]) -> None:
    """An error in the job changes nothing."""
    assert not job["ray"]
    (line,) = job["said"]
    mentions(line, (os.cpu_count() or 1) + 3, os.cpu_count(), "cores")


def test_its_workers_start_when_they_are_needed(job: dict[str, Any]) -> None:
    """Of itself, Ray has started some before `ray.init` returns, and runs the first task in one of them."""
    assert not job["ahead"]


def test_its_token_is_its_users_alone(job: dict[str, Any], short_home: Path) -> None:
    token = short_home / ".ray" / "auth_token"
    assert len(token.read_text()) == 64
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
