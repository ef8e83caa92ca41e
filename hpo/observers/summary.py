"""The summary at a job's end: its trials, their cost, and the best of them."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from hpo.gap import Gap
from hpo.observers.snippets import as_attached, as_python, as_yaml
from hpo.ranking import mean_error
from hpo.record import UNTUNED, run_name
from hpo.search import Controller, TrialRun, rank_of, status_of
from hpo.strategies import Plan, mean
from hpo.text import (
    count,
    details_text,
    first_line,
    forecast_text,
    holds_secret,
    in_bytes,
    mean_text,
    money,
    short,
    untuned_text,
)
from trainers.channels import Channel, predicts
from trainers.checkpoint import is_there, is_whole
from trainers.details import NO_MODEL
from trainers.errors import ConfigurationError, DataError, StorageError
from trainers.trainer import Trainer

DISTINCT_ERRORS = 3

GLUE = "\u00a0"
"""Stands for a space of a command, at which no line is broken, so that the command can be copied."""

_INDENT = 10
"""Columns of a summary's headings."""


def summarize(
    controller: Controller,
    plan: Plan,
    noise: Callable[[float], float | None],
    trainer: Trainer,
    earlier_best: Mapping[str, Any] | None = None,
    channels: Mapping[str, Channel] | None = None,
) -> dict[str, Any]:
    """The summary of a run, as the record keeps it.

    Args:
        controller: the run.
        plan: its brackets.
        noise: the standard error of an objective's value, where it is known.
        trainer: what trained.
        earlier_best: the best trial of the job's parents, as its spec has it.
        channels: that it read.
    """
    statuses = [status_of(run) for run in controller.runs.values()]
    best, untuned = controller.result(), controller.untuned
    tuned = controller.best()
    own = best and trainer.chosen({**trainer.hyperparameters, **best.hyperparameters})
    billed = {kind.value: seconds for kind, seconds in controller.ledger.totals.items()}
    return {
        "trials": {status: statuses.count(status) for status in ("Completed", "Stopped", "Diverged", "Failed")},
        "stopped_by": dict(Counter(run.stopped.by for run in controller.runs.values() if run.stopped)),
        "resource_used": controller.trained - controller.trials.sharing.units,
        "resource_shared": controller.trials.sharing.units,
        "resource_planned": plan.resource,
        "resource_possible": plan.full_resource,
        "depends_on_timing": controller.search.in_order,
        "worker_seconds": billed,
        "cost": tariff.shares(billed) if (tariff := controller.search.limits.tariff) else None,
        "wall_seconds": controller.seconds,
        "first_step_seconds": controller.first_step_at and controller.first_step_at - controller.started_at,
        "gangs": controller.ledger.gangs,
        "best": best
        and own
        and {
            **_scored(controller, best, noise),
            "max_resource": plan.max_resource,
            "checkpoint": best.checkpoint,
            "trainer": trained_as(*own, controller.search.ranking.counts(best.resource, best.best_resource)),
            "command": by_hand(*own, channels),
            "forked": best.origin is not None or bool(best.past),
            "load": load_code(own[0], best),
            "details": best.details,
        },
        "best_trial": None if tuned is None or tuned is best else _scored(controller, tuned, noise),
        "overall_best": earlier_best and _overall(controller, earlier_best),
        "untuned": untuned and _beside(controller, untuned, noise),
        "gain": gap.to_json() if (gap := _gap(controller, noise)) else None,
        "predicts": predicts(channels["train"].describe()) if channels and "train" in channels else "",
        "stopped": controller.stopped,
        "trials_not_improving": controller.trials.completion.not_improving,
        "converged_at": _converged_at(controller),
        "errors": distinct_errors(controller),
    }


def _overall(controller: Controller, earlier: Mapping[str, Any]) -> dict[str, Any]:
    """The better one of the search's result and its parents' best; ties to the less resource, then to the parents'."""
    ranking, best = controller.search.ranking, controller.result()
    value = ranking.counts(earlier["objective"], earlier["best_objective"])
    resource = ranking.counts(earlier["resource"], earlier["best_resource"])
    then = {"job": earlier["job"], "trial": earlier["trial_id"], "value": value, "resource": resource}
    if best is None or ranking.rank(value, resource, -2) < rank_of(ranking, best):
        return then
    now = {"job": controller.search.name, "trial": best.id, "value": controller.objective(best)}
    return {**now, "resource": ranking.counts(best.resource, best.best_resource)}


