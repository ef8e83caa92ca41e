"""Tables of jobs and trials that fit the terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from hpo.cli.snapshot import Overview, Snapshot
from hpo.cost import Tariff
from hpo.jobs import raises
from hpo.record import EARLIER_BEST, LedgerKind, TrialRow, holder_of, repeats_of, status_and_reason, tags_of, when
from hpo.sagemaker import Added
from hpo.text import (
    count,
    details_text,
    enumerated,
    forecast_text,
    mean_text,
    money,
    range_text,
    strategy_text,
    untuned_text,
    workers_text,
)

STYLES = {
    "Completed": "green",
    "InProgress": "cyan",
    "Running": "cyan",
    "Failed": "red",
    "Diverged": "magenta",
    "Stopping": "yellow",
    "Stopped": "yellow",
}
_WIDE = 100
"""Columns from which on a list of jobs also says whose they are, and where."""

_GAP = "  "

_SOME = 5
"""Failures that are listed where nobody asked for all of them."""


def jobs_table(overviews: Sequence[Overview], width: int) -> RenderableType:
    """A line a job, with what it cost where one has prices, and who owns it and where it runs where that fits."""
    table = _jobs(overviews, wide=True)
    return table if width >= _WIDE and _width(table) <= width else _jobs(overviews, wide=False)


def _jobs(overviews: Sequence[Overview], *, wide: bool) -> Table:
    priced = any(overview.tariff for overview in overviews)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0), collapse_padding=True)
    table.add_column("job", overflow="fold")
    for name in ("status", "strategy"):
        table.add_column(name, no_wrap=True)
    for name in ("trials", "best", "worker-s", *(["cost"] if priced else []), "age"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("owner", "runs on") if wide else ():
        table.add_column(name, no_wrap=True)
    for overview in overviews:
        table.add_row(
            overview.job.name,
            _status(status_and_reason(overview.job)[0]),
            overview.job.spec["strategy"],
            f"{overview.totals.ended}/{overview.planned}",
            value_text(overview.totals.best),
            f"{overview.totals.worker_seconds:,.0f}",
            *([_cost(overview.tariff, overview.totals.worker_seconds) or "-"] if priced else []),
            ago(overview.job.now - overview.job.created_at),
            *((overview.job.owner or "-", _place(overview.job.driver)) if wide else ()),
        )
    return table


def job_page(snapshot: Snapshot) -> RenderableType:
    """All that is worth knowing of one job, in sections."""
    status = Text.assemble((snapshot.job.name, "bold"), "  ", _status(snapshot.status))
    parts: list[RenderableType] = [status]
    if snapshot.reason:
        parts.append(Text(snapshot.reason, style=STYLES.get(snapshot.status, "")))
    sections = {
        "Found": _found(snapshot),
        "Used": _used(snapshot),
        "Search": _search(snapshot),
        "Trainer": _trainer(snapshot),
        "Data": _data(snapshot.job.spec["inputs"]),
        "Driver": _driver(snapshot),
    }
    for title, rows in sections.items():
        parts += ["", Text(title, style="bold"), _section(rows)] if rows else []
    failed = failures(snapshot.trials, limit=_SOME)
    return Group(*parts, *(("", failed) if failed else ()))


def trials_table(snapshot: Snapshot, width: int) -> RenderableType:
    """A line a trial, best first, with a column a hyperparameter; where they do not fit, lines of their own."""
    names = list(dict.fromkeys(name for trial in snapshot.trials for name in trial.hyperparameters))
    ranked = snapshot.ranked()
    main = [_main(snapshot, trial) for trial in ranked]
    values = [trial.hyperparameters for trial in ranked]
    rows = [
        cells + [short(value[name]) if name in value else "" for name in names]
        for cells, value in zip(main, values, strict=True)
    ]
    heads = [[head] for head in (*_main_heads(snapshot), *names)]
    folded = [re.sub("(?<=[_:])", "\n", head[0]).rstrip("\n").split("\n") for head in heads]
    for lines in (heads, folded):
        if sum(_widths(lines, rows)) + len(_GAP) * (len(lines) - 1) <= width:
            return Group(*_lines(lines, rows))
    first, *others = _lines(heads[: len(heads) - len(names)], main)
    parts: list[RenderableType] = [first]
    for line, value in zip(others, values, strict=True):
        parts += [line, Padding(Text(_settings(value), style="dim"), (0, 0, 0, 4))]
    return Group(*parts)


def failures(trials: Sequence[TrialRow], *, limit: int | None = None, tracebacks: bool = False) -> Group | None:
    """Why trials failed or diverged, if any did."""
    parts: list[RenderableType] = []
    by_status = {status: [trial for trial in trials if trial.status == status] for status in ("Failed", "Diverged")}
    for status, group in by_status.items():
        if group:
            parts.append(Text(f"{status} trials", style="bold"))
        for trial in group[:limit]:
            parts.append(Text(f"  {trial.trial_id}: {trial.failure_reason}"))
            if tracebacks and trial.traceback:
                parts.append(Text(trial.traceback.rstrip() + "\n", style="dim"))
        if limit is not None and len(group) > limit:
            parts.append(Text(f"  and {len(group) - limit} more: hpo trials {group[0].job} shows them"))
    return Group(*parts) if parts else None


def waiting_lines(snapshot: Snapshot) -> list[str]:
    """What persons gave for trials and no trial has taken yet, a line each."""
    return [
        f"Waits for a trial: {_settings(addition.hyperparameters)}, added {ago(snapshot.job.now - addition.at)} ago"
        for addition in snapshot.waiting
    ]


def added_lines(added: Added) -> list[str]:
    """What becomes of values that were added, and where that is seen."""
    name, (status, reason) = added.job.name, status_and_reason(added.job)
    takes = "The next trial that is suggested" if not added.ahead else f"A trial behind {count(added.ahead, 'other')}"
    lines = [f"{takes} of {name} takes {_settings(added.values)}; {count(added.places, 'place')} left of its trials."]
    if status not in ("InProgress", "Stopping"):
        lines.append(f"{name} is {status}: {reason}; it goes on with: hpo resume {name}")
    return [*lines, f"Look with: hpo trials {name}"]


def value_text(value: float | None) -> str:
    """An objective, or a dash."""
    return "-" if value is None else f"{value:.5f}" if abs(value) < 1e4 else f"{value:.6g}"


def ago(seconds: float) -> str:
    """How long ago, in the largest unit that says it."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size or (unit != "min" and seconds >= size):
            return f"{seconds // size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


