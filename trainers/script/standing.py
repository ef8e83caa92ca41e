"""A program that stands at its trial's rung, its processes stopped, until it is known whether the trial goes on."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from trainers.gangs import Assignment
from trainers.script.checkpoint_reads import CheckpointReads, CheckpointWrites
from trainers.script.environment import Folders
from trainers.script.metric_files import Reported
from trainers.script.noted import Noted
from trainers.script.parts import Part
from trainers.script.process import ProgramProcess
from trainers.script.units import Units

STAND_SECONDS = 60.0
"""How long it stands at most; its gang's next assignment comes at once, where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A program of one worker, from its start to its end, over assignments of one trial.

    Args:
        part: this worker's.
        folders: of this worker.
        units: what counts its units; rank 0 alone is told of any.
        reports_file: where it may report to, and its own files of metrics.
        writes: of its checkpoints.
        reads: of its checkpoints; None where nobody asks.
    """

    part: Part
    folders: Folders
    units: Units
    reports_file: Reported
    writes: CheckpointWrites
    reads: CheckpointReads | None = None


class Standing:
    """A program between two assignments of its trial, on one worker.

    It takes no processor time. If no assignment comes it is ended, so that it does not keep memory for nobody.

    Args:
        running: the program.
        grace: seconds from SIGTERM to SIGKILL.
    """

    def __init__(self, running: Running, grace: float) -> None:
        self.running = running
        self.noted = Noted.none()
        """What is to be known of the trial where it stands; right on rank 0."""
        self._grace = grace
        self._at: Assignment | None = None
        self._checkpoint = ""
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()
        self._over = False

    def wait(self, at: Assignment, checkpoint: str, noted: Noted) -> None:
        """An assignment is over, and its checkpoint is written."""
        self._at, self._checkpoint, self.noted = at, checkpoint, noted
        self._timer = threading.Timer(STAND_SECONDS, self.end)
        self._timer.daemon = True
        self._timer.start()

    def fits(self, next_one: Assignment) -> bool:
        """Whether an assignment goes on from exactly here; it does not end by itself any more."""
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            at = self._at
            return (
                not self._over
                and at is not None
                and (at.trial_id, at.hyperparameters, at.stop, self._checkpoint)
                == (next_one.trial_id, next_one.hyperparameters, next_one.start, next_one.checkpoint)
            )

    def go_on(self) -> None:
        """Lets its processes run."""
        if isinstance(process := self.running.part.process, ProgramProcess):
            process.go_on()

    def end(self) -> None:
        """Ends it; a second call waits for the first, and does nothing."""
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            if not self._over and self.running.part.process is not None:
                self.running.part.process.end(self._grace)
            self._over = True
