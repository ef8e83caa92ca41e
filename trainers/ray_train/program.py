"""The program of a gang's workers that run a Ray Train function: process group and datasets are kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainers.gangs import Assignment, Report, Segment, WorkerContext
from trainers.pytorch import FunctionProgram, FunctionSettings, LaidOut, Layout, Peers, Worker, device_of
from trainers.ray_train.loop import Loop
from trainers.ray_train.segment import run_segment


class RayTrainProgram(FunctionProgram):
    """Trains a Ray Train function, in a process group that lasts as long as the gang; see `trainers.gangs.Program`.

    Args:
        loop: the user's.
        settings: how its workers are set up.
        shards: its datasets, a dict for each worker.
    """

    def __init__(self, loop: Loop, settings: FunctionSettings, shards: Sequence[Mapping[str, Any]]) -> None:
        super().__init__({}, settings, LaidOut(Layout(), settings.report_timeout_s))
        self._loop = loop
        self._shards = shards

    def open(self, context: WorkerContext) -> dict[str, float]:
        """Joins the process group; Accelerate is told the device, as Ray Train's own backend does."""
        if not context.in_hand:
            os.environ["ACCELERATE_TORCH_DEVICE"] = str(device_of(self._settings, context))
        return super().open(context)

    def _segment(
        self,
        assignment: Assignment,
        context: WorkerContext,
        worker: Worker,
        peers: Peers,
        on_report: Callable[[Report], None],
        halted: Callable[[], bool],
    ) -> Segment:
        return run_segment(
            self._loop,
            assignment,
            peers,
            worker.device,
            self._shards[peers.rank] if self._shards else {},
            on_report,
            halted,
            report_timeout_s=self._settings.report_timeout_s,
            place=context.storage,
        )
