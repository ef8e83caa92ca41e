"""Tuning jobs on machines: started as scripts, watched through the store, compared by what they answered."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hpo.record.store import Store
from tests.support.cluster.drive import ROUNDS, gates
from tests.support.cluster.helper_machines import Machines
from tests.support.cluster.ray_machines import until
from tests.support.cluster.slow_training import impatience, scratch, worker

START_SECONDS = 240.0
"""Until a gang serves its first trial, on cores that are busy with other tests: its processes import for that long."""

END_SECONDS = 300.0
WORKER = "ray::RayTrainWorker"

STANDING = 240.0
"""Seconds that an epoch takes in which a test has something happen, unless the test ends it: less than a trainer waits
for a report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The epochs and the value at which each trial stopped, the winner, and the digest of its model.

    Beside that, the epochs that were trained, see `Job.trained`.
    """

    trials: dict[str, tuple[int, float | None]]
    best: str
    model: str
    checkpoint: str = field(compare=False)
    epochs: list[list[str]] = field(compare=False)


CHANNELS = {"train": 600, "validation": 300}
"""The rows of each channel's table."""


def job_file(
    name: str,
    channels: Mapping[str, Path],
    trainer: Mapping[str, object],
    ranges: Mapping[str, object] = MappingProxyType({}),
    **more: object,
) -> dict[str, object]:
    """A job of six trials, one after another.

    Args:
        name: the job's.
        channels: their tables, where the job reads them.
        trainer: its section of the file.
        ranges: what is tuned beside "eta".
        **more: other keys of the file.
    """
    return {
        "name": name,
        "data": {"channels": {channel: {"path": str(path)} for channel, path in channels.items()}},
        "trainer": trainer,
        "tuning": {
            "objective_metric_name": "validation:auc",
            "strategy": "Hyperband",
            "hyperband": {"max_resource": ROUNDS, "min_resource": 1, "suggestions": "random"},
            "max_jobs": 6,
            "max_parallel_jobs": 1,
            "random_seed": 7,
            "ranges": {"eta": {"type": "continuous", "min": 0.01, "max": 0.5}, **ranges},
        },
        **more,
    }


def network(train_loop: str, workers: int, static: Mapping[str, object]) -> dict[str, object]:
    """The trainer of such a job: a small network, whose epochs go on as `static` says."""
    return {
        "type": "torch",
        "train_loop": train_loop,
        "num_workers": workers,
        "hyperparameters": {"global_batch_size": 60, "eta": 0.1, **static},
        "report_timeout_s": 300,
    }


def answered(store: str, name: str, epochs: list[list[str]], at: Callable[[str], Path] = Path) -> Answer:
    """Return the answer of a Completed job; `at` maps a model's file to a path on this machine."""
    with Store(store) as record:
        job, trials = record.job(name), record.trials(name)
    assert job.status == "Completed", f"{job.status}: {job.reason}"
    best = job.summary["best"]["trial"]
    [checkpoint] = [trial.checkpoint for trial in trials if trial.trial_id == best]
    return Answer(
        trials={trial.trial_id.removeprefix(name): (trial.resource, trial.objective) for trial in trials},
        best=best.removeprefix(name),
        model=hashlib.sha256(at(checkpoint).read_bytes()).hexdigest(),
        checkpoint=checkpoint,
        epochs=epochs,
    )


