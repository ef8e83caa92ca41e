"""All that is worth knowing of one job, in sections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, get_args

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hpo.cli.views.trials import act_lines, failures, waiting_lines
from hpo.cli.views.words import STYLES, ago, cost_text, settings, status_text, value_text
from hpo.jobs import continuations, raises
from hpo.record import EARLIER_BEST, LedgerKind, TrialRow, holder_of, is_training, repeats_of, run_name, tags_of, when
from hpo.sagemaker import Snapshot
from hpo.text import (
    count,
    details_text,
    enumerated,
    forecast_text,
    mean_text,
    money,
    range_text,
    roles_text,
    strategy_text,
    untuned_text,
    workers_text,
)
from trainers.details import NO_MODEL

_SOME = 5
"""Failures that are listed where nobody asked for all of them."""


def job_page(snapshot: Snapshot) -> RenderableType:
    """All that is worth knowing of one job, in sections."""
    status = Text.assemble((snapshot.job.name, "bold"), "  ", status_text(snapshot.status))
    parts: list[RenderableType] = [status]
    if snapshot.reason:
        parts.append(Text(snapshot.reason, style=STYLES.get(snapshot.status, "")))
    once = is_training(snapshot.job)
    sections: dict[str, dict[str, RenderableType]] = {
        "Found": _trained(snapshot) if once else _found(snapshot),
        "Used": _used(snapshot),
        **({"Training": _training(snapshot)} if once else {"Search": _search(snapshot)}),
        "Trainer": _trainer(snapshot),
        "Data": _data(snapshot.job.spec["inputs"]),
        "Driver": _driver(snapshot),
        "Acts": {"": "\n".join(act_lines(snapshot.acts))} if snapshot.acts else {},
    }
    for title, rows in sections.items():
        parts += ["", Text(title, style="bold"), _section(rows)] if rows else []
    failed = failures(snapshot.trials, limit=_SOME)
    return Group(*parts, *(("", failed) if failed else ()))


def code_of(snapshot: Snapshot, store: str | None) -> Text:
    """Return the code that uses what a job found; empty where it has found nothing.

    Args:
        snapshot: the job.
        store: database URL of its record, where that is not the one that is found by itself.
    """
    from hpo.observers import show_code, show_training_code  # imports Ray

    job = snapshot.job
    if is_training(job):
        return show_training_code(job.name, job.summary, store)
    return show_code(job.name, job.summary, store, strategy=job.spec["strategy"])


def _found(snapshot: Snapshot) -> dict[str, RenderableType]:
    spec, best = snapshot.job.spec, snapshot.result
    summary = snapshot.job.summary
    goal = f"{spec['objective_type'].lower()} the {spec['objective_value']} value of {spec['objective_metric_name']}"
    if best is None:
        return {"objective": goal, "best": "none: no trial has reported a finite value"}
    noise = (summary.get("best") or {}).get("standard_error")
    value = value_text(snapshot.objective(best)) + (f" (standard error {noise:.4f})" if noise else "")
    if best is not snapshot.untuned and (mean := snapshot.means.get(best.number)) is not None:
        whole = mean_text(mean, snapshot.mean_error(best), repeats_of(snapshot.job))
        value = f"{whole}, the best of which has {value}"
    reached = best.best_resource if spec["objective_value"] == "best" and best.best_resource else best.resource
    rows: dict[str, RenderableType] = {
        "objective": goal,
        "best": f"{value}, {run_name(best.trial_id)} at unit {reached} of "
        f"{snapshot.job.plan.get('max_resource', reached)}",
        "hyperparameters": settings(best.hyperparameters),
    }
    if snapshot.job.spec.get(EARLIER_BEST) and (overall := snapshot.overall_best):
        where = "of this job" if overall is best else f"of the parent {overall.job}"
        rows["overall best"] = f"{value_text(snapshot.objective(overall))}, {run_name(overall.trial_id)} {where}"
    if snapshot.best is not None and snapshot.best is not best:
        trained = count(snapshot.best.resource, "unit")
        rows["best trial"] = f"{value_text(snapshot.score(snapshot.best))}, {snapshot.best.trial_id} after {trained}"
    if details := details_text(best.details):
        rows["details"] = details
    others = (summary.get("best") or {}).get("metrics") or {}
    others = {name: value for name, value in others.items() if name != spec["objective_metric_name"]}
    if others:
        rows["other metrics"] = ", ".join(f"{name} {value_text(value)}" for name, value in others.items())
    untuned = summary.get("untuned") or {}
    if "value" in untuned:
        rows["un-tuned"] = f"{value_text(untuned['value'])} after {untuned['resource']} units"
    elif untuned:
        rows["un-tuned"] = untuned_text(untuned)
    if snapshot.gap is not None:
        rows["tuning"] = snapshot.gap.sentence
    return {**rows, **_model(best)}


def _trained(snapshot: Snapshot) -> dict[str, RenderableType]:
    """What a single training came to, so far or at its end."""
    trial, spec = next(iter(snapshot.trials), None), snapshot.job.spec
    if trial is None:
        return {"trained": "nothing yet"}
    unit = spec.get("unit") or "unit"
    rows: dict[str, RenderableType] = {"trained": f"{count(trial.resource, unit)}, {trial.status.lower()}"}
    metrics = (snapshot.job.summary.get("training") or {}).get("metrics") or {}
    if metrics:
        rows["metrics"] = ", ".join(f"{name} {value_text(value)}" for name, value in metrics.items())
    if (value := snapshot.objective(trial)) is not None:
        goal = f"{spec['objective_value']} value of {spec['objective_metric_name']}"
        rows["objective"] = f"{value_text(value)}, the {goal}"
    if details := details_text(trial.details):
        rows["details"] = details
    return {**rows, **_model(trial)}


def _model(trial: TrialRow) -> dict[str, RenderableType]:
    """Return the place of a trial's model, or of its checkpoint alone if the program left no model."""
    return {"checkpoint" if trial.details.get(NO_MODEL) else "model": trial.checkpoint}


