"""A live view that keeps its frames."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from hpo.observers.live_view import LiveProgress
from hpo.observers.progress import Goal
from hpo.strategies.hyperband import Plan
from tests.support.simulated import METRIC, PLAN, simulate
from tests.support.watched import Watched


class Drawn(Watched):
    """Keeps every frame, and what drawing cost."""

    def __init__(self, plan: Plan = PLAN, width: int = 80, height: int = 24, encoding: str = "utf-8") -> None:
        self.file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
        environment = {"TERM": "xterm-256color"}
        self.console = Console(
            file=self.file, force_terminal=True, width=width, height=height, highlight=False, _environ=environment
        )
        goal = Goal(job="a-job", metric=METRIC, objective_type="Maximize", objective_value="last", plan=plan)
        super().__init__(lambda clock: LiveProgress(goal, self.console, clock))
        self.frames: list[str] = []
        self.went_round = 0
        self.every = 1 if plan.trials <= 30 else 20

    def progress(self, state: Any) -> None:
        super().progress(state)
        assert isinstance(self.watcher, LiveProgress)
        self.went_round += 1
        if self.went_round % self.every == 0 or state.untuned:
            self.frames.append(self.watcher.view(state).plain)

    def written(self) -> str:
        buffer = self.file.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode()


def watch(record: Drawn, **options: Any) -> Drawn:
    with record.watcher:
        simulate(record=record, plan=record.watcher.goal.plan, **options)
    return record
