"""One assignment of a training function on one worker: resumed, run, watched, and its checkpoint written."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from trainers import storage
from trainers.assignment import Assignment, Report, Segment
from trainers.errors import TrialError, WarmbandError
from trainers.patient_storage import PatientStorage
from trainers.pytorch import random_state
from trainers.pytorch.checkpoint import TorchCheckpoint
from trainers.pytorch.context import TrainContext, Worker
from trainers.pytorch.deadline import Deadline
from trainers.pytorch.distribution import Distribution, Peers
from trainers.pytorch.function import TrainFunction

_LONGER = 1.25
"""A function has longer to a report than workers wait for each other, so that the wait can say who is missing."""


def train_segment(
    function: TrainFunction,
    assignment: Assignment,
    worker: Worker,
    peers: Peers,
    distribute: Callable[[int], Distribution],
    on_report: Callable[[Report], None],
    halted: Callable[[], bool],
    *,
    report_timeout_s: float,
    place: PatientStorage,
) -> Segment:
    """Runs a training function from the assignment's checkpoint to its rung.

    Args:
        function: the user's.
        assignment: what to train.
        worker: what this worker brings.
        peers: the gang's workers.
        distribute: makes what turns their gradients into updates, given how many there were before this assignment.
        on_report: is told of each report.
        halted: see `trainers.gang.Program.train`.
        report_timeout_s: how long the function may train without one.
        place: where checkpoints are read and written.

    Raises:
        TrialError: what is wrong with the function or the checkpoint.
        StorageError, UnsavedError: see `trainers.gang.Program.train`.
        DivergedError: the trial diverged.
    """
    arrived = time.perf_counter()
    resumed = TorchCheckpoint.read(assignment.checkpoint, place.read) if assignment.checkpoint else None
    read = time.perf_counter() - arrived
    deadline = Deadline(report_timeout_s * _LONGER)
    reports: list[Report] = []
    saved: list[tuple[str, bytes]] = []
    packing = 0.0

    def note(report: Report) -> None:
        deadline.beat()
        reports.append(report)
        on_report(report)

    def save(checkpoint: TorchCheckpoint) -> None:
        # Written when the function is done: it might catch what goes wrong with the storage, and has a deadline.
        nonlocal packing
        began = time.perf_counter()
        saved.append((assignment.saved_at(checkpoint.step), checkpoint.to_bytes()))
        packing = time.perf_counter() - began

    distribution = distribute(resumed.updates if resumed else 0)
    context = TrainContext(
        assignment,
        worker,
        peers,
        distribution,
        resumed=resumed,
        on_report=note,
        halted=halted,
        beat=deadline.beat,
        on_end=save,
    )
    with random_state.kept(worker.device):
        random_state.seed_all(assignment.seed)
        with (
            deadline.watched(f"a report of {assignment.trial_id} after {assignment.start} epochs or more"),
            _explained(assignment),
        ):
            try:
                function(context)
                context.finish()
            finally:
                details = distribution.close()
    ended = time.perf_counter()
    for uri, raw in saved:
        place.write(uri, raw)
    return Segment(
        reports=tuple(reports),
        checkpoint=assignment.saved_at(reports[-1].step),
        checkpoint_bytes=sum(len(raw) for _, raw in saved),
        training_seconds=ended - arrived - read - packing,
        checkpointing_seconds=read + packing + time.perf_counter() - ended,
        first_step_at=context.first_step_at or time.time(),
        details=details,
    )


@contextmanager
def _explained(assignment: Assignment) -> Iterator[None]:
    """Says of a state that a model does not take which checkpoint it comes from."""
    try:
        yield
    except WarmbandError:
        raise
    except (RuntimeError, ValueError, KeyError) as error:
        at_load = any(frame.name.startswith("load_state_dict") for frame in traceback.extract_tb(error.__traceback__))
        if not at_load or not assignment.checkpoint:
            raise
        what = " ".join(str(error).split())
        raise TrialError(
            f"checkpoint {storage.shown(assignment.checkpoint)!r} is of another model: {what}; train with the "
            "hyperparameters that it was trained with, or from the beginning"
        ) from error
