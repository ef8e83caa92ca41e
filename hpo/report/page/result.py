"""The result of a job: scores with and without tuning, their cost, and the configuration to use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from hpo.record import EARLIER_BEST, TrialRow, repeats_of, run_name
from hpo.report.data import JobData
from hpo.report.page.blocks import Code, Column, Facts, Measured, Table
from hpo.report.page.page import Block, Section
from hpo.strategies import mean
from hpo.text import count, decimal, details_text, in_bytes, money, places, range_text, short
from trainers.details import NO_MODEL
from trainers.parts import ESTIMATOR, parts_of


def result(data: JobData) -> Section:
    """Scores, and what they took."""
    compared = f"the {'best' if data.by_best else 'last'} value of {data.metric}"
    note = f"Trials are compared by {compared}."
    if data.means:
        note = f"Configurations are compared by the mean of {compared} over {repeats_of(data.job)} trials."
        if data.best is not None and data.mean_error(data.best) is not None:
            note += " Behind \u00b1 is the standard error of that mean, from how far the trials lie apart."
    if data.best is not None and data.untuned is not None:
        note += " The best one was chosen by it, which flatters its score; other channels chose nothing."
    return Section("Result", [*_scores(data), Facts(list(_used(data)))], note=note)


def configuration(data: JobData) -> Section:
    """The hyperparameters of the job's result, and the code that has them; nothing where there is none."""
    best = data.result
    if best is None:
        return Section("Configuration", [])
    static, ranges = data.job.spec["estimator"]["hyperparameters"], data.job.spec["hyperparameter_ranges"]
    names = dict.fromkeys([*best.hyperparameters, *static])
    if parts := parts_of(data.job.spec["estimator"]):  # Those of the other trainers are nothing to it.
        own = best.hyperparameters.get(ESTIMATOR)
        names = {name: None for name in names if name.partition(".")[0] not in parts.keys() - {own}}
    rows = [
        [
            name,
            short(best.hyperparameters.get(name, static.get(name))),
            short(static[name]) if name in static else None,
            range_text(ranges[name]) if name in ranges else "not tuned",
        ]
        for name in names
    ]
    table = Table(["hyperparameter", "best", "un-tuned", "range"], rows)
    best_one = data.job.summary.get("best") or {}
    so_far = "" if data.job.ended_at else " so far"
    note = (
        f"{best.trial_id}, the best trial{so_far}." if best is data.best else f"The un-tuned run is the best{so_far}."
    )
    return Section("Configuration", [table, *(_codes(data, best_one) if "trainer" in best_one else ())], note=note)


def _codes(data: JobData, best: dict[str, Any]) -> Iterator[Block]:
    from hpo.observers import as_attached, as_python, as_yaml  # imports Ray

    trainer = best["trainer"]
    attached = f"{as_attached(data.title, trainer, strategy=data.job.spec['strategy'])}.best_estimator()"
    yield Code(as_yaml(trainer), "YAML", "In a job file, under trainer")
    yield Code(as_python(trainer), "Python", "In Python")
    if best.get("command"):
        yield Code(best["command"], "sh", "By hand")
    if not best.get("details", {}).get(NO_MODEL):
        yield Code(f"from hpo import HyperparameterTuner\nmodel = {attached}.model()", "Python", "Its model, trained")