def _converged_at(controller: Controller) -> float | None:
    """When the last of the trials by which the search had converged ended, in unix seconds; None if it had not."""
    verdict = controller.trials.verdict
    if verdict is None or not verdict.converged:
        return None
    ends = [run.ended_at for run in controller.runs.values() if run.number <= verdict.last]
    return max((at for at in ends if at is not None), default=None)


def load_code(trainer: Trainer, run: TrialRun) -> str:
    """Return the code that loads a trial's model; empty where its checkpoint was changed since the trial wrote it.

    A trainer may load the model for this, and its library may end the process if the bytes are not a model's.
    """
    checkpoint, changed = run.checkpoint or "", False
    with suppress(StorageError):  # It is away, or gone: what makes its model can be said all the same.
        changed = bool(checkpoint) and is_there(checkpoint, run.manifest) and not is_whole(checkpoint, run.manifest)
    return trainer.load_code(checkpoint) if not changed else ""


def _scored(controller: Controller, run: TrialRun, noise: Callable[[float], float | None]) -> dict[str, Any]:
    """The score of a run, and what it is a score of."""
    value = controller.objective(run)
    return {
        "trial": run.id,
        "value": value,
        "resource": controller.search.ranking.counts(run.resource, run.best_resource),
        "standard_error": noise(value),
        "repeats": _repeats(controller, run),
        "metrics": run.metrics,
        "hyperparameters": run.hyperparameters,
    }


def _gap(controller: Controller, noise: Callable[[float], float | None]) -> Gap | None:
    """The best trial's score against the un-tuned run's; None where one of them has none, or did not train on."""
    best, untuned = controller.best(), controller.untuned
    if best is None or untuned is None or not controller.untuned_counts:
        return None
    repeats = _repeats(controller, best)
    return Gap(
        value=controller.trials.comparison.score(best, controller.runs.values()),
        other=controller.objective(untuned),
        error=repeats["standard_error"] if repeats else noise(controller.objective(best)),
        maximize=controller.search.ranking.maximize,
        repeats=controller.search.repeats,
        units=(best.resource, untuned.resource),
    )


def _repeats(controller: Controller, best: TrialRun) -> dict[str, Any] | None:
    """The values of a trial's configuration, and their mean, by which it is compared; None where it has one trial."""
    if controller.search.repeats == 1 or not best.tuned:
        return None
    values = controller.trials.comparison.values_beside(best, controller.runs.values())
    return {"values": values, "mean": mean(values), "standard_error": mean_error(values)}


def _beside(controller: Controller, untuned: TrialRun, noise: Callable[[float], float | None]) -> dict[str, Any]:
    """The result of the un-tuned run."""
    if untuned.diverged:
        return {"diverged": untuned.diverged, "resource": untuned.resource}
    value = controller.objective(untuned)
    if untuned.failure or not math.isfinite(value):
        return {"failure": untuned.failure or "it was stopped before it had reported anything"}
    return {
        "value": value,
        "resource": untuned.resource,
        "metrics": untuned.metrics,
        "standard_error": noise(value),
        "ended_by_itself": controller.untuned_counts,
    }


def distinct_errors(controller: Controller) -> list[dict[str, Any]]:
    """The first few distinct errors of trials: the message, how many had it, the first of them, its logs."""
    errors: dict[str, dict[str, Any]] = {}
    for run in controller.runs.values():
        if run.failure and not run.ahead:
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
    for bracket, alike in Counter(plan.brackets).items():
        rungs = "  ->  ".join(f"{size} to {rung}" for rung, size in zip(bracket.rungs, bracket.sizes, strict=True))
        table.add_row(f"{alike} x" if alike > 1 else "", rungs, str(bracket.resource * alike))
    share = plan.resource / plan.full_resource
    each = f" Each configuration is trained {plan.repeats} times." if plan.repeats > 1 else ""
    most = f"At most {plan.resource} of the {plan.full_resource} units of {plan.trials} full trials: {share:.0%}.{each}"
    if plan.apart and (early := plan.brackets[0].rungs[:-1]):
        most += f" A trial stops at {' or '.join(map(str, early))} if it is behind the median of those before it."
    return Group(table, Text(most))


