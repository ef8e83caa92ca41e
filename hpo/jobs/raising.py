"""Limits raised by a resume: their checks, and the job's row under them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hpo.cost import Tariff
from hpo.jobs.checks import check_amount, check_limits
from hpo.jobs.options import check_option, declared
from hpo.record import ActKind, JobRow
from hpo.strategies import (
    Plan,
    as_recorded,
    check_plan,
    check_repeats,
    configurations_of,
    repeated,
    strategy_from_json,
    with_median_rule,
    without_median_rule,
)
from hpo.text import count, enumerated, money
from trainers.errors import ConfigurationError, LeaseError
from trainers.plain import plain_scalar

if TYPE_CHECKING:
    from hpo.search import Before

RAISED = "raised"
"""Key of a job's spec: each raise of its limits, with its time as "at", and of each limit what it was and became."""

LIMITS = ("max_jobs", "max_runtime_in_seconds", "max_wait", "max_cost")
"""The limits that can be raised."""


def cannot_be_made(name: str, value: str, limits: Sequence[str]) -> str:
    """The refusal to change something of a job that has begun and is none of the limits that can be raised."""
    return (
        f"{name} cannot be made {value} in a job that has begun; what can be raised where it is resumed is "
        f"{', '.join(limits[:-1])} or {limits[-1]}"
    )


def raised(job: JobRow, limits: Mapping[str, Any], *, before: Before, begun: int, now: float) -> JobRow:
    """A job's row under larger limits; the row itself where it has them already.

    Its plan keeps its brackets, and the trials that are added get brackets of their own, so that nothing that was
    decided is decided otherwise. A job that was Completed is Stopped then, until somebody drives it.

    Args:
        job: its row.
        limits: the new ones, by name.
        before: what it has used.
        begun: how many trials it has begun.
        now: unix seconds.

    Raises:
        ConfigurationError: one of them is no limit, or not a larger one than the job has; or more of it would not let
            the job go on.
    """
    limits = {name: plain_scalar(value) for name, value in limits.items()}
    for name, value in limits.items():
        if name not in LIMITS:
            raise ConfigurationError(cannot_be_made(name, repr(value), LIMITS))
        _check_given(name, value)
    changed = {name: value for name, value in limits.items() if value != job.spec.get(name)}
    for name, value in changed.items():
        _check_larger(job, name, value, _used(job, before, begun))
    spec = {**job.spec, **changed}
    check_limits(**{name: spec.get(name) for name in ("max_jobs", "max_runtime_in_seconds", "max_wait")})
    if not changed:
        return job
    if job.status == "Completed":
        _check_goes_on(job, changed)
    entry = {"at": now, **{name: [job.spec[name], value] for name, value in changed.items()}}
    spec[RAISED] = [*job.spec.get(RAISED, []), entry]
    row = replace(job, spec=spec)
    if "max_jobs" in changed:
        from hpo.jobs.settings import JobSettings  # imports Ray

        # A record of an older Warmband may have no plan: the job's settings then say what it was.
        plan = Plan.from_json(job.plan) if job.plan else JobSettings.of(job, allow_code=False).plan()
        strategy = strategy_from_json(spec["strategy"], as_recorded(spec["strategy"], spec["strategy_config"]))
        check_repeats(strategy, plan.repeats, spec["max_jobs"])
        configurations = spec["max_jobs"] // plan.repeats
        grown = strategy.grown(without_median_rule(configurations_of(plan)), configurations)
        check_plan(grown, configurations, spec["strategy"])
        row = replace(row, plan=repeated(with_median_rule(grown) if plan.apart else grown, plan.repeats).to_json())
    return replace(row, status="Stopped", reason=said(entry)) if job.status == "Completed" else row


def changes(before: JobRow, after: JobRow, now: JobRow | None = None) -> dict[str, Any]:
    """The changes of a job's row, by field, after its limits were raised or its end was undone.

    Args:
        before: the row when it was read.
        after: the row as it is to be.
        now: the row as it has become; of its `spec`, what neither limits nor raises are stays. None: as it was.
    """
    fields = ("plan", "status", "reason", "ended_at")
    changed = {name: value for name in fields if (value := getattr(after, name)) != getattr(before, name)}
    spec = {name: value for name, value in after.spec.items() if value != before.spec.get(name)}
    return {**changed, "spec": {**(now or before).spec, **spec}} if spec else changed


