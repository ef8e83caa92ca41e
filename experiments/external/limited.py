"""XGBoost's trainer with workers whose memory the kernel limits, and which note what they hold."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trainers import XGBoostTrainer
from trainers.channels import PlacedChannel
from trainers.gangs import Assignment, Report, Segment, WorkerContext, never
from trainers.xgboost import XGBoostProgram

NOTES, LIMIT = "WARMBAND_NOTES", "WARMBAND_LIMIT"
"""Variables of the driver's environment: the folder of the workers' notes; and a worker's bytes, empty for no limit."""
_GROUPS = Path("/sys/fs/cgroup/memory")


class LimitedTrainer(XGBoostTrainer):
    """The same trainer otherwise."""

    def program(self, channels: dict[str, PlacedChannel]) -> LimitedProgram:
        """See `Trainer.program`."""
        return LimitedProgram(
            channels,
            self.hyperparameters,
            os.environ[NOTES],
            int(os.environ.get(LIMIT) or 0),
            external_memory=self.external_memory,
        )


class LimitedProgram(XGBoostProgram):
    """The same program; it writes a line once it is open and for each segment."""

    def __init__(
        self,
        channels: dict[str, PlacedChannel],
        hyperparameters: Mapping[str, Any],
        folder: str,
        limit: int,
        *,
        external_memory: bool,
    ) -> None:
        super().__init__(channels, hyperparameters, external_memory=external_memory)
        self._folder, self._limit, self._workers = folder, limit, 0
        """Of these workers, none where nothing is noted: the driver's own probe is no worker."""

    def open(self, context: WorkerContext) -> dict[str, float]:
        self._workers = 0 if context.in_hand else context.world_size
        if self._workers and self._limit:
            limit_this_process(self._limit)
        before = held()
        took = super().open(context)
        self._note({"before": before, "opened": took})
        return took

    def train(
        self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool] = never
    ) -> Segment:
        segment = super().train(assignment, on_report, halted)
        said = {"seconds": segment.training_seconds, "rounds": len(segment.reports)}
        self._note({**said, "max_bin": assignment.hyperparameters.get("max_bin")})
        return segment

    def _note(self, said: Mapping[str, Any]) -> None:
        if not self._workers:
            return
        line = {"pid": os.getpid(), "workers": self._workers, **held(), **said}
        with Path(self._folder, str(os.getpid())).open("a") as stream:
            stream.write(json.dumps(line) + "\n")


def notes(folder: Path) -> list[dict[str, Any]]:
    """The lines of all workers, those of each in order."""
    return [json.loads(line) for file in sorted(folder.iterdir()) for line in file.open()]


def held() -> dict[str, int]:
    """Bytes of this process: resident at most so far; resident now; and of that, not in files or shared memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    sizes = {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}
    names = {"most": "VmHWM", "resident": "VmRSS", "own": "RssAnon"}
    return {name: 1024 * int(sizes[kernels][0]) for name, kernels in names.items()}


def limit_this_process(most: int) -> None:
    """Has the kernel end this process before it holds more: in a group (cgroup v1) of its own.

    The group counts what is taken from now on: anonymous memory, and pages of files, which the kernel takes back
    before it ends the process. What is resident already is taken off the limit.

    Raises:
        OSError: the groups cannot be written: it takes root, and version 1 of cgroups.
    """
    resident = held()["resident"]
    mine = next(line.split(":")[2] for line in Path("/proc/self/cgroup").read_text().splitlines() if ":memory:" in line)
    group = _GROUPS / mine.strip("/") / f"external-memory-{os.getpid()}"
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text(str(most - resident))
    (group / "cgroup.procs").write_text(str(os.getpid()))


def remove_groups() -> None:
    """Removes the groups of processes that have ended."""
    for group in _GROUPS.rglob("external-memory-*"):
        if not (group / "cgroup.procs").read_text().strip():
            group.rmdir()
