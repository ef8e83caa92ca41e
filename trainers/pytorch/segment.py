"""One assignment of a training function on one worker: resumed, run, watched, and its checkpoint written."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from trainers import steady, storage
from trainers.checkpoint import UNKNOWN, Manifest, looked_up, trial_of
from trainers.details import TRAINED_AGAIN
from trainers.errors import TrialError, WarmbandError
from trainers.gangs import Assignment, Report, Segment
from trainers.patient_storage import PatientStorage
from trainers.pytorch.context import TrainContext
from trainers.pytorch.data import Worker
from trainers.pytorch.deadline import Deadline
from trainers.pytorch.distribution import Distribution, Peers
from trainers.pytorch.function import TrainFunction
from trainers.pytorch.gradients import own_steps
from trainers.pytorch.layouts import Parts
from trainers.pytorch.measures import Profiling, profiled
from trainers.pytorch.state import IN_SHARDS, TorchCheckpoint, random_state, shards

_LONGER = 1.25
"""A function has longer to a report than workers wait for each other, so that the wait can say who is missing."""


def train_segment(
    function: TrainFunction,
    assignment: Assignment,
    worker: Worker,
    parts: Parts,
    distribute: Callable[[int], Distribution],
    on_report: Callable[[Report], None],
    halted: Callable[[], bool],
    *,
    report_timeout_s: float,
    place: PatientStorage,
    profiling: Profiling | None = None,
) -> Segment:
    """Runs a training function from the assignment's checkpoint to its rung.

    Args:
        function: the user's.
        assignment: what to train.
        worker: what this worker brings.
        parts: the gang's workers, as the trial's layout groups them.
        distribute: makes what turns their gradients into updates, given how many there were before this assignment.
        on_report: is told of each report.
        halted: see `trainers.gangs.Program.train`.
        report_timeout_s: how long the function may train without one.
        place: where checkpoints are read and written, and traces of profiles are written.
        profiling: which trials are profiled.

    Raises:
        TrialError: what is wrong with the function or the checkpoint.
        StorageError, UnsavedError: see `trainers.gangs.Program.train`.
        DivergedError: the trial diverged.
    """
    deadline = Deadline(report_timeout_s * _LONGER)
    book = _Book(assignment, deadline, on_report, place, parts.gang)
    resumed = book.read()
    if resumed is not None:
        known = assignment.stop if resumed.ended is not None else min(resumed.step, assignment.stop)
        for step in range(assignment.start + 1, known + 1):
            book.note(Report(step=step, metrics=resumed.ended or resumed.ahead))
        if known == assignment.stop:
            book.copy(replace(resumed, step=max(resumed.step, assignment.stop)), assignment.stop)
            return book.segment(steady.now(), {})
    distribution = distribute(resumed.updates if resumed else 0)
    context = TrainContext(
        assignment,
        worker,
        parts,
        distribution,
        resumed=resumed,
        on_report=book.note,
        halted=halted,
        beat=deadline.beat,
        on_end=book.take,
    )
    with random_state.kept(worker.device):
        random_state.seed_all(assignment.seed)
        with (
            profiled(
                profiling, assignment, parts.gang.rank, distribution.communication, worker.device, place.write
            ) as profile,
            deadline.watched(f"a report of {assignment.trial_id} after {assignment.start} {worker.unit}s or more"),
            _explained(assignment),
            own_steps.refused(distribution, parts.gang, lambda: context.updating),
        ):
            details: dict[str, Any] = {}
            try:
                function(context)
                context.finish()
                deadline.beat()
                details |= distribution.communication.details(parts.gang)
                details |= {TRAINED_AGAIN: context.trained_again} if context.trained_again else {}
            except BaseException:
                book.give_up()
                raise
            finally:
                context.close()
                distribution.mixed.close()
                details |= distribution.close()
    return book.segment(context.first_step_at or steady.now(), details | profile)


class _Book:
    """Results of an assignment, as they come: reports, the checkpoint, and the seconds that they took."""

    def __init__(
        self,
        assignment: Assignment,
        deadline: Deadline,
        on_report: Callable[[Report], None],
        place: PatientStorage,
        peers: Peers,
    ) -> None:
        self._assignment = assignment
        self._deadline = deadline
        self._on_report = on_report
        self._reports: list[Report] = []
        self._began = time.perf_counter()
        self._checkpointing = 0.0
        self._place = place
        self._peers = peers
        self._packed: tuple[str, bytes] | None = None
        self._of_unit = 0
        self._staged: shards.Staged | None = None
        self._resumed: TorchCheckpoint | None = None

    def read(self) -> TorchCheckpoint | None:
        """The checkpoint to go on from; None at a trial's beginning, and where its function has reported none."""
        if not self._assignment.checkpoint:
            return None
        began = time.perf_counter()
        uri, manifest = self._assignment.checkpoint, self._assignment.manifest
        if not manifest.files:
            manifest = self._place.attempt(partial(looked_up, uri))
        checkpoint = TorchCheckpoint.opened(uri, manifest, self._place)
        self._checkpointing += time.perf_counter() - began
        self._resumed = checkpoint if checkpoint.step else None
        return self._resumed

    def note(self, report: Report) -> None:
        """Takes a report down and passes it on."""
        self._deadline.beat()
        self._reports.append(report)
        self._on_report(report)

    def copy(self, before: TorchCheckpoint, reached: int) -> None:
        """Takes a checkpoint of before, which stands for one of this assignment's end."""
        staged = None
        if shards.needed(before.state):
            staged = shards.stage(before.state, self._peers.rank, self._peers.gather)
            before = replace(before, state=staged.tree)
        if self._peers.rank == 0 or staged:
            self.take(before, staged, reached)

    def take(self, checkpoint: TorchCheckpoint | None, staged: shards.Staged | None, reached: int) -> None:
        """Takes the checkpoint that the assignment ends with, to be written when the function is done.

        Without one, it is the last one before, and the trial goes on from there.

        A function might catch what goes wrong with the storage, and has a deadline. What is in shards is written
        meanwhile, and the checkpoint is whole when all workers are done.
        """
        if checkpoint is None:
            if self._packed is None:
                self.copy(self._resumed or TorchCheckpoint.none(), reached)
            return
        began = time.perf_counter()
        uri = self._assignment.saved_at(reached)
        self._packed = uri, checkpoint.to_bytes() if self._peers.rank == 0 else b""
        self._of_unit = checkpoint.step
        self._staged = staged
        if staged:
            staged.begin(uri, self._place)
            self._checkpointing += staged.seconds
        self._checkpointing += time.perf_counter() - began

    def give_up(self) -> None:
        """There will be no checkpoint, of which a part may be written by now."""
        if self._staged:
            self._staged.give_up()

    def segment(self, first_step_at: float, details: dict[str, Any]) -> Segment:
        """All of it, once the checkpoint is written.

        Raises:
            UnsavedError: it cannot be.
        """
        began = time.perf_counter()
        reached = self._reports[-1].step
        manifest = self._written(reached)
        self._checkpointing += time.perf_counter() - began
        if self._packed is not None and self._of_unit < reached:
            details = {**details, "model_of_unit": str(self._of_unit)}
        return Segment(
            reports=tuple(self._reports),
            checkpoint=self._assignment.saved_at(reached),
            manifest=manifest,
            training_seconds=time.perf_counter() - self._began - self._checkpointing,
            checkpointing_seconds=self._checkpointing,
            first_step_at=first_step_at,
            details=details,
        )

    def _written(self, reached: int) -> Manifest:
        if self._packed is None:
            return UNKNOWN
        uri, raw = self._packed
        if self._staged is None:
            return self._place.write(self._assignment.saved_at(reached), raw)
        return self._staged.end(uri, self._peers.rank, self._peers.gather, self._place, {IN_SHARDS: raw})


@contextmanager
def _explained(assignment: Assignment) -> Iterator[None]:
    """Says of a state that a model does not take which checkpoint it comes from, and that a function wanted to exit."""
    try:
        yield
    except WarmbandError:
        raise
    except SystemExit as error:  # It would end the worker, or in hand the whole job.
        raise TrialError(
            f"the training function called sys.exit({error.code!r}); raise an exception where a trial has failed"
        ) from error
    except (RuntimeError, ValueError, KeyError) as error:
        at_load = any(frame.name.startswith("load_state_dict") for frame in traceback.extract_tb(error.__traceback__))
        if not at_load or not assignment.checkpoint:
            raise
        what, parent = " ".join(str(error).split()), trial_of(assignment.checkpoint)
        remedy = "train with the hyperparameters that it was trained with, or from the beginning"
        if parent != assignment.trial_id:
            remedy = (
                f"it is trial {parent!r}'s, which this one began from: change no hyperparameter that shapes the model"
            )
        raise TrialError(
            f"checkpoint {storage.shown(assignment.checkpoint)!r} is of another model: {what}; {remedy}"
        ) from error
