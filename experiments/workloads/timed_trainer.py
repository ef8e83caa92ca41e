"""XGBoost's trainer with workers that record their seconds within XGBoost."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainers import XGBoostTrainer
from trainers.channels import PlacedChannel
from trainers.gangs import Assignment, Report, Segment, WorkerContext, never
from trainers.xgboost import XGBoostProgram

FOLDER = "WARMBAND_NOTES"
"""Variable of the driver's environment: the folder in which each worker has a file, named by its process id."""


class TimedTrainer(XGBoostTrainer):
    """The same trainer otherwise."""

    def program(self, channels: dict[str, PlacedChannel]) -> TimedProgram:
        return TimedProgram(channels, self.hyperparameters, os.environ[FOLDER], use_gpu=bool(self.scaling.use_gpu))


class TimedProgram(XGBoostProgram):
    """The same program; it writes a line a segment: seconds within XGBoost, and rounds."""

    def __init__(
        self,
        channels: dict[str, PlacedChannel],
        hyperparameters: Mapping[str, Any],
        folder: str,
        *,
        use_gpu: bool = False,
    ) -> None:
        super().__init__(channels, hyperparameters, use_gpu=use_gpu)
        self._folder = folder
        self._noting = True

    def open(self, context: WorkerContext) -> dict[str, float]:
        took = super().open(context)
        self._noting = not context.in_hand  # The driver's own probe belongs to no worker.
        self._note(0.0, 0)
        return took

    def train(
        self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool] = never
    ) -> Segment:
        with _timed() as inside:
            segment = super().train(assignment, on_report, halted)
        self._note(sum(inside), len(segment.reports))
        return segment

    def _note(self, inside: float, rounds: int) -> None:
        if not self._noting:
            return
        with Path(self._folder, str(os.getpid())).open("a") as stream:
            stream.write(json.dumps({"inside": inside, "rounds": rounds}) + "\n")


@contextmanager
def _timed() -> Iterator[list[float]]:
    """Notes the seconds of each call of XGBoost's that trains, predicts, evaluates or adds up, within this process."""
    from xgboost import Booster, collective

    taken: list[float] = []
    watched: list[tuple[Any, str]] = [(Booster, name) for name in ("update", "eval_set", "predict")]
    watched.append((collective, "allreduce"))
    originals = [(owner, name, getattr(owner, name)) for owner, name in watched]

    def timed(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return original(*arguments, **named)
            finally:
                taken.append(time.perf_counter() - began)

        return call

    for owner, name, original in originals:
        setattr(owner, name, timed(original))
    try:
        yield taken
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)
