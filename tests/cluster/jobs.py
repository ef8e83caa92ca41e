"""Tuning jobs on machines: started as scripts, watched through the store, compared by what they answered."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hpo.store import Store
from tests.cluster.conftest import Machines
from tests.cluster.ray_machines import until

START_SECONDS = 240.0
"""Until a gang serves its first trial, on cores that are busy with other tests: its processes import for that long."""

END_SECONDS = 300.0
WORKER = "ray::RayTrainWorker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Where each trial of a job stopped and with which value, who won, and the digest of the winner's model."""

    trials: dict[str, tuple[int, float | None]]
    best: str
    model: str
    checkpoint: str = field(compare=False)


class Job:
    """A job of `tests.cluster.drive`, beside the head of some machines; what `job` leaves out is `drive`'s.

    Its store is on the folder that all machines share, and so are its models, if nothing else is said.
    """

    def __init__(self, machines: Machines, **job: Any) -> None:
        self.machines = machines
        self.name: str = job["name"]
        self.store = f"sqlite:///{machines.base}/store.db"
        self.log = machines.base / f"{self.name}.log"
        shared = {"store": self.store, "storage_path": str(machines.base / "shared")}
        command = ["python", "-m", "tests.cluster.drive", json.dumps({**shared, **job})]
        with self.log.open("w") as log:
            self.process: subprocess.Popen[str] = machines.start(command, log)

    @property
    def said(self) -> str:
        """What it printed so far."""
        return self.log.read_text()

    def until(self, there: Any, what: str, seconds: float) -> None:
        """Waits for something while the job runs.

        Raises:
            AssertionError: the job ended before.
        """

        def look() -> bool:
            found = bool(there())
            assert found or self.process.poll() is None, f"{self.name} ended before {what}:\n{self.said}"
            return found

        try:
            until(look, what, seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; {self.name} said:\n{self.said}") from None

    def until_trained(self, trials: int = 1) -> None:
        """Waits until so many trials have ended, or wait at a rung."""
        self.until(lambda: self._trained() >= trials, f"{trials} trials to be trained", START_SECONDS)

    def used(self) -> set[str]:
        """The machines that its gangs' workers are on, by the processes that run there."""
        return {machine.name for machine in self.machines.machines if machine.processes(WORKER)}

    def answer(self) -> Answer:
        """Waits for the job's end, which has to be a good one."""
        try:
            assert self.process.wait(END_SECONDS) == 0, self.said
        finally:
            self.end()
        with Store(self.store) as store:
            job, trials = store.job(self.name), store.trials(self.name)
            assert job.status == "Completed", f"{job.status}: {job.reason}\n{self.said}"
            best = job.summary["best"]["trial"]
            found = {trial.trial_id.removeprefix(self.name): (trial.resource, trial.objective) for trial in trials}
        return Answer(trials=found, best=best.removeprefix(self.name), **json.loads(self.said.splitlines()[-1]))

    def attempts(self) -> int:
        """How often assignments were handed out again, because their gang was lost."""
        with Store(self.store) as store:
            return sum(trial.attempts for trial in store.trials(self.name))

    def serving(self) -> int:
        """How many gangs have trained something."""
        with Store(self.store) as store:
            return len({row.gang for row in store.ledger(self.name) if row.kind == "training"})

    def end(self) -> None:
        """Ends its driver, if it still runs."""
        self.machines.end(self.process)

    def _trained(self) -> int:
        # The job, or the store, may not be there yet.
        with suppress(Exception), Store(self.store) as store:
            return sum(trial.resource > 0 for trial in store.trials(self.name))
        return 0


def freeze(pids: Iterable[int]) -> None:
    """Stops processes where they are, so that what waits for them waits."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
