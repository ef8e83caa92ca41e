"""Tuning jobs that `hpo` commands run on machines, each by any of them: begun, submitted, resumed, taken over."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hpo.jobs.files.folder import MARK
from hpo.record.store import Store
from hpo.search.trial import PROBE
from tests.support import yaml_text
from tests.support.cluster.drive import table
from tests.support.cluster.jobs import (
    CHANNELS,
    END_SECONDS,
    START_SECONDS,
    WORKER,
    Answer,
    Paced,
    answered,
    job_file,
    network,
)
from tests.support.cluster.machine import Machine, children, number_inside, signal_it
from tests.support.cluster.ray_machines import RayMachines, until
from tests.support.refusals import missing_names

COMMAND_SECONDS = 120.0
"""How long a command may take that only looks, or refuses, on busy cores."""


class Driver:
    """A command that drives a job, on a machine of its own choice.

    Args:
        machines: where it runs.
        on: on which of them.
        name: of its log.
        command: the command.
    """

    def __init__(self, machines: RayMachines, on: Machine, name: str, command: list[str]) -> None:
        self._machines = machines
        self.log = machines.base / f"{name}.log"
        with self.log.open("w") as log:
            self.process = machines.start(command, log, on=on)

    @property
    def said(self) -> str:
        """The output so far."""
        return self.log.read_text()

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def signal(self, number: int) -> None:
        """Sends it a signal; `nsenter`, which waits for it, stands still with it, and has to be told, too, to go on."""
        signal_it(self.process, number)
        if number == signal.SIGCONT:
            self.process.send_signal(number)

    def until_said(self, seconds: float, *names: str) -> None:
        """Waits until what it prints has these names.

        Raises:
            AssertionError: it ended before.
        """

        def said() -> bool:
            ended = not self.runs
            there = not missing_names(self.said, *names)
            assert there or not ended, f"it ended before it said {names}:\n{self.said}"
            return there

        try:
            until(said, f"a driver to say {names}", seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; it said:\n{self.said}") from None

    def end(self, seconds: float = END_SECONDS) -> int:
        """Waits for its end, and returns its exit code."""
        until(lambda: not self.runs, f"a driver to end, see {self.log}", seconds)
        return int(self.process.wait())


class CommandedJob(Paced):
    """A job of a file: a small network on gangs of two workers.

    Args:
        machines: what it runs on; their environment has the record.
        store: the record's URL.
        name: the job's.
        sizes: of its gangs; several are tuned, too.
        storage_path: of its models; None is a folder that all machines share.
        slow: see `Paced`.
        slow_after: see `Paced`.
    """

    def __init__(
        self,
        machines: RayMachines,
        store: str,
        name: str,
        *,
        sizes: Sequence[int] = (2,),
        storage_path: Path | None = None,
        slow: float | None = None,
        slow_after: int = 0,
    ) -> None:
        self.machines, self.store, self.name = machines, store, name
        self._sizes = sizes
        self.folder = machines.base / name
        """The folder that is submitted with the job; its models have another folder."""
        self.folder.mkdir()
        super().__init__(self.folder / name, slow=slow, slow_after=slow_after)
        self.models = (storage_path or machines.base / "shared") / name
        self._drivers: list[Driver] = []
        self.file = self.folder / "job.yaml"
        self.file.write_text(yaml_text.dump(self._values()))

    def _values(self) -> dict[str, Any]:
        channels = {channel: self.machines.base / f"{channel}.csv" for channel in CHANNELS}
        for number, (channel, path) in enumerate(channels.items()):
            if not path.exists():
                table(CHANNELS[channel], number + 1).to_csv(path, index=False)
        several = len(self._sizes) > 1
        sizes = {"num_workers": {"type": "categorical", "values": list(self._sizes)}} if several else {}
        trainer = network("tests.support.cluster.slow_training:train", self._sizes[-1], self.static)
        return job_file(self.name, channels, trainer, sizes, storage_path=str(self.models.parent))

    # ---- commands

    def tune(self, on: Machine) -> Driver:
        """Begins it."""
        return self._driver(on, "tune", str(self.file))

    def resume(self, on: Machine) -> Driver:
        """Goes on with it."""
        return self._driver(on, "resume", self.name)

    def submit(self, on: Machine) -> str:
        """Hands it to the cluster; what the command said."""
        address = f"http://{self.machines.head.address}:8265"
        command = ["submit", str(self.file), "--working-dir", str(self.folder), "--address", address, "--allow-code"]
        code, said = self.hpo(*command, on=on)
        assert code == 0, said
        return said

    def submit_resume(self, on: Machine) -> None:
        """Has the cluster go on with it, by Ray's own command."""
        address = f"http://{self.machines.head.address}:8265"
        resume = ["hpo", "resume", self.name, "--allow-code"]
        command = ["ray", "job", "submit", "--no-wait", "--address", address, "--", *resume]
        done = self.machines.run(command, timeout=COMMAND_SECONDS, on=on)
        assert done.returncode == 0, done.stdout

    def hpo(self, *arguments: str, on: Machine) -> tuple[int, str]:
        """A command's exit code, and what it said."""
        done = self.machines.run(["hpo", *arguments], timeout=COMMAND_SECONDS, on=on)
        return done.returncode, done.stdout

    def _driver(self, on: Machine, *arguments: str) -> Driver:
        name = f"{self.name}-{len(self._drivers) + 1}-{arguments[0]}"
        self._drivers.append(Driver(self.machines, on, name, ["hpo", *arguments, "--allow-code"]))
        return self._drivers[-1]

    def end(self) -> None:
        """Ends the drivers that still run."""
        for driver in self._drivers:
            if driver.runs:
                driver.signal(signal.SIGKILL)
                driver.process.send_signal(signal.SIGCONT)  # `nsenter` may stand still with it.
            driver.end()

    # ---- what is seen of it

    def until_epoch(self, after: int, seen: int = 0, driver: Driver | None = None) -> None:
        """Waits for an epoch later than number `after`, of any trial, beside the first `seen` that were begun."""

        def there() -> bool:
            lines = self.trained()
            found = any(int(number) > after for seed, number, _ in lines[seen:] if seed != lines[0][0])
            assert found or driver is None or driver.runs, f"it ended before that:\n{driver.said}"
            return found

        until(there, f"an epoch of {self.name} after number {after}", START_SECONDS)

    def workers(self) -> list[int]:
        """The processes of workers that hold what this job's gangs were told."""
        return [pid for machine in self.machines.machines for pid in machine.processes(WORKER)]

    def serving(self) -> int:
        """The process of rank 0 of the gang that trains; other gangs may wait for work."""
        name, inside = self.at_work()
        [machine] = [machine for machine in self.machines.machines if machine.name == name]
        [pid] = [pid for pid in machine.processes(WORKER) if number_inside(pid) == inside]
        return pid

    def rows(self) -> dict[str, list[Any]]:
        """All that the record has of it, but for when its driver was last heard of."""
        with Store(self.store) as store:
            job = dataclasses.replace(store.job(self.name), heartbeat=0.0, silent=0.0)
            return {
                "job": [job],
                "trials": store.trials(self.name),
                "reports": store.reports(self.name),
                "ledger": store.ledger(self.name),
                "lines": store.lines(self.name),
            }

    def status(self) -> tuple[str, str]:
        """Its status and reason, in the record."""
        with Store(self.store) as store:
            job = store.job(self.name)
        return job.status, job.reason

    def files(self) -> dict[str, str]:
        """Its models, by their digests."""
        found = sorted(path for path in self.models.rglob("*") if path.is_file())
        return {str(path.relative_to(self.models)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}

    def strays(self) -> set[str]:
        """Files in its models' folder that the record names nowhere, but for the mark."""
        with Store(self.store) as store:
            named = {trial.checkpoint for trial in store.trials(self.name)}
        return {file for file in self.files() if file != MARK and str(self.models / file) not in named}

    def replaced(self) -> set[str]:
        """Strays that go while it runs: what its probe wrote, and what nodes look for, go at its end."""
        return {file for file in self.strays() if not file.startswith((f"{PROBE}/", ".warmband-reach-"))}

    def answer(self) -> Answer:
        """Return the job's answer; it has to be Completed."""
        return answered(self.store, self.name, self.trials())

    def attempts(self) -> int:
        """How often assignments were handed out again, because their gang was lost."""
        with Store(self.store) as store:
            return sum(trial.attempts for trial in store.trials(self.name))


# ---- what is left behind

LEFT = """
import json, ray
from ray.util import placement_group_table
from ray.util.state import list_actors
ray.init(log_to_driver=False)
held = [group for group, row in placement_group_table().items() if row["state"] != "REMOVED"]
actors = [actor.class_name for actor in list_actors(limit=1000) if actor.state != "DEAD"]
print(json.dumps({"groups": held, "actors": sorted(actors)}))
"""


def left(machines: RayMachines) -> dict[str, Any]:
    """Return processes, shared memory and files on a cluster by machine, its actors and placement groups."""
    looked = machines.run(["python", "-c", LEFT], timeout=COMMAND_SECONDS)
    assert looked.returncode == 0, looked.stdout
    # Ray may warn behind it.
    found: dict[str, Any] = json.loads(next(line for line in looked.stdout.splitlines() if line.startswith("{")))
    return found | left_on_machines(machines)


def left_on_machines(machines: RayMachines) -> dict[str, Any]:
    """The part of `left` that takes no process to look at."""
    found: dict[str, Any] = {}
    for machine in machines.machines:
        seen = Path(f"/proc/{machine.pid}/root")
        temporary = seen / str(machines.private / "tmp").lstrip("/")
        found |= {
            f"{machine.name}: processes": sorted(
                " ".join(line.split()[:4]) for pid, line in machine.processes().items() if line and pid != machine.pid
            ),
            f"{machine.name}: shared memory": sorted(os.listdir(seen / "dev" / "shm")),
            f"{machine.name}: temporary files": sorted(os.listdir(temporary)),
        }
    return found


def until_left(machines: RayMachines, before: dict[str, Any], seconds: float, beside: Sequence[str] = ()) -> None:
    """Waits until nothing is on a cluster that was not there before, and is not named by `beside`.

    Raises:
        TimeoutError: with what still is.
    """
    more: dict[str, Any] = {}

    def clean() -> bool:
        # Who asks Ray is a process on it, that takes seconds of a core: only once all else is gone.
        return nothing_of(left_on_machines(machines)) and nothing_of(left(machines))

    def nothing_of(now: dict[str, Any]) -> bool:
        more.clear()
        for kind, there in now.items():
            known = list(before[kind])
            for one in there:
                if one in known:
                    known.remove(one)
                elif one not in beside:
                    more.setdefault(kind, []).append(one)
        return not more

    try:
        until(clean, "nothing to be left behind", seconds)
    except TimeoutError as error:
        raise TimeoutError(f"{error}; left are {json.dumps(more)}") from None


def kill(pids: list[int]) -> None:
    """Kills processes."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def driver_of(machine: Machine, name: str, command: str = "hpo tune") -> list[int]:
    """The processes on a machine that drive a submitted job, which Ray's own of it have started."""
    found = machine.processes(command)
    return [pid for pid in found if name in found[pid] and not children(pid)] or list(found)
