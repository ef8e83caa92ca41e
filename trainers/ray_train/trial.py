"""A trial as its function sees it through `ray.train`: units counted, files kept, the end at a rung."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from trainers import steady
from trainers.deletion import delete_given
from trainers.errors import ConfigurationError, TrialError
from trainers.gangs import Assignment, Report
from trainers.metrics import began_again
from trainers.pytorch import Peers
from trainers.ray_train.packing import State, numbers_of, packed, unpacked

if TYPE_CHECKING:
    from ray.train import Checkpoint

    from trainers.ray_train.handed_files import HandedFiles

logger = logging.getLogger(__name__)


UNSAVED = "it goes on without a checkpoint of its rung; report a checkpoint with every ray.train.report"
UNREAD = "it began again; let it go on from ray.train.get_checkpoint()"
"""Why a trial trains units again."""


class RungReached(BaseException):
    """Ends the function where its assignment ends; nothing that catches `Exception` holds it up."""


class Trial:
    """Answers for one assignment; see `trainers.ray_train.answers.Trial`. Every rank reports alike.

    A report with the objective is a unit; rank 0's word counts. A report without it ends nothing, and its metrics are
    those of the next unit. A function that goes on without having read its checkpoint began again: its units are
    counted from 1.

    Args:
        assignment: what is to be trained, until where.
        peers: the gang's workers.
        on_report: is told of each report that is not a repeated one.
        halted: says, on rank 0, whether the assignment is to end with the report that is being made.
        beat: is called with each report.
        resumed: where the trial stands; None at its beginning.
        files: the folder with its files, where it has some.
        shards: this worker's datasets.
        scratch: a folder for files that the function asks for.
    """

    def __init__(
        self,
        assignment: Assignment,
        peers: Peers,
        on_report: Callable[[Report], None],
        halted: Callable[[], bool],
        beat: Callable[[], None],
        *,
        resumed: State | None,
        files: Path | None,
        shards: Mapping[str, Any],
        scratch: Path,
    ) -> None:
        self._assignment = assignment
        self._peers = peers
        self._on_report = on_report
        self._halted = halted
        self._beat = beat
        self._files = files
        self._shards = shards
        self._scratch = scratch
        self._unpacked = 0
        self._resumed = resumed
        self._reported = self.files_at = resumed.reported if resumed else 0
        self._metrics = dict(resumed.metrics) if resumed else {}
        self._first = dict(resumed.first) if resumed else {}
        self._beside: dict[str, float] = {}
        """Metrics of reports since the last unit, which had no objective."""
        self._began = self._reads = self._over = False
        self._why, self._opened = UNSAVED, False
        self._handed: list[HandedFiles] = []
        self.repeated = 0
        """Units that were counted before."""
        self.files: bytes | None = None
        """This rank's last files, of the report `files_at`, as a tar file; None where it has reported none."""
        self.packing_seconds = 0.0
        self.diverged = ""
        """Why the trial is not trained any further."""
        self.end: State | None = None
        """Where the trial stands at the end, as far as this rank knows about files."""
        self.called_at = 0.0
        """When the function first made a report, in seconds since the epoch."""

    # ---- what the function asks

    def report(self, metrics: Mapping[str, Any], checkpoint: Checkpoint | None, options: Mapping[str, Any]) -> None:
        """One unit of resource, if it has the objective; ends the function at the rung."""
        if self._over:
            raise RungReached  # It caught the first.
        _refuse(options)
        if not isinstance(metrics, Mapping):
            raise TrialError(f"ray.train.report: metrics are {metrics!r}; give a dict of numbers by name")
        self._beat()
        self.called_at = self.called_at or steady.now()
        self._beside |= numbers_of(metrics)
        self._look_whether_read()
        is_unit = self._is_unit()
        if is_unit:
            self._look_whether_repeated()
        step = self._reported + is_unit
        if checkpoint is not None:
            self._take(checkpoint, options, step)
        if not is_unit:
            return
        report = Report(step=step, metrics=self._beside)
        self._beside = {}
        if step == 1:
            self._first = report.metrics
        if step <= self._assignment.start:
            self._peers.meet(f"report {step}, which is repeated")
            self._repeat(step)
        else:
            self._count(report, may_end=checkpoint is not None)
        self._reported, self._metrics = step, report.metrics
        if self._over:
            self.end = self._state(step)
            raise RungReached

    def get_checkpoint(self) -> Checkpoint | None:
        """The files that were reported last, by this worker in this assignment or by all of them before it."""
        # Imported here: whoever looks at a job does not wait for Ray Train.
        from trainers.ray_train.handed_files import HandedFiles

        self._reads = self._reads or not self._began
        if self.files is not None:
            self._unpacked += 1
            self._files = self._scratch / str(self._unpacked)
            self._files.mkdir()
            unpacked(self.files, self._files, "of the last report")
        if self._files is None:
            return None
        handed = cast("HandedFiles", HandedFiles.from_directory(self._files))
        if not self._began:
            self._handed.append(handed)
        return handed

    def get_dataset_shard(self, name: str | None) -> Any:
        """This worker's part of a dataset of the trainer's."""
        if name is None or name not in self._shards:
            there = ", ".join(map(repr, self._shards)) or "none"
            raise ConfigurationError(
                f"ray.train.get_dataset_shard({name!r}): there are {there}; give the Ray trainer "
                f"datasets={{{name!r}: ...}}, or fit({{{name!r}: ...}})"
            )
        return self._shards[name].iterator()

    # ---- the end

    def stand_still(self, resumed: State) -> None:
        """Tells the units of a trial whose function has returned before: they are what its last report was."""
        for step in range(self._assignment.start + 1, self._assignment.stop + 1):
            self._on_report(Report(step=step, metrics=dict(resumed.metrics)))
        self.end = replace(resumed, reached=self._assignment.stop)

    def returned(self) -> None:
        """The function has come back by itself: its last report stands for the units that are left.

        Raises:
            TrialError: it has never reported, or other workers still report.
        """
        if self._over:
            return
        self._peers.meet("the end of the training function")
        if not self._reported:
            raise TrialError(self._missing())
        first = max(self._reported, self._assignment.start) + 1
        for step in range(first, self._assignment.stop + 1):
            self._on_report(Report(step=step, metrics=self._metrics))
        self.end = replace(self._state(self._assignment.stop), ended=True)

    # ---- within

    def _state(self, reached: int) -> State:
        reads = self._reads if self._began or self._resumed is None else self._resumed.reads
        return State(reported=self.files_at, reached=reached, metrics=self._metrics, first=self._first, reads=reads)

    def _is_unit(self) -> bool:
        """Whether a report is a unit: it has the objective, where there is one, on rank 0."""
        objective = self._assignment.objective
        return not objective or self._peers.meet("a report's objective", objective in self._beside)

    def _look_whether_read(self) -> None:
        """Counts from 1 where the function had files to go on from, and no worker read them before its first report."""
        if self._began:
            return
        self._began = True
        if self._resumed is not None and self._reported:
            told = self._peers.gather((self._reads, any(handed.opened for handed in self._handed)))
            self._opened = any(opened for _, opened in told)
            if not any(reads for reads, _ in told):
                self._begin_again()
        self._handed.clear()

    def _look_whether_repeated(self) -> None:
        """Counts from 1 where the first values since it was started are those of the trial's own first unit.

        Values that its last unit had, too, say so only of a function that has not opened its files.
        """
        resumed, self._resumed = self._resumed, None
        if resumed is None or not self._reported:
            return
        last = resumed.metrics if self._opened else {}
        if self._peers.meet("the first values", began_again(self._beside, resumed.first, last)):
            self._begin_again()

    def _begin_again(self) -> None:
        self._reported, self._why = 0, UNREAD

    def _missing(self) -> str:
        """Why there is no unit."""
        if not self._beside:
            return "the training function returned without a report; call ray.train.report(metrics) on every worker"
        objective = self._assignment.objective
        names = ", ".join(map(repr, self._beside))
        return f"the training function reported {names} and never {objective!r}, which is the objective; report it, too"

    def _take(self, checkpoint: Checkpoint, options: Mapping[str, Any], step: int) -> None:
        """Packs a report's files: its function removes them once it is back."""
        began = time.perf_counter()
        with checkpoint.as_directory() as folder:
            self.files, self.files_at = packed(folder), step
        if options.get("delete_local_checkpoint_after_upload") and Path(checkpoint.path).is_dir():
            delete_given(checkpoint.path)
        self.packing_seconds += time.perf_counter() - began

    def _repeat(self, step: int) -> None:
        self.repeated += 1
        if self.repeated == 1 and self._peers.rank == 0:
            logger.warning(
                "%s trains again what it did behind unit %d: %s", self._assignment.trial_id, step - 1, self._why
            )

    def _count(self, report: Report, *, may_end: bool) -> None:
        diverged = self._assignment.divergence(report)
        asked = bool(diverged) or (may_end and self._halted())
        ends = self._peers.meet(f"report {report.step}", asked)
        self._on_report(report)  # Before any worker ends.
        if ends and self._peers.meet(f"the end with report {report.step}", bool(diverged)):
            self.diverged = diverged or f"{self._assignment.objective} is not finite on rank 0 at unit {report.step}"
        self._over = ends or report.step == self._assignment.stop


def _refuse(options: Mapping[str, Any]) -> None:
    """Refuses what a gang does not do with a report's files."""
    for name in ("checkpoint_upload_fn", "validation"):
        if options.get(name):
            raise TrialError(
                f"ray.train.report({name}=...) is not there on a gang, which keeps files itself; leave it out"
            )
