"""What a job says when it ends: its trials, what they used and cost, and what they found."""

from __future__ import annotations

import math
import time
from collections import Counter
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hpo.controller import Controller
from hpo.hyperband import Plan
from hpo.record import status_of


def summarize(controller: Controller, plan: Plan) -> dict[str, Any]:
    """The summary of a run, as the record keeps it."""
    statuses = [status_of(run) for run in controller.runs.values()]
    best, untuned = controller.best(), controller.untuned
    return {
        "trials": {status: statuses.count(status) for status in ("Completed", "Stopped", "Failed")},
        "resource_used": controller.trained,
        "resource_planned": plan.resource,
        "resource_possible": plan.full_resource,
        "worker_seconds": {kind.value: seconds for kind, seconds in controller.ledger.totals.items()},
        "wall_seconds": time.time() - controller.started_at,
        "first_step_seconds": controller.first_step_at and controller.first_step_at - controller.started_at,
        "gangs": controller.ledger.gangs,
        "best": best
        and {
            "trial": best.id,
            "value": controller.objective(best),
            "resource": best.best_resource if controller.search.best_value else best.resource,
            "hyperparameters": best.hyperparameters,
            "checkpoint": best.checkpoint,
        },
        "untuned": untuned
        and (
            {"failure": untuned.failure or "it reported no finite value"}
            if untuned.failure or not math.isfinite(controller.objective(untuned))
            else {"value": controller.objective(untuned), "resource": untuned.resource}
        ),
        "stopped": controller.stopped,
    }


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
        table.add_row("best", f"{metric} {best['value']:.5f}, {best['trial']} at {best['resource']} units")
        table.add_row("", ", ".join(f"{key}={_short(value)}" for key, value in best["hyperparameters"].items()))
    else:
        table.add_row("best", "none: no trial reported a finite value")
    untuned = summary["untuned"]
    if untuned and "value" in untuned:
        table.add_row("un-tuned", f"{metric} {untuned['value']:.5f} at {untuned['resource']} units")
    elif untuned:
        table.add_row("un-tuned", f"failed: {untuned['failure']}")
    if best:
        table.add_row("model", str(best["checkpoint"]))
    return table


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
