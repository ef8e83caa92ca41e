"""Simulated searches with the median rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hpo.search.controller import Controller
from hpo.strategies.hyperband import run_all
from hpo.strategies.median_rule import (
    with_median_rule,
)
from tests.support.simulated import drawn, outcome, simulate
from trainers.errors import DivergedError
from trainers.gangs.messages import Assignment

PLAN = with_median_rule(run_all(12, 27))
RUNGS = PLAN.brackets[0].rungs


def curve_of(seed: int) -> Callable[[int, int], float]:
    return lambda number, step: drawn(f"{seed}/{number}") * (1 - 0.9**step) + 0.1 * drawn(f"{seed}/{number}/{step}")


def searched(seed: int, parallel: int, losses: frozenset[int] = frozenset(), **options: Any) -> tuple[Any, ...]:
    """Answer and gangs of a search on simulated gangs whose speeds differ by trial."""
    curve = curve_of(seed)

    def learned(assignment: Assignment, step: int) -> float:
        number = int(assignment.trial_id.rpartition("-")[2])
        luck = drawn(f"{seed}/{number}/luck")
        if luck < 0.2 and step > 27 * luck * 5:
            raise DivergedError("nan") if luck < 0.1 else ValueError("broken")
        return curve(number, step)

    def seconds(assignment: Assignment) -> float:
        return float(0.1 + 10 * drawn(f"{parallel}/{assignment.trial_id}") ** 4)

    controller, gangs, _ = simulate(
        plan=PLAN, parallel=parallel, curve=learned, unit_seconds=seconds, losses=losses, untuned=False, **options
    )
    return answer(controller), gangs, controller


def answer(controller: Controller) -> Any:
    runs = controller.runs.values()
    return outcome(controller), [(run.value, run.failure, run.diverged, run.ahead) for run in runs if not run.ahead]
