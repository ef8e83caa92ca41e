"""One assignment of a Ray Train function on one worker: resumed, run until its rung, and its files written."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from trainers import steady
from trainers.checkpoint import UNKNOWN, File, Manifest
from trainers.deletion import temporary_folder
from trainers.details import TRAINED_AGAIN
from trainers.errors import DivergedError, TrialError, UnsavedError
from trainers.gangs import Assignment, Report, Segment
from trainers.patient_storage import PatientStorage
from trainers.pytorch import Deadline, Peers, ProcessGroup, random_state
from trainers.ray_train.answers import answering
from trainers.ray_train.loop import Loop
from trainers.ray_train.packing import State, packed, part_name, read_into, with_state
from trainers.ray_train.trial import RungReached, Trial

_LONGER = 1.25
"""A function has longer to a report than workers wait for each other, so that the wait can say who is missing."""


def run_segment(
    loop: Loop,
    assignment: Assignment,
    peers: Peers,
    device: torch.device,
    shards: Mapping[str, Any],
    on_report: Callable[[Report], None],
    halted: Callable[[], bool],
    *,
    report_timeout_s: float,
    place: PatientStorage,
) -> Segment:
    """Runs a function from the assignment's checkpoint to its rung.

    Args:
        loop: the user's.
        assignment: what to train.
        peers: the gang's workers.
        device: of this worker.
        shards: its datasets by name.
        on_report: is told of each report that is no repeated one.
        halted: see `trainers.gangs.Program.train`.
        report_timeout_s: how long the function may train without a report.
        place: where checkpoints are read and written.

    Raises:
        TrialError: what is wrong with the function.
        CheckpointError, StorageError, UnsavedError: see `trainers.gangs.Program.train`.
        DivergedError: the trial diverged.
    """
    began = time.perf_counter()
    reports: list[Report] = []

    def note(report: Report) -> None:
        reports.append(report)
        on_report(report)

    with temporary_folder(prefix="warmband-trial-") as scratch:
        resumed, files = _read(assignment, scratch, place)
        read = time.perf_counter()
        deadline = Deadline(report_timeout_s * _LONGER)
        trial = Trial(
            assignment,
            peers,
            note,
            halted,
            deadline.beat,
            resumed=resumed,
            files=files,
            shards=shards,
            scratch=scratch,
        )
        if resumed is not None and resumed.ended:
            trial.stand_still(resumed)
        else:
            # A function that reads no checkpoint begins again, to train as it did before.
            goes_on_from = trial.files_at if resumed is not None and resumed.reads else 0
            seed = random_state.derive(assignment.seed, "from", goes_on_from, "rank", peers.rank)
            with random_state.kept(device), deadline.watched(f"a report of {assignment.trial_id}"):
                random_state.seed_all(seed)
                with answering(trial, peers.rank, peers.world_size):
                    _run(loop, assignment, trial)
                if isinstance(peers, ProcessGroup):
                    peers.mend()
        if trial.diverged:
            raise DivergedError(trial.diverged)
        trained = time.perf_counter()
        saved = assignment.saved_at(reports[-1].step)
        manifest = _write(saved, trial, files, peers, place)
    return Segment(
        reports=tuple(reports),
        checkpoint=saved,
        manifest=manifest,
        training_seconds=trained - read - trial.packing_seconds,
        checkpointing_seconds=read - began + trial.packing_seconds + time.perf_counter() - trained,
        first_step_at=trial.called_at or steady.now(),
        details={TRAINED_AGAIN: trial.repeated} if trial.repeated else {},
    )


def _run(loop: Loop, assignment: Assignment, trial: Trial) -> None:
    try:
        loop.call(assignment.hyperparameters)
    except RungReached:
        return
    except SystemExit as error:  # It would end the worker, or in hand the whole job.
        raise TrialError(
            f"the training function called sys.exit({error.code!r}); raise an exception where a trial has failed"
        ) from error
    trial.returned()


def _read(assignment: Assignment, scratch: Path, place: PatientStorage) -> tuple[State | None, Path | None]:
    """Where the trial stands, and the folder with its files, where it has some."""
    if not assignment.checkpoint:
        return None, None
    folder = scratch / "resumed"
    folder.mkdir()
    state = read_into(assignment.checkpoint, assignment.manifest, folder, place.read)
    return state, folder if state.reported else None


def _write(saved: str, trial: Trial, before: Path | None, peers: Peers, place: PatientStorage) -> Manifest:
    """Writes the newest files of all workers and, on rank 0, where the trial stands: one file where they are rank 0's.

    Raises:
        UnsavedError: on rank 0, some worker cannot write its own.
    """
    state = trial.end
    assert state is not None, "a function that ends says where its trial stands"
    told = peers.gather((trial.files_at, trial.files is not None))
    newest = max(at for at, _ in told)
    writers = [rank for rank, (at, has) in enumerate(told) if has and at == newest]
    own = trial.files if peers.rank in writers else None
    if peers.rank == 0:
        if not writers:  # None since the checkpoint that it went on from.
            own = packed(before)
        own = with_state(own or packed(None), replace(state, reported=newest))
    if writers in ([], [0]):
        return place.write(saved, own) if own is not None else UNKNOWN
    written: File | str | None = None
    try:
        written = place.write_part(saved, part_name(peers.rank), own) if own is not None else None
    except UnsavedError as error:
        written = str(error)
    parts = peers.gather(written)
    if peers.rank:
        return UNKNOWN
    for part in parts:
        if isinstance(part, str):
            raise UnsavedError(part)
    return place.seal(saved, [part for part in parts if isinstance(part, File)])
