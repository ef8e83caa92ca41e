"""Completion criteria, and the answer of a job that they end."""

from __future__ import annotations

from typing import Any

from hpo.search.controller import Controller
from hpo.strategies.completion_criteria import TuningJobCompletionCriteriaConfig
from tests.support.broken_off import Service

CRITERIA = [
    TuningJobCompletionCriteriaConfig(target_objective_metric_value=0.93),
    TuningJobCompletionCriteriaConfig(target_objective_metric_value=0.99),
    TuningJobCompletionCriteriaConfig(max_number_of_training_jobs_not_improving=3),
    TuningJobCompletionCriteriaConfig(4, target_objective_metric_value=0.985),
]


def counted(service: Service, controller: Controller | None) -> dict[str, Any]:
    """Return the reason, winner, values and units of a job; trials behind the deciding one have no value."""
    assert controller is not None
    best = controller.best()
    rows = [row for row in service.rows.trials.values() if row.number >= 0 and row.objective is not None]
    values, resources = ({row.number: getattr(row, name) for row in rows} for name in ("objective", "resource"))
    return {"reason": controller.completed, "best": best and best.id, "values": values, "resources": resources}
