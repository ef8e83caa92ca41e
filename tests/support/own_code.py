"""A module of a user's own: trainers, a training function, a strategy; tests copy it to where they need it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from hpo.ranges import ParameterRange
from hpo.strategies import Bracket, Plan, Prepared, Strategy, Task, at_random
from trainers import ConfigurationError, ScalingConfig, TrainContext, Trainer, XGBoostTrainer, storage
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
    """The program of its workers."""

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


class Halves(Strategy):
    """Drawn at random, best of each `factor` trials going on at half of the way."""

    rations: ClassVar[bool] = True

    def __init__(self, *, factor: int = 2) -> None:
        self.factor = factor

    @property
    def options(self) -> dict[str, Any]:
        return {"factor": self.factor}

    def plan(self, ranges: Mapping[str, ParameterRange], max_jobs: int, units: int | None) -> Plan:
        if units is None or units < 2:
            raise ConfigurationError(f"a trial trains {units} units; give 2 or more")
        full, rest = divmod(max_jobs, self.factor)
        sizes = [self.factor] * full + ([rest] if rest else [])
        brackets = [Bracket(rungs=(units // 2, units), sizes=(size, 1)) for size in sizes]
        return Plan(brackets=tuple(brackets), max_resource=units)

    def grown(self, plan: Plan, max_jobs: int) -> Plan:
        more = self.plan({}, max_jobs - plan.trials, plan.max_resource)
        return Plan(brackets=(*plan.brackets, *more.brackets), max_resource=plan.max_resource)

    def warnings(self, plan: Plan) -> list[str]:
        alone = [bracket for bracket in plan.brackets if bracket.sizes[0] == 1]
        return ["the last trial is compared with none"] if alone else []

    def prepare(self, task: Task) -> Prepared:
        return at_random(task)


class NoTrainer:
    """A class that a job file may not name."""


def logistic(predt: Any, dtrain: Any) -> tuple[Any, Any]:
    """An objective of XGBoost's, of margins."""
    chances = 1 / (1 + np.exp(-predt))
    return chances - dtrain.get_label(), np.maximum(chances * (1 - chances), 1e-6)


def wrong(predt: Any, dtrain: Any) -> tuple[str, float]:
    """A metric of margins."""
    return "wrong", float(np.mean((predt > 0) != dtrain.get_label()))
