"""The best report of a trial, where a job compares trials by that: its state is the trial's model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from trainers.errors import TrialError
from trainers.gangs import Assignment, Report
from trainers.pytorch.state import shards
from trainers.pytorch.state.checkpoint import TorchCheckpoint


class BestReport:
    """State of the best report so far, on the CPU; it travels in checkpoints, so that a pause does not lose it.

    Nothing is kept where the job compares trials by their last value, nor of the trial that another goes on from: its
    reports are not the other's.

    Args:
        assignment: of the trial.
        resumed: what the trial goes on from; None at its beginning.
        keeps: this worker keeps it: it writes checkpoints, and has all of the model.
    """

    def __init__(self, assignment: Assignment, resumed: TorchCheckpoint | None, *, keeps: bool) -> None:
        self._wanted, self._keeps = assignment.by_best, keeps
        self._objective, self._maximize = assignment.objective, assignment.mode == "max"
        self._trial = assignment.trial_id
        kept = resumed.best if assignment.by_best and resumed else {}
        self._kept = dict(kept) if kept.get("trial", self._trial) == self._trial else {}

    def take(self, report: Report, state: Mapping[str, Any] | None, now: str) -> None:
        """Takes a report's state, if it is the best.

        Args:
            report: the report.
            state: of its checkpoint.
            now: names the report.

        Raises:
            TrialError: it has none.
        """
        if not self._wanted:
            return
        if state is None and self._objective not in report.metrics:
            return
        if state is None:
            raise TrialError(
                f"the report of {now} came with checkpoint=None, and objective_value='best' hands out the model of the "
                "best report; give report(metrics, checkpoint=...) each time, or objective_value='last'"
            )
        value = report.metrics.get(self._objective, math.nan)
        if self._keeps and (not self._kept or self._better(value)) and not shards.needed(state):
            self._kept = {"trial": self._trial, "step": report.step, "value": value, "state": copied(state)}

    def _better(self, value: float) -> bool:
        best = self._kept["value"]
        return math.isfinite(value) and (math.isnan(best) or (value > best if self._maximize else value < best))

    @property
    def packed(self) -> dict[str, Any]:
        """For a checkpoint: whose it is, units in it, its value and its state."""
        return self._kept


def copied(value: Any) -> Any:
    """A state with copies of its tensors on the CPU, which training does not change."""
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, dict):  # An OrderedDict stays one.
        return type(value)((key, copied(one)) for key, one in value.items())
    return type(value)(map(copied, value)) if type(value) in (list, tuple) else value
