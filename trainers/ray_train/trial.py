"""A trial as its function sees it through `ray.train`: reports counted, files kept, the end at a rung."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainers import steady
from trainers.errors import ConfigurationError, TrialError
from trainers.gangs import Assignment, Report
from trainers.pytorch import Peers
from trainers.ray_train.packing import State, numbers_of, packed, unpacked

if TYPE_CHECKING:
    from ray.train import Checkpoint

logger = logging.getLogger(__name__)


class RungReached(BaseException):
    """Ends the function where its assignment ends; nothing that catches `Exception` holds it up."""


class Trial:
    """Answers for one assignment; see `trainers.ray_train.answers.Trial`. Every rank reports alike.

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
        self._reported = self.files_at = resumed.reported if resumed else 0
        self._metrics = dict(resumed.metrics) if resumed else {}
        self._over = False
        self.repeated = 0
        """Reports that were counted before."""
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
        """One unit of resource; ends the function at the rung."""
        if self._over:
            raise RungReached  # It caught the first.
        _refuse(options)
        if not isinstance(metrics, Mapping):
            raise TrialError(f"ray.train.report: metrics are {metrics!r}; give a dict of numbers by name")
        self._beat()
        self.called_at = self.called_at or steady.now()
        step = self._reported + 1
        if checkpoint is not None:
            self._take(checkpoint, options, step)
        report = Report(step=step, metrics=numbers_of(metrics))
        if step <= self._assignment.start:
            self._peers.meet(f"report {step}, which is repeated")
            self._repeat(step)
        else:
            self._count(report, may_end=checkpoint is not None)
        self._reported, self._metrics = step, report.metrics
        if self._over:
            self.end = State(reported=self.files_at, reached=step, metrics=self._metrics)
            raise RungReached

    def get_checkpoint(self) -> Checkpoint | None:
        """The files that were reported last, by this worker in this assignment or by all of them before it."""
        from ray.train import Checkpoint

        if self.files is not None:
            self._unpacked += 1
            self._files = self._scratch / str(self._unpacked)
            self._files.mkdir()
            unpacked(self.files, self._files, "of the last report")
        return None if self._files is None else Checkpoint.from_directory(self._files)

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
            raise TrialError(
                "the training function returned without a report; call ray.train.report(metrics) on every worker"
            )
        first = max(self._reported, self._assignment.start) + 1
        for step in range(first, self._assignment.stop + 1):
            self._on_report(Report(step=step, metrics=self._metrics))
        self.end = State(reported=self.files_at, reached=self._assignment.stop, metrics=self._metrics, ended=True)

    # ---- within

    def _take(self, checkpoint: Checkpoint, options: Mapping[str, Any], step: int) -> None:
        """Packs a report's files: its function removes them once it is back."""
        began = time.perf_counter()
        with checkpoint.as_directory() as folder:
            self.files, self.files_at = packed(folder), step
        if options.get("delete_local_checkpoint_after_upload") and Path(checkpoint.path).is_dir():
            shutil.rmtree(checkpoint.path, ignore_errors=True)
        self.packing_seconds += time.perf_counter() - began

    def _repeat(self, step: int) -> None:
        self.repeated += 1
        if self.repeated == 1 and self._peers.rank == 0:
            logger.warning(
                "%s goes on without a checkpoint of its rung, and repeats what it did behind unit %d: report a "
                "checkpoint with every ray.train.report",
                self._assignment.trial_id,
                step - 1,
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