def show_summary(
    name: str,
    status: str,
    metric: str,
    summary: dict[str, Any],
    *,
    search: str = "",
    resume: str = "",
    verbose: bool = False,
) -> RenderableType:
    """Return the summary for people: the few lines that matter, or all that is known.

    Args:
        name: the job.
        status: the job's.
        metric: the objective.
        summary: as `summarize` made it; of a job that ended before it had found anything, without its results.
        search: the searcher and the scheduler that the job was given, if any; shown with `verbose`.
        resume: how to resume the job, if that is possible.
        verbose: show all rows in place of at most `Brief.LINES` lines.
    """
    reason = str(summary.get("reason") or summary.get("stopped") or "")
    known = "trials" in summary
    if not verbose:
        title = ended_text(name, status, reason, resume.replace(" ", GLUE))
        return Brief(title, _brief(metric, summary) if known else (), name)
    table = Table(title=f"{name}: {status}", title_justify="left", show_header=False, box=None, padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for heading, words in (("reason", reason), ("to go on", resume), ("search", search)):
        if words:
            table.add_row(heading, Text(words))
    for heading, words in [*_trials(summary), *costs(summary), *_found(metric, summary)] if known else ():
        table.add_row(heading, Text(words))
    return table


class Brief:
    """The end of a job in a few lines, as wide as the console.

    The row that says what tuning achieved is never cut for the sake of one above it, except for the title.

    Args:
        title: the first line.
        rows: headings and their words, the important ones first.
        name: the job.
    """

    LINES: ClassVar[int] = 8
    """The most lines that a summary has."""

    def __init__(self, title: str, rows: Iterable[tuple[str, str]], name: str) -> None:
        self._rows = [("", title), *rows, ("", how_to_look(name))]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yield the lines. Rows are wrapped as long as there is room for their further lines."""
        room = self.LINES - len(self._rows)
        wrapped, given = [self._wrapped(heading, words, options) for heading, words in self._rows], {}
        for place in sorted(range(len(self._rows)), key=lambda place: (place > 0, self._rows[place][0] != "un-tuned")):
            given[place] = min(len(wrapped[place]), 1 + max(0, room))
            room -= given[place] - 1
        for place, (heading, _) in enumerate(self._rows):
            indent = _INDENT if heading else 0
            shown, left_out = wrapped[place][: given[place]], wrapped[place][given[place] :]
            for number, line in enumerate(shown):
                cut = " ..." if left_out and number == len(shown) - 1 else ""
                head = heading if number == 0 else ""
                text = Text.assemble((f"{head:<{indent}}", "bold"), line.replace(GLUE, " "), cut)
                if place == 0:
                    text.stylize("bold")
                text.truncate(options.max_width, overflow="ellipsis")
                text.no_wrap = True
                yield text

    @staticmethod
    def _wrapped(heading: str, words: str, options: ConsoleOptions) -> list[str]:
        width = max(20, options.max_width - (_INDENT if heading else 0))
        return textwrap.wrap(words, width, break_long_words=False, break_on_hyphens=False) or [""]


def ended_text(name: str, status: str, reason: str, resume: str) -> str:
    """Return the first line about a job that has ended.

    Args:
        name: the job.
        status: the job's.
        reason: why it ended so, if that is known.
        resume: how to resume it, if that is possible.
    """
    going_on = f". To resume: {resume}" if resume else ""
    return f"{name}: {status}" + (f", {first_line(reason)}" if reason else "") + going_on


def _brief(metric: str, summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the rows of a summary that matter to everybody."""
    found: dict[str, list[str]] = {}
    heading = ""
    for title, words in _found(metric, summary):
        heading = title or heading
        found.setdefault(heading, []).append(words)
    if best := summary["best"]:
        yield "best", _best_text(metric, best)
        of = f" of {best['max_resource']}" if "max_resource" in best else ""
        values = ", ".join(f"{name}={short(value)}" for name, value in best["hyperparameters"].items())
        model = "; no model: hpo describe says why" if best.get("details", {}).get(NO_MODEL) else ""
        yield "trial", f"{best['trial']}, at unit {best['resource']}{of}{model}: {values}"
    else:
        yield "best", found["best"][0]
    if overall := found.get("overall best"):
        yield "overall", "; ".join(overall)
    if untuned := found.get("un-tuned"):
        first, gain = summary["untuned"], summary.get("gain")
        reached = (
            f"{_scores(metric, first)} after {count(first['resource'], 'unit')}" if "value" in first else untuned[0]
        )
        is_best = ["it is the job's result"] if best and best["trial"] == UNTUNED else []
        yield "un-tuned", "; ".join([reached, *([gain["verdict"]] if gain else []), *is_best])
    yield "cost", cost_text(summary)
    yield "trials", "; ".join(words for _, words in _trials(summary))


def _best_text(metric: str, best: dict[str, Any]) -> str:
    """Return the value of the best trial, or the mean of its configuration's trials."""
    known = not best.get("repeats") and best["standard_error"]
    return _value(metric, best) + (f"; standard error {best['standard_error']:.4f}" if known else "")


def cost_text(summary: Mapping[str, Any]) -> str:
    """Return what a job cost, in one sentence: worker-seconds, money where there are prices, and time."""
    used, possible = summary["resource_used"], summary["resource_possible"]
    share = f", {used} of {possible} units ({used / possible:.0%})" if possible else ""
    seconds = sum(summary["worker_seconds"].values())
    return (
        f"{seconds:.1f} worker-seconds{_money(summary.get('cost'))}, {summary['wall_seconds']:.1f} s on "
        f"{count(summary['gangs'], 'gang')}{share}"
    )


def show_code(name: str, summary: dict[str, Any], store: str | None = None, *, strategy: str = "") -> Text:
    """Return the code that uses the best trial, ready to be copied; print it with `soft_wrap`. Empty if there is none.

    Args:
        name: the job.
        summary: its summary.
        store: database URL of its record, where that is not the one that is found by itself; one with a password in it
            is not repeated.
        strategy: the job's, as its record has it.
    """
    best = summary.get("best")
    if not best or "trainer" not in best:
        return Text()
    path, trainer = best["checkpoint"], best["trainer"]
    secret = bool(store) and holds_secret(str(store))
    hint = ", with the store's URL in WARMBAND_STORE" if secret else ""
    attached = as_attached(name, trainer, None if secret else store, strategy=strategy)
    parts = [
        (f"{run_name(best['trial'])} in a job file, under trainer:", as_yaml(trainer, indent="  ")),
        ("the same in Python:", as_python(trainer)),
    ]
    if best.get("command"):
        forked = " (without what it took over from other trials)" if best.get("forked") else ""
        parts.append((f"the same by hand{forked}:", best["command"]))
    if not best.get("details", {}).get(NO_MODEL):
        code = f"from hpo import HyperparameterTuner\nmodel = {attached}.best_estimator().model()"
        parts.append((f"its model, trained, in {path}{hint}:", code))
    if best.get("load"):
        imported, _, code = best["load"].partition("\n")
        parts.append((f"or without Warmband, after {imported}:", code))
    return code_text(parts)


def code_text(parts: Iterable[tuple[str, str]]) -> Text:
    """Return headings and the code below each."""
    text = Text("\n").join(Text.assemble((heading, "bold"), "\n", code) for heading, code in parts)
    text.no_wrap = True
    return text


def how_to_look(name: str) -> str:
    """Return the last line about a job that has ended."""
    return f"Details, code and model: hpo describe {name}"


def by_hand(trainer: Trainer, values: Mapping[str, Any], channels: Mapping[str, Channel] | None) -> str:
    """Return the command line that trains a configuration by hand; empty where there is none."""
    try:
        return trainer.command_line(values, channels)
    except (ConfigurationError, DataError):
        return ""


def trained_as(trainer: Trainer, values: Mapping[str, Any], resource: int) -> dict[str, Any]:
    """A trainer with a configuration, as long as that was trained, in the form of `Trainer.to_json`."""
    state, (hyperparameters, changes) = trainer.to_json(), trainer.retraining(values, resource)
    return {**state, "hyperparameters": hyperparameters, "options": {**state["options"], **changes}}


def _trials(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    counts = summary["trials"]
    yield "trials", ", ".join(f"{number} {status.lower()}" for status, number in counts.items() if number) or "none"
    for by, number in summary.get("stopped_by", {}).items():
        yield "", f"{count(number, 'trial')} stopped by {by}"
    for error in summary.get("errors", ()):
        logs = f"; logs: {error['logs']}" if error.get("logs") else ""
        yield "", f"{count(error['trials'], 'trial')}, first {error['first']}: {first_line(error['error'])}{logs}"


def costs(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a job used, from its summary: headings, and words behind them."""
    if what := summary.get("predicts"):
        yield "predicts", what
    used, possible = summary["resource_used"], summary["resource_possible"]
    yield "units used", f"{used} of {possible} possible ({used / possible:.1%})"
    if shared := summary.get("resource_shared"):
        yield "", f"{shared} more were shared: trained once for several trials"
    if summary.get("depends_on_timing"):
        yield "", "which trials trained on depends on timing: another run with this seed may find others"
    kinds = summary["worker_seconds"]
    parts = ", ".join(f"{kind} {seconds:.1f}" for kind, seconds in kinds.items())
    yield "billed", f"{sum(kinds.values()):.1f} worker-seconds{_money(summary.get('cost'))}: {parts}"
    first = summary["first_step_seconds"]
    yield (
        "wall time",
        f"{summary['wall_seconds']:.1f} s on {count(summary['gangs'], 'gang')}"
        + (f", training from {first:.1f} s on" if first else ""),
    )
    if kept := summary.get("checkpoints"):
        sizes = f"{in_bytes(kept['kept_bytes'])} of {in_bytes(kept['written_bytes'])} written"
        yield "checkpoints", f"{kept['kept']} kept, {sizes}"
    if verdict := (summary.get("probe") or {}).get("verdict"):
        yield "probe", verdict.removeprefix("Probe: ")
    if forecast := summary.get("forecast"):
        yield "forecast", forecast_text(forecast, stopped=bool(summary["stopped"]))


def _money(cost: dict[str, Any] | None) -> str:
    """The price of worker-seconds, to put behind them."""
    return f", {money(cost['total'], cost['currency'])}" if cost else ""


def _found(metric: str, summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    best, untuned = summary["best"], summary["untuned"]
    if best:
        of = f" of {best['max_resource']}" if "max_resource" in best else ""
        own = f"{_scores(metric, best)} ({run_name(best['trial'])}, at unit {best['resource']}{of})"
        if repeats := best.get("repeats"):
            values = ", ".join(f"{value:.5f}" for value in repeats["values"])
            yield "best", f"{_value(metric, best)} ({values})"
            yield "", f"the best of these: {own}"
        else:
            yield "best", own
        if best["standard_error"]:
            yield "", f"standard error of one {metric}, from its rows: {best['standard_error']:.4f}"
        yield "", ", ".join(f"{key}={short(value)}" for key, value in best["hyperparameters"].items())
        if details := details_text(best.get("details", {})):
            yield "", details
        if tuned := summary.get("best_trial"):
            yield "best trial", f"{_value(metric, tuned)} ({tuned['trial']}, at unit {tuned['resource']})"
    else:
        yield "best", "none: no trial reported a finite value"
    if overall := summary.get("overall_best"):
        where = "of this job" if best and overall["trial"] == best["trial"] else f"of the parent {overall['job']}"
        yield "overall best", f"{metric} {overall['value']:.5f} ({run_name(overall['trial'])}, {where})"
    if untuned and "value" in untuned:
        stopped = "" if untuned["ended_by_itself"] else ", stopped before its end"
        yield "un-tuned", f"{_scores(metric, untuned)} (static hyperparameters, {untuned['resource']} units{stopped})"
        if gain := summary.get("gain"):
            yield "", gain["sentence"]
        if best and best["trial"] == UNTUNED:
            yield "", "the un-tuned run is the job's result: its hyperparameters and its model are kept"
    elif untuned:
        yield "un-tuned", untuned_text(untuned)


def _value(metric: str, run: dict[str, Any]) -> str:
    """The objective by which a run is compared: its own, or the mean of its configuration's trials."""
    if repeats := run.get("repeats"):
        return f"{metric} {mean_text(repeats['mean'], repeats.get('standard_error'), len(repeats['values']))}"
    return _scores(metric, run)


def _scores(metric: str, numbers: dict[str, Any]) -> str:
    """The objective, and the same metric on other channels, such as rows that chose nothing."""
    kind = metric.partition(":")[2]
    others = [
        (name, value) for name, value in numbers["metrics"].items() if name != metric and name.endswith(f":{kind}")
    ]
    return ", ".join(f"{name} {value:.5f}" for name, value in [(metric, numbers["value"]), *others])
