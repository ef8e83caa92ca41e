"""What a job says when it ends: its trials, what they used and cost, and what they found."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hpo.controller import Controller
from hpo.hyperband import Plan
from hpo.record import status_of

DISTINCT_ERRORS = 3


def summarize(controller: Controller, plan: Plan, noise: Callable[[float], float | None]) -> dict[str, Any]:
    """The summary of a run, as the record keeps it.

    Args:
        controller: the run.
        plan: its brackets.
        noise: the standard error of an objective's value, where it is known.
    """
    statuses = [status_of(run) for run in controller.runs.values()]
    best, untuned = controller.best(), controller.untuned
    return {
        "trials": {status: statuses.count(status) for status in ("Completed", "Stopped", "Failed")},
        "resource_used": controller.trained,
        "resource_planned": plan.resource,
        "resource_possible": plan.full_resource,
        "worker_seconds": {kind.value: seconds for kind, seconds in controller.ledger.totals.items()},
        "wall_seconds": controller.seconds,
        "first_step_seconds": controller.first_step_at and controller.first_step_at - controller.started_at,
        "gangs": controller.ledger.gangs,
        "best": best
        and {
            "trial": best.id,
            "value": controller.objective(best),
            "resource": best.best_resource if controller.search.best_value else best.resource,
            "standard_error": noise(controller.objective(best)),
            "metrics": best.metrics,
            "hyperparameters": best.hyperparameters,
            "checkpoint": best.checkpoint,
        },
        "untuned": untuned
        and (
            {"failure": untuned.failure or "it reported no finite value"}
            if untuned.failure or not math.isfinite(controller.objective(untuned))
            else {"value": controller.objective(untuned), "resource": untuned.resource, "metrics": untuned.metrics}
        ),
        "stopped": controller.stopped,
        "trials_not_improving": controller.completion.not_improving,
        "errors": distinct_errors(controller),
    }


def distinct_errors(controller: Controller) -> list[dict[str, Any]]:
    """The first few distinct errors of trials: the message, how many had it, the first of them, its logs."""
    errors: dict[str, dict[str, Any]] = {}
    for run in controller.runs.values():
        if run.failure:
            error = errors.setdefault(
                run.failure, {"error": run.failure, "trials": 0, "first": run.id, "logs": run.logs}
            )
            error["trials"] += 1
    return list(errors.values())[:DISTINCT_ERRORS]


def show_plan(plan: Plan) -> RenderableType:
    """The brackets before a job starts, and the most that it can use."""
    table = Table(title="Brackets", title_justify="left", box=None, pad_edge=False, padding=(0, 2))
    table.add_column("", justify="right")
    table.add_column("trials at each rung", justify="left")
    table.add_column("units", justify="right")
    for bracket, count in Counter(plan.brackets).items():
        rungs = "  ->  ".join(f"{size} to {rung}" for rung, size in zip(bracket.rungs, bracket.sizes, strict=True))
        table.add_row(f"{count} x" if count > 1 else "", rungs, str(bracket.resource * count))
    share = plan.resource / plan.full_resource
    most = f"At most {plan.resource} of the {plan.full_resource} units of {plan.trials} full trials: {share:.0%}."
    return Group(table, Text(most))


def show_summary(name: str, status: str, metric: str, summary: dict[str, Any]) -> RenderableType:
    """The summary as a table for people."""
    table = Table(title=f"{name}: {status}", title_justify="left", show_header=False, box=None, padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    if summary["stopped"]:
        table.add_row("stopped", summary["stopped"])
    counts = summary["trials"]
    table.add_row("trials", ", ".join(f"{count} {name.lower()}" for name, count in counts.items() if count) or "none")
    used, possible = summary["resource_used"], summary["resource_possible"]
    table.add_row("units used", f"{used} of {possible} possible ({used / possible:.1%})")
    kinds = summary["worker_seconds"]
    parts = ", ".join(f"{kind} {seconds:.1f}" for kind, seconds in kinds.items())
    table.add_row("billed", f"{sum(kinds.values()):.1f} worker-seconds: {parts}")
    first = summary["first_step_seconds"]
    table.add_row(
        "wall time",
        f"{summary['wall_seconds']:.1f} s on {summary['gangs']} gang{'s' if summary['gangs'] != 1 else ''}"
        + (f", training from {first:.1f} s on" if first else ""),
    )
    best = summary["best"]
    if best:
        table.add_row("best", f"{_scores(metric, best)} ({best['trial']}, {best['resource']} units)")
        table.add_row("", Text(", ".join(f"{key}={_short(value)}" for key, value in best["hyperparameters"].items())))
    else:
        table.add_row("best", "none: no trial reported a finite value")
    untuned = summary["untuned"]
    if untuned and "value" in untuned:
        table.add_row("un-tuned", f"{_scores(metric, untuned)} (static hyperparameters, {untuned['resource']} units)")
    elif untuned:
        table.add_row("un-tuned", Text(f"failed: {untuned['failure']}"))
    if best and best["standard_error"]:
        table.add_row("", f"standard error of one {metric}, from its rows: {best['standard_error']:.4f}")
    if best:
        table.add_row("model", Text(str(best["checkpoint"]), overflow="fold"))
    return table


def _scores(metric: str, found: dict[str, Any]) -> str:
    """The objective, and the same metric on other channels, such as rows that chose nothing."""
    kind = metric.partition(":")[2]
    others = [(name, value) for name, value in found["metrics"].items() if name != metric and name.endswith(f":{kind}")]
    return ", ".join(f"{name} {value:.5f}" for name, value in [(metric, found["value"]), *others])


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