def _scores(data: JobData) -> Iterator[Block]:
    """The un-tuned run, the best trial, and what lies between them, by every channel's form of the objective."""
    shown = [trial for trial in (data.untuned, data.best) if trial is not None]
    if not shown:
        return
    reported = [_metrics(data, trial) for trial in shown]
    kind = data.metric.partition(":")[2]
    others = {name for metrics in reported for name in metrics if name.endswith(f":{kind}")} - {data.metric}
    names = [data.metric, *sorted(others)]
    rows: list[list[object]] = []
    for trial, metrics in zip(shown, reported, strict=True):
        first, *rest = [metrics.get(name) for name in names]
        label, error, billed = "un-tuned", None, data.billed_by_trial.get(trial.trial_id)
        if trial is data.result is data.untuned:
            label = "un-tuned, the best"
        if trial is data.best:
            label, error = f"best, {trial.trial_id}", data.standard_error
            if data.means:
                together = data.repeats(trial)
                label = f"best, mean of {together[0].trial_id} to {together[-1].number}"
                billed = sum(data.billed_by_trial.get(each.trial_id, 0.0) for each in together)
        rows.append([label, Measured(first, error), *rest, _taken(data, trial), billed])
    if len(shown) == 2:
        before, after = reported
        changes = [Measured(_change(before.get(name), after.get(name)), signed=True) for name in names]
        rows.append(["difference", *changes, None, None])
    scores = [
        Column(name, places(*(value for each in reported if (value := each.get(name)) is not None))) for name in names
    ]
    yield Table(["", *scores, f"{data.unit}s", Column("worker-seconds", 2)], rows)


def _metrics(data: JobData, trial: TrialRow) -> dict[str, float | None]:
    """The metrics of a trial's report that has its objective; the means over its configuration's trials."""
    if data.means.get(trial.number) is not None and trial.number >= 0:
        own = [_own_metrics(data, each) for each in data.repeats(trial)]
        return {name: _mean([metrics.get(name) for metrics in own]) for name in own[0]}
    return _own_metrics(data, trial)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return mean(known) if len(known) == len(values) else None


def _own_metrics(data: JobData, trial: TrialRow) -> dict[str, float | None]:
    at = _taken(data, trial)
    metrics = next((report.metrics for report in data.reports.get(trial.trial_id, ()) if report.step == at), {})
    return {**metrics, data.metric: data.objective(trial)}


def _taken(data: JobData, trial: TrialRow) -> int:
    """The units after which a trial's objective was taken."""
    return (trial.best_resource or trial.resource) if data.by_best else trial.resource


def _change(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _used(data: JobData) -> Iterator[tuple[str, object]]:
    summary = data.job.summary
    statuses = Counter(trial.status for trial in data.trials)
    counts = ", ".join(f"{number} {status.lower()}" for status, number in statuses.items())
    persons = Counter(trial.stopped_by for trial in data.trials if trial.stopped)
    by = "".join(f"; {number} stopped by {person}" for person, number in persons.items())
    yield "trials", f"{len(data.trials)} of {data.planned}" + (f": {counts}{by}" if counts else "")
    used, possible = data.used, data.max_resource * int(data.job.spec["max_jobs"])
    if possible:
        share = f"{used / possible:.1%}"
        yield f"{data.unit}s", f"{used:,} of {possible:,} ({share}) that as many full trials would train"
    yield "billed", f"{sum(data.billed.values()):,.1f} worker-seconds"
    if cost := summary.get("cost"):
        yield "money", money(cost["total"], cost["currency"])
    gangs = f" on {count(summary['gangs'], 'gang')}" if summary.get("gangs") else ""
    yield "wall time", f"{data.runtime:,.1f} s{gangs}"
    if kept := summary.get("checkpoints"):
        sizes = f"{in_bytes(kept['kept_bytes'])} of {in_bytes(kept['written_bytes'])} written"
        yield "checkpoints", f"{kept['kept']} kept, {sizes}"
    if data.job.spec.get(EARLIER_BEST) and (overall := data.overall_best):
        where = "of this job" if overall is data.result else f"of the parent {overall.job}"
        value = data.objective(overall) or 0.0
        yield "overall best", f"{data.metric} {decimal(value, places(value))}, {run_name(overall.trial_id)} {where}"
    if data.gap is not None:
        yield "tuning", data.gap.sentence
    if data.best is not None and (details := details_text(data.best.details)):
        yield "best trial", details
    if probed := (summary.get("probe") or {}).get("verdict"):
        yield "probe", probed.removeprefix("Probe: ")