def _training(snapshot: Snapshot) -> dict[str, RenderableType]:
    """How a single training is carried out."""
    spec = snapshot.job.spec
    rungs = (snapshot.job.plan.get("brackets") or [{"rungs": []}])[0]["rungs"]
    rows: dict[str, RenderableType] = {"seed": str(spec["random_seed"])}
    if rungs:
        rows["checkpoints"] = f"{len(rungs)}, the first after {count(rungs[0], spec.get('unit') or 'unit')}"
    if limits := [*_limits(snapshot), *raises(spec)]:
        rows["limits"] = "\n".join(limits)
    if lines := continuations(spec):
        rows["resumed with"] = "\n".join(lines)
    return rows


def _limits(snapshot: Snapshot) -> list[str]:
    """A job's limits of time and cost."""
    spec, limits = snapshot.job.spec, []
    if spec["max_runtime_in_seconds"]:
        limits.append(f"{spec['max_runtime_in_seconds']} s at most")
    if spec.get("max_cost") and snapshot.tariff:
        limits.append(f"{money(spec['max_cost'], snapshot.tariff.currency)} at most")
    return limits


def _used(snapshot: Snapshot) -> dict[str, RenderableType]:
    job = snapshot.job
    counts = Counter(trial.status for trial in snapshot.trials)
    statuses = ", ".join(f"{number} {status.lower()}" for status, number in counts.items())
    reached = snapshot.used
    possible = snapshot.job.plan.get("max_resource", 0) * job.spec["max_jobs"]
    started = when(job.created_at).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
    stopped = bool(job.summary.get("stopped"))
    kinds = [kind for kind in get_args(LedgerKind) if kind in snapshot.seconds]
    parts = ", ".join(f"{kind} {snapshot.seconds[kind]:.1f}" for kind in kinds)
    whole = "" if is_training(job) else " that as many full trials would train"
    trials = f"{snapshot.done} of {snapshot.planned}" + (f": {statuses}" if statuses else "")
    return {
        **({} if is_training(job) else {"trials": trials}),
        "units": f"{reached} of {possible}{whole}" + (f" ({reached / possible:.1%})" if possible else ""),
        "time": f"{snapshot.runtime:.1f} s, from {started}",
        "billed": f"{snapshot.worker_seconds:,.1f} worker-seconds"
        + (f", {cost}" if (cost := cost_text(snapshot.tariff, snapshot.worker_seconds)) else "")
        + (f": {parts}" if parts else ""),
        **({"forecast": forecast_text(forecast, stopped=stopped)} if (forecast := job.summary.get("forecast")) else {}),
    }


