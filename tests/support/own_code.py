"""A module of a user's own, with trainers and a training function; tests copy it to where they need it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from trainers import ScalingConfig, TrainContext, Trainer, XGBoostTrainer, storage
from trainers.channels import PlacedChannel
from trainers.gangs.messages import Assignment, Report, Segment
from trainers.gangs.program import WorkerContext, never


class Churn(XGBoostTrainer):
    """XGBoost with an argument of its own."""

    def __init__(
        self,
        *,
        scaling: ScalingConfig | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
        floor: float = 0.0,
    ) -> None:
        self.floor = floor
        super().__init__(scaling=scaling, hyperparameters=hyperparameters)

    @property
    def options(self) -> dict[str, Any]:
        return {"floor": self.floor}


class Line(Trainer):
    """One that owes nothing to Warmband's: what it reports is a straight line."""

    resource_names: ClassVar[tuple[str, ...]] = ("steps",)

    def check(self, hyperparameters: Mapping[str, Any]) -> None:
        pass

    def program(self, channels: dict[str, PlacedChannel]) -> Draw:
        return Draw()

    def metrics(self, channels: Iterable[str]) -> list[str]:
        return ["validation:auc"]

    def load_model(self, checkpoint: str) -> Any:
        return json.loads(storage.read(checkpoint))


class Draw:
    """What its workers run."""

    def open(self, context: WorkerContext) -> dict[str, float]:
        self.storage = context.storage
        return {}

    def train(
        self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool] = never
    ) -> Segment:
        reports: list[Report] = []
        for step in range(assignment.start + 1, assignment.stop + 1):
            reports.append(Report(step=step, metrics={"validation:auc": step * assignment.hyperparameters["eta"]}))
            on_report(reports[-1])
            if step < assignment.stop and halted():
                break
        saved = assignment.saved_at(step)
        manifest = self.storage.write(saved, json.dumps({"steps": step}).encode())
        return Segment(
            reports=tuple(reports),
            checkpoint=saved,
            manifest=manifest,
            training_seconds=0.0,
            checkpointing_seconds=0.0,
            first_step_at=time.time(),
        )

    def close(self) -> None:
        pass


def train(context: TrainContext) -> None:
    for epoch in context.epochs():
        context.report({"validation:auc": context.hyperparameters["lr"]}, checkpoint={"epoch": epoch})


class NoTrainer:
    """What a job file may not name."""
