"""The conclusion of a job in one sentence, with figures and their uncertainty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hpo.gap import Gap
from hpo.record import repeats_of, when
from hpo.report.data import JobData
from hpo.report.page.cells import with_error
from hpo.text import count, first_line, money, places, strategy_name


def verdict(data: JobData) -> str:
    """The verdict on a job, whatever has become of it."""
    reason = first_line(data.reason).rstrip(".") if data.reason else ""
    if data.status == "InProgress":
        return f"Still running: {_progress(data)}; {_so_far(data)}."
    if data.status == "Stopping":
        return f"Asked to stop: {_progress(data)}; {_so_far(data)}."
    if data.status == "Failed":
        return f"The job failed{reason and f': {reason}'}; {_so_far(data)}."
    stopped = data.status == "Stopped"
    if data.best is None:
        nothing = f"No trial reported a finite {data.metric}: {_statuses(data)}{_usual_failure(data)}"
        return f"{nothing}{_stopped(reason) if stopped else ''}."
    if stopped:
        return f"{_found(data)}{_stopped(reason)}: {_progress(data)}."
    return f"{_found(data)}{reason and f'; it ended early: {reason}'}."


def subtitle(data: JobData) -> str:
    """The job's search, and the moment of the page."""
    job, spec = data.job, data.job.spec
    moment, word = (job.heard, "as of") if job.ended_at is None else (job.ended_at, "ended")
    tuned, trainer = count(len(data.ranges), "hyperparameter"), spec["estimator"]["trainer"]
    state = f"{data.status}, {word} {when(moment):%Y-%m-%d %H:%M:%S} UTC"
    return f"{strategy_name(spec)} over {tuned} of {trainer}. {state}"


def score(value: float, error: float | None = None) -> str:
    """A score as it stands in a sentence, with its standard error where that is known."""
    return with_error(value, error, places(value))


def price(data: JobData) -> str:
    """A job's usage: units, worker-seconds and, with prices, money."""
    used, possible = data.used, data.possible
    cost = data.job.summary.get("cost")
    paid = f" ({money(cost['total'], cost['currency'])})" if cost else ""
    return f"{used:,} of {possible:,} {data.unit}s and {sum(data.billed.values()):,.1f} worker-seconds{paid}"


def comparison(jobs: Sequence[JobData]) -> str:
    """The verdict on several jobs side by side."""
    aims = sorted({f"{data.metric} ({data.job.spec['objective_type'].lower()}d)" for data in jobs})
    if len(aims) > 1:
        return f"These jobs cannot be ranked, since they are after different things: {', '.join(aims)}."
    scored = [(value, data) for data in jobs if data.best and (value := data.score(data.best)) is not None]
    scored.sort(key=lambda pair: pair[0], reverse=jobs[0].maximize)
    if len(scored) < 2:
        text = f"only {scored[0][1].title} has a {jobs[0].metric}, {score(scored[0][0])}" if scored else "none has any"
        return f"There is nothing to compare yet: {text}."
    (value, first), (other, second) = scored[:2]
    between = Gap(
        value=value,
        other=other,
        error=first.standard_error,
        maximize=first.maximize,
        repeats=repeats_of(first.job),
    )
    costs = f"{first.title} took {price(first)}, {second.title} {price(second)}"
    if between.outcome == "no difference":
        both = f"{first.metric} is {score(value)}{_of_mean(first)} and {score(other)}{_error_of(between)}"
        return f"{first.title} and {second.title} cannot be told apart: {both}; {costs}."
    ahead = f"ahead of {second.title} by {between.text}"
    return f"{first.title} found the best {first.metric}, {score(value)}{_of_mean(first)}, {ahead}; {costs}."


def _stopped(reason: str) -> str:
    return f"; the job was stopped before its end{reason and f' ({reason})'}"


def _found(data: JobData) -> str:
    """The conclusion of a job that came to its end."""
    assert data.best is not None
    value, between = data.score(data.best) or 0.0, data.gap
    tried, mean = _tried(data), _of_mean(data)
    if between is None:
        best = f"The best of {tried} has {data.metric} {score(value, data.standard_error)}{mean}"
        return f"{best}{_no_untuned(data)}, with {price(data)}"
    both = f"{data.metric} is {score(value)}{mean} for the best of {tried} and {score(between.other)} un-tuned"
    took = f"{between.lengths}{_result(data)}; it took {price(data)}"
    if between.outcome == "no difference":
        shown = f" that these {'trials' if mean else 'rows'} can show" if between.known_error else ""
        return f"Tuning made no difference{shown}: {both}{_error_of(between)}{took}"
    if between.outcome == "worse":
        return f"Tuning found nothing better: {both}, worse by {between.text}{took}"
    moved = f"{'raised' if data.maximize else 'lowered'} {data.metric} from {score(between.other)} to {score(value)}"
    unknown = "" if between.known_error else " (its standard error is not known)"
    return f"Tuning {moved}{mean}, by {between.text}{unknown}, with {price(data)}{between.lengths}"


def _error_of(between: Gap) -> str:
    """The standard error that a gap is within; empty where it is not known."""
    if between.known_error is None:
        return ""
    return f", and {between.which} has a standard error of {score(between.known_error)}"


def _result(data: JobData) -> str:
    """Return a sentence that names the run which the job returns; empty where that is the best trial."""
    return "; the un-tuned run is the job's result" if data.result is data.untuned else ""


def _so_far(data: JobData) -> str:
    """The conclusion of a job that is under way or has failed."""
    value = data.score(data.best) if data.best else None
    if value is None:
        return f"no trial has reported a finite {data.metric}"
    between = data.gap
    against = f", against {score(between.other)} un-tuned" if between else ""
    best = "the best so far" if data.job.ended_at is None else f"the best of {_tried(data)}"
    return f"{best} has {data.metric} {score(value, data.standard_error)}{_of_mean(data)}{against}"


def _tried(data: JobData) -> str:
    """What there is a best of."""
    repeats = repeats_of(data.job)
    if repeats == 1:
        return count(len(data.trials), "trial")
    return count(len({trial.number // repeats for trial in data.trials}), "configuration")


def _of_mean(data: JobData) -> str:
    """What a score is the mean of, to put behind it; empty where it is a trial's own."""
    return f" (the mean of {repeats_of(data.job)} trials)" if data.means else ""


def _no_untuned(data: JobData) -> str:
    """The fate of an un-tuned run without a score."""
    untuned = data.job.summary.get("untuned") or {}
    if "diverged" in untuned:
        return f" (the un-tuned configuration diverged after {count(int(untuned['resource']), data.unit)})"
    return " (the un-tuned configuration failed)" if "failure" in untuned else ""


def _progress(data: JobData) -> str:
    ended, all_of_them = sum(trial.ended_at is not None for trial in data.trials), data.planned
    return f"{ended} of {count(all_of_them, 'trial')} {'has' if ended == 1 else 'have'} ended"


def _statuses(data: JobData) -> str:
    counts = Counter(trial.status for trial in data.trials)
    return ", ".join(f"{number} {status.lower()}" for status, number in counts.items()) or "none was started"


def _usual_failure(data: JobData) -> str:
    reasons = Counter(first_line(trial.failure_reason) for trial in data.trials if trial.failure_reason)
    return "".join(f"; most often because: {reason.rstrip('.')}" for reason, _ in reasons.most_common(1))