class Paced:
    """A job whose training function a test traces and holds up: see `tests.support.cluster.slow_training`.

    Args:
        files: what the names of its files begin with.
        slow: seconds that its epochs take, until `slow` says otherwise.
        slow_after: those up to this one take none of them.
    """

    def __init__(self, files: Path, *, slow: float | None = None, slow_after: int = 0) -> None:
        self._trace, self._slow = (files.with_suffix(end) for end in (".trace", ".slow"))
        self.static = {"trace": str(self._trace), "slow": str(self._slow), "slow_after": slow_after}
        """Hyperparameters that tell the function so."""
        if slow is not None:
            self.slow(slow)

    def slow(self, seconds: float | None) -> None:
        """Makes each epoch last so long from now on, the one that is being trained too; None lets all go on."""
        if seconds is None:
            self._slow.unlink()
            return
        whole = self._slow.with_suffix(".new")
        whole.write_text(str(seconds))
        whole.replace(self._slow)

    def give_up_after(self, seconds: float) -> None:
        """How long its workers wait for their storage, from their next epoch on."""
        impatience(self._slow).write_text(str(seconds))

    def use_scratch(self) -> None:
        """Has each epoch write a temporary file, from the next on."""
        scratch(self._slow).touch()

    def at_work(self) -> tuple[str, int]:
        """The machine, and its number of the process, of rank 0 of the gang that began an epoch last."""
        machine, pid = worker(self._slow).read_text().split()
        return machine, int(pid)

    def trained(self) -> list[list[str]]:
        """Of each epoch that was begun: its trial's seed, its number, how many workers."""
        lines = self._trace.read_text().splitlines() if self._trace.exists() else []
        return [line.split() for line in lines]

    def trials(self) -> list[list[str]]:
        """Of each epoch of the trials and the un-tuned run; the probe, which comes first, takes as long as it may."""
        lines = self.trained()
        return sorted(line for line in lines if line[0] != lines[0][0])


class Job(Paced):
    """A job of `tests.support.cluster.drive`, beside the head of some machines; what `job` leaves out is `drive`'s.

    Its store is on the folder that all machines share, and so are its models, if nothing else is said.

    Args:
        machines: what it runs on.
        holds: at how many rungs it waits, see `until_held`, until `release`.
        slow: seconds that its epochs take, until `slow` says otherwise.
        slow_after: those up to this one take none of them.
        environment: of its driver, beside the machines'.
        **job: see `tests.support.cluster.drive.tuner`.
    """

    def __init__(
        self,
        machines: Machines,
        *,
        holds: int = 0,
        slow: float | None = None,
        slow_after: int = 0,
        environment: Mapping[str, str] | None = None,
        **job: Any,
    ) -> None:
        self.machines = machines
        self.name: str = job["name"]
        self._files = machines.base / self.name
        self._held = 0
        super().__init__(self._files, slow=slow, slow_after=slow_after)
        self.store = f"sqlite:///{machines.base}/store.db"
        self.log = self._files.with_suffix(".log")
        more = {
            "store": self.store,
            "storage_path": str(machines.base / "shared"),
            "hold": (str(self._files), holds),
            "static": self.static,
        }
        command = ["python", "-m", "tests.support.cluster.drive", json.dumps({**more, **job})]
        with self.log.open("w") as log:
            self.process: subprocess.Popen[str] = machines.start(command, log, extra=environment)

    @property
    def said(self) -> str:
        """The output so far."""
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

    def until_held(self) -> None:
        """Waits until its gang is up and has trained, and the job does nothing until `release`."""
        self._held += 1
        held, _ = gates(str(self._files), self._held)
        self.until(held.exists, f"rung {self._held}", START_SECONDS)

    def release(self) -> None:
        """Lets it go on."""
        _, goes = gates(str(self._files), self._held)
        goes.touch()

    def until_epoch(self, after: int, seen: int = 0) -> None:
        """Waits for an epoch later than number `after`, of any trial, beside the first `seen` that were begun."""

        def there() -> bool:
            lines = self.trained()
            return any(int(number) > after for seed, number, _ in lines[seen:] if seed != lines[0][0])

        self.until(there, f"an epoch after number {after}", START_SECONDS)

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
        last = json.loads(self.said.splitlines()[-1])
        return Answer(trials=found, best=best.removeprefix(self.name), epochs=self.trials(), **last)

    def attempts(self) -> int:
        """How often assignments were handed out again, because their gang was lost."""
        with Store(self.store) as store:
            return sum(trial.attempts for trial in store.trials(self.name))

    def end(self) -> None:
        """Ends its driver, if it still runs."""
        self.machines.end(self.process)


def freeze(pids: Iterable[int]) -> None:
    """Stops processes where they are, so that what waits for them waits."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
