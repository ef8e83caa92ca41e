"""The pace of a trainer on its data, from earlier jobs of the record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hpo.cost import Kind, ManyWorkers
from hpo.forecasts.busy import Busy
from hpo.forecasts.forecast import Forecast, Outlook
from hpo.record import JobRow, LedgerRow, Store
from hpo.search import PROBE


def forecast_from(store: Store, spec: Mapping[str, Any], outlook: Outlook) -> Forecast | None:
    """The forecast that the most alike of earlier jobs gives; None where there is none.

    Args:
        store: the record.
        spec: of the job that is to start, as `made_with.spec_of` makes it.
        outlook: of the same job.
    """
    for job in most_alike(store.jobs(), spec):
        pace = pace_of(store.ledger(job.name), store.units_trained(job.name))
        if pace is not None:
            probed = (job.summary.get("probe") or {}).get("many_workers") or {}
            start, before = max(pace.start, probed.get("start", 0.0)), probed.get("before", 0.0)
            pace = replace(pace, start=start, before=before)
            return outlook.forecast(pace, source=f"job {job.name}", used=part_used(job)).doubted(_was_busy(job))
    return None


def most_alike(jobs: Iterable[JobRow], spec: Mapping[str, Any]) -> list[JobRow]:
    """Jobs that have ended of the same trainer, workers and data.

    Those from such a machine come first, then those with the same ranges, then the newest.

    Args:
        jobs: the newest first.
        spec: of the job that they are compared with.
    """
    asked = _identity(spec)
    if asked is None:
        return []
    alike = [job for job in jobs if job.ended_at and job.summary.get("resource_used") and _identity(job.spec) == asked]
    return sorted(alike, key=lambda job: (_machine(job.spec) != _machine(spec), _search(job.spec) != _search(spec)))


def part_used(job: JobRow) -> float:
    """The part of its plan's units that a job trained; 1 for a job that was ended before."""
    used, planned = job.summary["resource_used"], job.summary.get("resource_planned")
    return min(1.0, used / planned) if planned and job.status == "Completed" and not job.reason else 1.0


def _was_busy(job: JobRow) -> str:
    """Doubts about a job's pace: a machine that was busy as it began."""
    busy = (job.summary.get("probe") or {}).get("busy")
    return f"The machine was busy as that job began: {Busy(**busy).used}." if busy else ""


def pace_of(ledger: Iterable[LedgerRow], units: int) -> ManyWorkers | None:
    """The pace at which a job's gangs served.

    What a gang was idle is put to its assignments: trials wait for each other at rungs in the next job as well. A
    ledger knows of a gang's start what was billed of it.

    Args:
        ledger: the job's.
        units: trained by its trials and its un-tuned run.

    Returns:
        None where nothing was trained, or an older Warmband wrote the ledger.
    """
    starting = training = rest = worker_seconds = 0.0
    gangs, assignments = set(), 0
    for row in ledger:
        if not row.workers:
            return None
        if row.trial_id == PROBE:
            continue
        seconds = row.worker_seconds / row.workers
        worker_seconds += row.worker_seconds
        if row.kind == Kind.STARTING.value and not row.trial_id:
            gangs.add(row.gang)
            starting += seconds
        elif row.kind == Kind.TRAINING.value:
            assignments += 1
            training += seconds
        else:
            rest += seconds
    if not units or not assignments or not gangs:
        return None
    return ManyWorkers(
        workers=worker_seconds / (starting + training + rest),
        start=starting / len(gangs),
        held=starting / len(gangs),
        a_round=training / units,
        an_assignment=rest / assignments,
    )


def _identity(spec: Mapping[str, Any]) -> Any:
    """The identity that a pace holds for: trainer, workers and data; None for unknown data."""
    inputs = {name: channel.get("fingerprint") for name, channel in spec.get("inputs", {}).items()}
    if not inputs or not all(inputs.values()):
        return None
    trainer = spec["estimator"]
    sizes = (spec["hyperparameter_ranges"].get("num_workers"), trainer["hyperparameters"].get("num_workers"))
    return trainer["trainer"], trainer.get("options", {}), trainer["scaling"], sizes, inputs


def _machine(spec: Mapping[str, Any]) -> Any:
    environment = spec.get("environment", {})
    return [environment.get(name) for name in ("platform", "cpus", "memory_bytes", "gpus")]


def _search(spec: Mapping[str, Any]) -> Any:
    """What decides beside those how long a unit takes."""
    return spec["hyperparameter_ranges"], spec["estimator"]["hyperparameters"]