# ---- parts


def _section(rows: Mapping[str, RenderableType]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(Text(f"  {name}"), Text(value) if isinstance(value, str) else value)
    return table


def _found(snapshot: Snapshot) -> dict[str, RenderableType]:
    spec, best = snapshot.job.spec, snapshot.best
    summary = snapshot.job.summary
    goal = f"{spec['objective_type'].lower()} the {spec['objective_value']} value of {spec['objective_metric_name']}"
    if best is None:
        return {"objective": goal, "best": "none: no trial has reported a finite value"}
    noise = (summary.get("best") or {}).get("standard_error")
    value = value_text(snapshot.objective(best)) + (f" (standard error {noise:.4f})" if noise else "")
    if (mean := snapshot.means.get(best.number)) is not None:
        whole = mean_text(mean, snapshot.mean_error(best), repeats_of(snapshot.job))
        value = f"{whole}, the best of which has {value}"
    reached = best.best_resource if spec["objective_value"] == "best" and best.best_resource else best.resource
    rows: dict[str, RenderableType] = {
        "objective": goal,
        "best": f"{value}, {best.trial_id} after {reached} units",
        "hyperparameters": _settings(best.hyperparameters),
    }
    if snapshot.job.spec.get(EARLIER_BEST) and (overall := snapshot.overall_best):
        where = "of this job" if overall is best else f"of the parent {overall.job}"
        rows["overall best"] = f"{value_text(snapshot.objective(overall))}, {overall.trial_id} {where}"
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
    return {**rows, "model": best.checkpoint}


def _used(snapshot: Snapshot) -> dict[str, RenderableType]:
    job = snapshot.job
    counts = Counter(trial.status for trial in snapshot.trials)
    statuses = ", ".join(f"{count} {status.lower()}" for status, count in counts.items())
    reached = snapshot.used
    possible = snapshot.job.plan.get("max_resource", 0) * job.spec["max_jobs"]
    started = when(job.created_at).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
    stopped = bool(job.summary.get("stopped"))
    kinds = [kind for kind in get_args(LedgerKind) if kind in snapshot.seconds]
    parts = ", ".join(f"{kind} {snapshot.seconds[kind]:.1f}" for kind in kinds)
    return {
        "trials": f"{snapshot.done} of {snapshot.planned}" + (f": {statuses}" if statuses else ""),
        "units": f"{reached} of {possible} that as many full trials would train"
        + (f" ({reached / possible:.1%})" if possible else ""),
        "time": f"{snapshot.runtime:.1f} s, from {started}",
        "billed": f"{snapshot.worker_seconds:,.1f} worker-seconds"
        + (f", {cost}" if (cost := _cost(snapshot.tariff, snapshot.worker_seconds)) else "")
        + (f": {parts}" if parts else ""),
        **({"forecast": forecast_text(forecast, stopped=stopped)} if (forecast := job.summary.get("forecast")) else {}),
    }


def _search(snapshot: Snapshot) -> dict[str, RenderableType]:
    spec = snapshot.job.spec
    limits = f"{spec['max_jobs']} trials, {spec['max_parallel_jobs']} at once"
    if spec["max_runtime_in_seconds"]:
        limits += f", {spec['max_runtime_in_seconds']} s at most"
    if spec.get("max_cost") and snapshot.tariff:
        limits += f", {money(spec['max_cost'], snapshot.tariff.currency)} at most"
    rows: dict[str, RenderableType] = {"strategy": strategy_text(spec), "limits": "\n".join([limits, *raises(spec)])}
    rows["seed"] = str(spec["random_seed"])
    brackets = [
        " -> ".join(f"{size} to {rung}" for rung, size in zip(bracket["rungs"], bracket["sizes"], strict=True))
        for bracket in snapshot.job.plan.get("brackets", ())
    ]
    if brackets:
        counted = Counter(brackets).items()
        rows["brackets"] = "\n".join(f"{line} ({count} times)" if count > 1 else line for line, count in counted)
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
        workers += f", each with {_settings(scaling['resources_per_worker'])}"
    elif scaling["use_gpu"]:
        workers += ", each with a GPU"
    return {
        "type": estimator["trainer"],
        "workers": workers,
        "hyperparameters": _settings(estimator["hyperparameters"]) or "none",
    }


def _data(inputs: Mapping[str, Mapping[str, Any]]) -> dict[str, RenderableType]:
    def text(channel: Mapping[str, Any]) -> str:
        rows = "" if channel.get("rows") is None else f"{channel['rows']:,} rows"
        columns = f"{len(channel['columns'])} columns" if channel.get("columns") else ""
        files = channel.get("files") or []
        where = ", ".join(files[:2]) + (f" and {len(files) - 2} more" if len(files) > 2 else "")
        return ", ".join(part for part in (rows, columns, where or channel.get("kind", "")) if part)

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
        rows["tags"] = _settings(tags)
    return rows


def _place(driver: Mapping[str, Any]) -> str:
    """Where a job's driver runs, or ran."""
    return driver.get("address") or driver.get("host") or "-"


def _widths(heads: Sequence[Sequence[str]], rows: Sequence[Sequence[str]]) -> list[int]:
    columns = zip(*rows, strict=True) if rows else [()] * len(heads)
    return [max(map(cell_len, (*head, *column))) for head, column in zip(heads, columns, strict=True)]


def _lines(heads: Sequence[Sequence[str]], rows: Sequence[Sequence[str]]) -> list[Text]:
    """A table of trials, whose second column is their status; `Table` takes seconds for thousands of lines.

    Args:
        heads: each column's, in lines of which the last stands above the column.
        rows: a trial's cells.
    """
    widths, height = _widths(heads, rows), max(map(len, heads))
    above = [[*[""] * (height - len(head)), *head] for head in heads]
    lines = [Text(_line(row, widths), style="bold") for row in zip(*above, strict=True)]
    begin = widths[0] + len(_GAP)
    for row in rows:
        line = Text(_line(row, widths))
        line.stylize(STYLES.get(row[1], ""), begin, begin + len(row[1]))
        lines.append(line)
    return lines


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Cells in a line: the first two begin where their columns do, numbers end there."""
    blanks = [" " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True)]
    placed = [
        cell + blank if place < 2 else blank + cell
        for place, (cell, blank) in enumerate(zip(cells, blanks, strict=True))
    ]
    return _GAP.join(placed)


def _main_heads(snapshot: Snapshot) -> list[str]:
    metric = snapshot.job.spec["objective_metric_name"]
    cost, given = ["cost"] if snapshot.tariff else [], ["given"] if _any_given(snapshot) else []
    means = [f"mean of {repeats_of(snapshot.job)}"] if snapshot.means else []
    forked = ["began from"] if _is_forked(snapshot) else []
    return ["trial", "status", metric, *means, "units", *forked, "worker-s", *cost, *given]


def _main(snapshot: Snapshot, trial: TrialRow) -> list[str]:
    seconds = snapshot.trial_seconds.get(trial.trial_id, 0.0)
    return [
        trial.trial_id,
        trial.status,
        value_text(snapshot.objective(trial)),
        *([value_text(snapshot.means[trial.number])] if snapshot.means else []),
        str(trial.resource),
        *([trial.origin] if _is_forked(snapshot) else []),
        f"{seconds:.1f}" if seconds >= 1 else f"{seconds:.2f}",
        *([_cost(snapshot.tariff, seconds)] if snapshot.tariff else []),
        *([trial.given_as] if _any_given(snapshot) else []),
    ]


def _any_given(snapshot: Snapshot) -> bool:
    return any(trial.given for trial in snapshot.trials)


def _is_forked(snapshot: Snapshot) -> bool:
    """Whether any trial began from another's checkpoint."""
    return any(trial.parent for trial in snapshot.trials)


def _cost(tariff: Tariff | None, worker_seconds: float) -> str:
    """In money; empty where the job has no prices."""
    return tariff.text(worker_seconds) if tariff else ""


def _width(table: Table) -> int:
    from rich.console import Console
    from rich.measure import Measurement

    console = Console(width=10_000)
    return Measurement.get(console, console.options, table).maximum


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={short(value)}" for name, value in values.items())


def short(value: Any) -> str:
    """A hyperparameter's value to four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _status(status: str) -> Text:
    return Text(status, style=STYLES.get(status, ""))