def check_current(job: JobRow, driven: Sequence[Mapping[str, Any]]) -> None:
    """Refuses to drive a job under limits that are not those of its record any more.

    Args:
        job: its row, read with its lease in hand.
        driven: how its limits were raised when they were read.

    Raises:
        LeaseError: another process has raised them since.
    """
    if list(job.spec.get(RAISED, [])) != list(driven):
        raise LeaseError(
            f"another process raised the limits of job {job.name!r} just now; run `hpo resume {job.name}` again"
        )


def said(entry: Mapping[str, Any]) -> str:
    """A raise, in words: "max_jobs raised from 30 to 50"."""
    raised = [(name, *entry[name]) for name in LIMITS if name in entry]
    return enumerated([f"{name} raised from {before} to {after}" for name, before, after in raised])


def acts_of(before: JobRow, after: JobRow) -> dict[ActKind, Mapping[str, Any]]:
    """What a person does who resumes a job, perhaps under larger limits: for `Store.update_job`.

    Args:
        before: its row.
        after: the row under the limits.
    """
    if after.spec.get(RAISED) == before.spec.get(RAISED):
        return {"resumed": {}}
    entry = after.spec[RAISED][-1]
    return {"raised": {name: entry[name] for name in LIMITS if name in entry}, "resumed": {}}


def raises(spec: Mapping[str, Any]) -> list[str]:
    """How a job's limits were raised, a line each time."""
    return [
        f"{said(entry)}, {datetime.fromtimestamp(entry['at'], UTC):%Y-%m-%d %H:%M:%S} UTC"
        for entry in spec.get(RAISED, [])
    ]


# ---- within


def _check_given(name: str, value: Any) -> None:
    """Refuses what is no limit; None, which is none, is not more than one."""
    if value is None:
        raise ConfigurationError(f"{name} is null, which raises nothing; give a larger number than the job has")
    if name == "max_cost":
        check_amount(name, value)
    elif name in declared():
        check_option(name, value)
    else:
        check_limits(**{name: value})


def _check_larger(job: JobRow, name: str, value: float, used: Mapping[str, tuple[float, str]]) -> None:
    had = job.spec.get(name)
    if had is None:
        raise ConfigurationError(f"{name} is {value}, and job {job.name!r} has no such limit to raise; leave it out")
    amount, words = used[name]
    if value <= max(had, amount):
        raise ConfigurationError(
            f"{name} is {value}, and job {job.name!r} has {had}, of which it has used {words} already; a limit can be "
            f"raised, not lowered: give more than {max(had, amount):.10g}"
        )


def _check_goes_on(job: JobRow, changed: Mapping[str, Any]) -> None:
    if job.reason:
        raise ConfigurationError(
            f"job {job.name!r} is Completed, {job.reason}: larger limits change nothing about that; begin another job"
        )
    if "max_jobs" not in changed:
        name, value = next(iter(changed.items()))
        raise ConfigurationError(
            f"{name} is {value} for job {job.name!r}, which is Completed with all its trials; to go on with more of "
            f"them, give a larger max_jobs than {job.spec['max_jobs']}"
        )


def _used(job: JobRow, before: Before, begun: int) -> dict[str, tuple[float, str]]:
    """A job's usage of each limit: as a number, and in words."""
    seconds, worker_seconds = before.seconds, sum(row.worker_seconds for row in before.ledger)
    ran = seconds if job.spec.get("max_wait") is None else before.gang_seconds
    tariff = Tariff.of_spec(job.spec)
    cost = tariff.of(worker_seconds) if tariff else math.nan
    return {
        "max_jobs": (begun, count(begun, "trial")),
        "max_runtime_in_seconds": (ran, f"{ran:,.1f} s"),
        "max_wait": (seconds, f"{seconds:,.1f} s"),
        "max_cost": (cost, money(cost, tariff.currency) if tariff else ""),
    }
