"""Profile of some steps of a trial, made by `torch.profiler` on rank 0."""

from __future__ import annotations

import gzip
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from trainers.checkpoint import PROFILES, TRACE_ENDING
from trainers.deletion import temporary_folder
from trainers.errors import WarmbandError
from trainers.gangs import Assignment
from trainers.pytorch.measures.communication import WAITING, Communication
from trainers.pytorch.measures.profiling import Profiling

logger = logging.getLogger(__name__)

PROFILE = "profile"
"""Key of a segment's details."""

MOST_OPERATORS = 20
"""Operators in a trial's details; the trace has all."""

_COLLECTIVE = ("c10d::", "gloo:", "nccl", "record_param_comms", "_c10d_functional::", WAITING)
"""Beginnings of the names of operators that communicate, as PyTorch 2.13 calls them."""


class StepProfile:
    """Profiles the steps that it is told of, from one to another. It only looks: the numbers stay as they are.

    Args:
        profiling: which steps.
        communication: what counts them.
        device: that they run on.
    """

    def __init__(self, profiling: Profiling, communication: Communication, device: torch.device) -> None:
        self._profiling = profiling
        self._communication = communication
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
        # Else it warns that events of an earlier cycle are gone, and there is one cycle.
        self._profile = profile(activities=activities, acc_events=True)
        self._running = False
        self._steps = 0
        self._before = (0.0, 0.0)
        self._seconds = (0.0, 0.0)
        if profiling.after == 0:
            self._start()

    def step(self) -> None:
        """A step is over."""
        steps = self._communication.steps
        if self._running and steps >= self._profiling.until:
            self.stop()
        elif not self._running and self._steps == 0 and steps == self._profiling.after:
            self._start()

    def stop(self) -> None:
        """Ends it, if it goes on."""
        if not self._running:
            return
        self._running = self._communication.named = False
        stepped, waited = self._communication.seconds
        self._profile.stop()
        self._steps = self._communication.steps - self._profiling.after
        self._seconds = (stepped - self._before[0], waited - self._before[1])

    def results(self, save_to: str) -> tuple[dict[str, Any], str, bytes] | None:
        """The trial's details, and where the trace is to be written and what; None where no step was profiled.

        Args:
            save_to: the trial's checkpoint.
        """
        self.stop()
        if self._steps <= 0:
            return None
        uri = trace_of(save_to)
        stepped, waited = self._seconds
        own = {
            of.key: (of.self_cpu_time_total + of.self_device_time_total) / 1e6 for of in self._profile.key_averages()
        }
        most = sorted(own, key=lambda name: -own[name])[:MOST_OPERATORS]
        details = {
            "trace": uri,
            "steps": self._steps,
            "step_seconds": stepped,
            "waiting_seconds": waited,
            "operator_seconds": {name: own[name] for name in most},
            "collectives": [name for name in most if name.startswith(_COLLECTIVE)],
        }
        return {PROFILE: details}, uri, self._trace()

    def _start(self) -> None:
        if _at_work():
            self._steps = -1
            logger.warning("a profiler of the training function's own is at work, and there can be no second one")
            return
        self._profile.start()
        self._before = self._communication.seconds
        self._running = self._communication.named = True

    def _trace(self) -> bytes:
        with temporary_folder() as folder:
            path = folder / "trace.json"
            self._profile.export_chrome_trace(str(path))
            return gzip.compress(path.read_bytes())


def trace_of(checkpoint: str) -> str:
    """Where a trial's trace stands: in a folder of its job, since a trial's own goes with checkpoints that do."""
    place, mark, options = checkpoint.partition("?") if "://" in checkpoint else (checkpoint, "", "")
    job, trial, _ = place.rsplit("/", 2)
    return f"{job}/{PROFILES}/{trial}{TRACE_ENDING}{mark}{options}"


def _at_work() -> bool:
    """Whether this process is profiled already; a second profiler would take the first one's place without a word.

    A private attribute, as PyTorch 2.13 has it; `tests/process/trainers/pytorch/measures/test_profile.py` notices a
    change.
    """
    private: Any = torch.autograd.profiler
    return bool(private._is_profiler_enabled)


@contextmanager
def profiled(
    profiling: Profiling | None,
    assignment: Assignment,
    rank: int,
    communication: Communication,
    device: torch.device,
    write: Callable[[str, bytes], object],
) -> Iterator[dict[str, Any]]:
    """Profiles what is trained within the block, if it is to be; what is yielded holds the details after it.

    Args:
        profiling: of the trainer.
        assignment: that is trained.
        rank: of this worker; 0 profiles.
        communication: of its steps.
        device: that they run on.
        write: writes the trace to a place.
    """
    found: dict[str, Any] = {}
    if profiling is None or rank or not profiling.covers(assignment):
        yield found
        return
    steps = StepProfile(profiling, communication, device)
    communication.on_step = steps.step
    try:
        yield found
    finally:
        communication.on_step = None
        steps.stop()
    if (results := steps.results(assignment.save_to)) is not None:
        details, uri, trace = results
        try:
            write(uri, trace)
            found |= details
        except WarmbandError as error:  # It is no reason for the trial to fail.
            logger.warning("the profile of %s cannot be written: %s", assignment.trial_id, error)
    else:
        logger.warning(
            "%s is not profiled: it took %d steps, and profile_steps begins after %d of them",
            assignment.trial_id,
            communication.steps,
            profiling.after,
        )