def _search(snapshot: Snapshot) -> dict[str, RenderableType]:
    spec = snapshot.job.spec
    trials = f"{spec['max_jobs']} trials, {spec['max_parallel_jobs']} at once"
    limits = ", ".join([trials, *_limits(snapshot)])
    rows: dict[str, RenderableType] = {"strategy": strategy_text(spec), "limits": "\n".join([limits, *raises(spec)])}
    rows["seed"] = str(spec["random_seed"])
    if lines := continuations(spec):
        rows["resumed with"] = "\n".join(lines)
    brackets = [
        " -> ".join(f"{size} to {rung}" for rung, size in zip(bracket["rungs"], bracket["sizes"], strict=True))
        for bracket in snapshot.job.plan.get("brackets", ())
    ]
    if brackets:
        counted = Counter(brackets).items()
        rows["brackets"] = "\n".join(f"{line} ({times} times)" if times > 1 else line for line, times in counted)
    grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for name, bounds in spec["hyperparameter_ranges"].items():
        grid.add_row(Text(name), Text(range_text(bounds)))
    if chosen := spec.get("autotune"):
        rows["autotune"] = f"chose {enumerated([each['name'] for each in chosen])}"
    if waiting := waiting_lines(snapshot):
        rows["added"] = "\n".join(waiting)
    return {**rows, "ranges": grid}


def _trainer(snapshot: Snapshot) -> dict[str, RenderableType]:
    estimator = snapshot.job.spec["estimator"]
    scaling = estimator["scaling"]
    workers = workers_text(snapshot.job.spec)
    if scaling["resources_per_worker"]:
        workers += f", each with {settings(scaling['resources_per_worker'])}"
    elif scaling["use_gpu"]:
        workers += ", each with a GPU"
    return {
        "type": estimator["trainer"],
        "workers": workers,
        "hyperparameters": settings(estimator["hyperparameters"]) or "none",
    }


def _data(inputs: Mapping[str, Mapping[str, Any]]) -> dict[str, RenderableType]:
    def text(channel: Mapping[str, Any]) -> str:
        rows = "" if channel.get("rows") is None else f"{channel['rows']:,} rows"
        columns = f"{len(channel['columns'])} columns" if channel.get("columns") else ""
        if count := channel.get("count"):
            rows = f"{count:,} files"  # Of a folder.
        files = channel.get("files") or []
        where = ", ".join(files[:2]) + (f" and {len(files) - 2} more" if len(files) > 2 else "")
        parts = rows, columns, where or channel.get("kind", ""), roles_text(channel)
        return ", ".join(part for part in parts if part)

    return {name: text(channel) for name, channel in inputs.items()}


def _driver(snapshot: Snapshot) -> dict[str, RenderableType]:
    job, driver = snapshot.job, snapshot.job.driver
    rows: dict[str, RenderableType] = {"owner": job.owner} if job.owner else {}
    if driver:
        heard = "" if job.ended_at else f", last heard of {ago(job.silent)} ago"
        rows["process"] = holder_of(driver) + heard
    if submission := driver.get("submission_id"):
        rows["Ray job"] = f"{submission} on {driver.get('address') or 'an unknown cluster'}"
    if log := driver.get("log"):
        rows["log"] = log
    if tags := tags_of(job.spec.get("tags")):
        rows["tags"] = settings(tags)
    return rows


def _section(rows: Mapping[str, RenderableType]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(Text(f"  {name}"), Text(value) if isinstance(value, str) else value)
    return table
