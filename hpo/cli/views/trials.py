"""A job's trials as a table, why some of them failed, and those that persons add."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from hpo.cli.views.words import STYLES, ago, cost_text, settings, value_text
from hpo.record import ActRow, TrialRow, repeats_of, status_and_reason, when
from hpo.sagemaker import Added, Snapshot, StoppedTrial
from hpo.text import count, short

_GAP = "  "


def trials_table(snapshot: Snapshot, width: int) -> RenderableType:
    """A line a trial, best first, with a column a hyperparameter; where they do not fit, lines of their own."""
    names = list(dict.fromkeys(name for trial in snapshot.trials for name in trial.hyperparameters))
    ranked = snapshot.ranked()
    given, forked = _any_given(snapshot), _is_forked(snapshot)
    main = [_main(snapshot, trial, given=given, forked=forked) for trial in ranked]
    values = [trial.hyperparameters for trial in ranked]
    rows = [
        cells + [short(value[name]) if name in value else "" for name in names]
        for cells, value in zip(main, values, strict=True)
    ]
    heads = [[head] for head in (*_main_heads(snapshot), *names)]
    folded = [re.sub("(?<=[_:])", "\n", head[0]).rstrip("\n").split("\n") for head in heads]
    for lines in (heads, folded):
        if sum(_widths(lines, rows)) + len(_GAP) * (len(lines) - 1) <= width:
            fitting = _lines(lines, rows)
            for line in fitting:
                line.no_wrap = True  # Rich would look for a place to break each of thousands of lines.
            return Group(*fitting)
    first, *others = _lines(heads[: len(heads) - len(names)], main)
    parts: list[RenderableType] = [first]
    for line, value in zip(others, values, strict=True):
        parts += [line, Padding(Text(settings(value), style="dim"), (0, 0, 0, 4))]
    return Group(*parts)


def failures(trials: Sequence[TrialRow], *, limit: int | None = None, tracebacks: bool = False) -> Group | None:
    """Why trials failed, diverged or were stopped by persons or limits, if any did."""
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
    if stopped := [trial for trial in trials if trial.stopped]:
        parts.append(Text("Trials that persons or limits stopped", style="bold"))
        parts += [Text(f"  {trial.trial_id}: stopped by {trial.stopped_by}") for trial in stopped]
    return Group(*parts) if parts else None


def waiting_lines(snapshot: Snapshot) -> list[str]:
    """What persons asked for and has not happened yet, a line each: trials to add, and trials to stop."""
    stops = [f"Stops at its next report: {trial}, asked for by {by}" for trial, by in snapshot.to_stop.items()]
    return stops + [
        f"Waits for a trial: {settings(addition.hyperparameters)}, added {ago(snapshot.job.now - addition.at)} ago"
        for addition in snapshot.waiting
    ]


def added_lines(added: Added) -> list[str]:
    """What becomes of values that were added, and where that is seen."""
    name, (status, reason) = added.job.name, status_and_reason(added.job)
    takes = "The next trial that is suggested" if not added.ahead else f"A trial behind {count(added.ahead, 'other')}"
    lines = [f"{takes} of {name} takes {settings(added.values)}; {count(added.places, 'place')} left of its trials."]
    if status not in ("InProgress", "Stopping"):
        lines.append(f"{name} is {status}: {reason}; it goes on with: hpo resume {name}")
    return [*lines, f"Look with: hpo trials {name}"]


def stopped_lines(stopped: StoppedTrial) -> list[str]:
    """What becomes of a trial that is to be stopped, and where that is seen."""
    job, trial = stopped.job, stopped.trial
    status, reason = status_and_reason(job)
    line = (
        f"{trial.trial_id}, {trial.status} after {trial.resource} units, ends at its next report; {job.name} goes on."
    )
    if status not in ("InProgress", "Stopping"):
        line = f"{trial.trial_id} stops once {job.name} goes on, which is {status}: {reason}; hpo resume {job.name}"
    return [line, f"Look with: hpo trials {job.name}"]


def act_lines(acts: Sequence[ActRow], *, named: bool = False) -> list[str]:
    """What persons did, a line each.

    Args:
        acts: by time.
        named: whether each line names its job.
    """
    return [
        f"{when(act.at).astimezone():%Y-%m-%d %H:%M:%S}  {act.by} ({act.door}): {act_text(act)}"
        + (f" {act.job}" if named else "")
        + (", which was deleted since" if act.gone_at is not None and act.kind != "deleted" else "")
        for act in acts
    ]


def act_text(act: ActRow) -> str:
    """An act in words."""
    given = act.arguments
    match act.kind:
        case "cloned":
            return f"created as a clone of {given.get('of')}"
        case "raised":
            return "raised " + ", ".join(f"{name} from {was} to {now}" for name, (was, now) in given.items())
        case "trial_added":
            return f"added a trial with {settings(given.get('hyperparameters', {}))}"
        case "trial_stopped":
            return f"stopped trial {given.get('trial')}"
        case "registered":
            return f"registered {given.get('trial')} in MLflow as {given.get('model')} {given.get('version')}"
        case "deleted" if why := given.get("why"):
            return f"deleted, since {why}"
    return act.kind


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
    return ["trial", "status", *([metric] if metric else []), *means, "units", *forked, "worker-s", *cost, *given]


def _main(snapshot: Snapshot, trial: TrialRow, *, given: bool, forked: bool) -> list[str]:
    seconds = snapshot.trial_seconds.get(trial.trial_id, 0.0)
    return [
        trial.trial_id,
        trial.status,
        *([value_text(snapshot.objective(trial))] if snapshot.job.spec["objective_metric_name"] else []),
        *([_mean(snapshot, trial)] if snapshot.means else []),
        str(trial.resource),
        *([trial.origin] if forked else []),
        f"{seconds:.1f}" if seconds >= 1 else f"{seconds:.2f}",
        *([cost_text(snapshot.tariff, seconds)] if snapshot.tariff else []),
        *([trial.given_as] if given else []),
    ]


def _mean(snapshot: Snapshot, trial: TrialRow) -> str:
    """The mean of a trial's configuration, with its standard error where that is known."""
    error = snapshot.mean_error(trial)
    return value_text(snapshot.means[trial.number]) + ("" if error is None else f" \u00b1 {value_text(error)}")


def _any_given(snapshot: Snapshot) -> bool:
    return any(trial.given for trial in snapshot.trials)


def _is_forked(snapshot: Snapshot) -> bool:
    """Whether any trial began from another's checkpoint."""
    return any(trial.parent for trial in snapshot.trials)
