"""What is said of a job: true of every state that it may be in, and no more than its figures bear out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hpo.record.store import JobRow, LedgerRow, TrialRow
from hpo.report import JobData
from hpo.report.page.conclusion import comparison, subtitle, verdict

BASE = 1_700_000_000.0


def job(
    best: float | None = 0.8,
    untuned: float | None = 0.75,
    error: float | None = 0.01,
    *,
    name: str = "bank",
    maximize: bool = True,
    summary: dict[str, Any] | None = None,
    **changes: Any,
) -> JobData:
    """A job of two trials of 30 rounds, of which one trained 10."""
    spec = {
        "estimator": {"trainer": "XGBoostTrainer", "scaling": {"num_workers": 3}, "hyperparameters": {}},
        "strategy": "Hyperband",
        "objective_metric_name": "validation:auc",
        "objective_type": "Maximize" if maximize else "Minimize",
        "objective_value": "last",
        "max_jobs": 2,
        "hyperparameter_ranges": {},
    }
    worse = None if best is None else best - 0.1 if maximize else best + 0.1
    ends = {"created_at": BASE, "ended_at": BASE + 60, "heartbeat": BASE + 60, "status": "Completed", **changes}
    return JobData(
        job=JobRow(
            name=name,
            spec=spec,
            plan={"max_resource": 30, "brackets": []},
            summary={"best": {"standard_error": error}, **(summary or {})},
            **ends,
        ),
        trials=(
            trial("bank-0", 0, worse, 10, "Stopped"),
            trial("bank-1", 1, best, 30, "Failed" if best is None else "Completed"),
        ),
        untuned=None if untuned is None else trial("untuned", -1, untuned, 30, "Completed"),
        reports={},
        ledger=(LedgerRow(job=name, gang="g", kind="training", worker_seconds=12.34, at=BASE + 5),),
    )


def trial(name: str, number: int, value: float | None, resource: int, status: Any) -> TrialRow:
    reason = "ValueError: no luck.\nmore" if status == "Failed" else ""
    return TrialRow(
        job="bank",
        trial_id=name,
        number=number,
        objective=value,
        resource=resource,
        status=status,
        failure_reason=reason,
        ended_at=BASE + 9,
    )


USED = "40 of 60 rounds and 12.3 worker-seconds"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            job(),
            "Tuning raised validation:auc from 0.7500 to 0.8000, by 0.0500 or 5.0 standard errors of one such score, "
            f"with {USED}.",
        ),
        (
            job(0.2, 0.25, maximize=False),
            "Tuning lowered validation:auc from 0.2500 to 0.2000, by 0.0500 or 5.0 standard errors of one such score, "
            f"with {USED}.",
        ),
        (
            job(error=0.04),
            "Tuning raised validation:auc from 0.7500 to 0.8000, by 0.0500 or 1.3 standard errors of one such score, "
            f"which may be chance, with {USED}.",
        ),
        (
            job(error=0.06),
            "Tuning made no difference that these rows can show: validation:auc is 0.8000 for the best of 2 trials and "
            f"0.7500 un-tuned, and one such score has a standard error of 0.0600; it took {USED}.",
        ),
        (job(error=None), f"Tuning raised validation:auc from 0.7500 to 0.8000, by 0.0500, with {USED}."),
        (
            job(0.7),
            "Tuning found nothing better: validation:auc is 0.7000 for the best of 2 trials and 0.7500 un-tuned; "
            f"it took {USED}.",
        ),
        (
            job(untuned=None),
            f"The best of 2 trials has validation:auc 0.8000 ± 0.0100, with {USED}.",
        ),
        (
            job(untuned=None, summary={"untuned": {"diverged": "nan", "resource": 1}}),
            "The best of 2 trials has validation:auc 0.8000 ± 0.0100 (the un-tuned configuration diverged after 1 round"
            f"), with {USED}.",
        ),
        (
            job(untuned=None, summary={"untuned": {"failure": "boom"}}),
            "The best of 2 trials has validation:auc 0.8000 ± 0.0100 (the un-tuned configuration failed), "
            f"with {USED}.",
        ),
        (
            job(untuned=None, summary={"cost": {"currency": "EUR", "total": 1.5, "by_kind": {}}}),
            f"The best of 2 trials has validation:auc 0.8000 ± 0.0100, with {USED} (1.50 EUR).",
        ),
        (
            job(None),
            "No trial reported a finite validation:auc: 1 stopped, 1 failed; most often because: ValueError: no luck.",
        ),
        (
            job(untuned=None, error=None, reason="the target was reached."),
            f"The best of 2 trials has validation:auc 0.8000, with {USED}; it ended early: the target was reached.",
        ),
        (
            job(status="Stopped", reason="someone asked for it"),
            "Tuning raised validation:auc from 0.7500 to 0.8000, by 0.0500 or 5.0 standard errors of one such score, "
            f"with {USED}; the job was stopped before its end (someone asked for it): 2 of 2 trials have ended.",
        ),
        (
            job(None, status="Stopped"),
            "No trial reported a finite validation:auc: 1 stopped, 1 failed; most often because: ValueError: no luck; "
            "the job was stopped before its end.",
        ),
        (
            job(None, status="Failed", reason="no gang came up\nat all"),
            "The job failed: no gang came up; no trial has reported a finite validation:auc.",
        ),
        (
            job(status="Failed", reason=""),
            "The job failed; the best of 2 trials has validation:auc 0.8000 ± 0.0100, against 0.7500 un-tuned.",
        ),
    ],
)
def test_the_verdict_on_a_job_that_has_ended(data: JobData, said: str) -> None:
    assert verdict(data) == said


def repeated(*values: float, untuned: float | None = 0.75, **changes: Any) -> JobData:
    """A job of two trials a configuration; the summary's error, of the rows of one trial, is none of a mean."""
    made = job(untuned=untuned, **changes)
    rows = tuple(trial(f"bank-{number}", number, value, 10, "Completed") for number, value in enumerate(values))
    return replace(made, job=replace(made.job, spec={**made.job.spec, "repeats": 2, "max_jobs": 4}), trials=rows)


REPEATED = "40 of 120 rounds and 12.3 worker-seconds"
MEAN = "0.8000 (the mean of 2 trials)"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            repeated(0.71, 0.72, 0.79, 0.81),
            f"Tuning raised validation:auc from 0.7500 to {MEAN}, by 0.0500 or 5.0 standard errors of that mean, "
            f"with {REPEATED}.",
        ),
        (
            repeated(0.75, 0.85, 0.72, 0.90, untuned=None),
            f"The best of 2 configurations has validation:auc 0.8100 ± 0.0900 (the mean of 2 trials), with {REPEATED}.",
        ),
        (
            repeated(0.70, 0.90, 0.71, 0.72),
            "Tuning made no difference that these trials can show: validation:auc is 0.8000 (the mean of 2 trials) for "
            "the best of 2 configurations and 0.7500 un-tuned, and that mean has a standard error of 0.1000; it took "
            f"{REPEATED}.",
        ),
        (
            repeated(0.80, 0.80, 0.71, 0.72),  # Seeds that change nothing.
            f"Tuning raised validation:auc from 0.7500 to {MEAN}, by 0.0500, with {REPEATED}.",
        ),
        (
            repeated(0.79, 0.81, 0.71, 0.72, status="InProgress", ended_at=None),
            "Still running: 4 of 4 trials have ended; the best so far has validation:auc 0.8000 ± 0.0100 (the mean of "
            "2 trials), against 0.7500 un-tuned.",
        ),
        (
            repeated(0.79, 0.81, 0.71, 0.72, status="Failed", reason="no gang came up"),
            "The job failed: no gang came up; the best of 2 configurations has validation:auc 0.8000 ± 0.0100 (the "
            "mean of 2 trials), against 0.7500 un-tuned.",
        ),
    ],
)
def test_the_verdict_on_a_job_with_repeats_has_the_error_of_the_mean(data: JobData, said: str) -> None:
    assert verdict(data) == said


def test_a_mean_is_compared_by_its_own_error() -> None:
    one, other = repeated(0.78, 0.82, 0.7, 0.7, name="one"), job(0.75, name="other")
    assert comparison([other, one]).startswith(
        f"one found the best validation:auc, {MEAN}, ahead of other by 0.0500 or 2.5 standard errors of that mean; one"
    )
    near = repeated(0.7, 0.9, 0.7, 0.7, name="near")
    assert comparison([near, other]).startswith(
        f"near and other cannot be told apart: validation:auc is {MEAN} and 0.7500, and that mean has a standard error "
        "of 0.1000; "
    )


@pytest.mark.parametrize(("status", "word"), [("InProgress", "Still running"), ("Stopping", "Asked to stop")])
def test_a_job_under_way_says_so_and_how_far_it_is(status: Any, word: str) -> None:
    data = job(status=status, ended_at=None)
    said = "2 of 2 trials have ended; the best so far has validation:auc 0.8000 ± 0.0100, against 0.7500 un-tuned."
    assert verdict(data) == f"{word}: {said}"
    assert ", as of " in subtitle(data)
    assert subtitle(job()).endswith("Completed, ended 2023-11-14 22:14:20 UTC")


def test_a_job_whose_driver_is_gone_has_failed() -> None:
    assert verdict(job(status="InProgress", ended_at=None, silent=61.0)).startswith(
        "The job failed: its driver was last heard of"
    )


def test_a_job_without_a_trial_says_so() -> None:
    assert verdict(replace(job(), trials=())) == "No trial reported a finite validation:auc: none was started."


def test_the_better_of_two_jobs_is_named_with_what_both_took() -> None:
    one, other = job(0.8, name="one"), job(0.75, name="other")
    for jobs in ([one, other], [other, one]):
        assert comparison(jobs) == (
            "one found the best validation:auc, 0.8000, ahead of other by 0.0500 or 5.0 standard errors of one such "
            f"score; one took {USED}, other {USED}."
        )


def test_jobs_that_noise_could_part_are_not_ranked() -> None:
    said = comparison([job(0.8, name="one"), job(0.795, name="other")])
    assert said.startswith(
        "one and other cannot be told apart: validation:auc is 0.8000 and 0.7950, and one such score"
    )


def test_jobs_that_cannot_be_ranked_are_not() -> None:
    assert comparison([job(), job(maximize=False)]) == (
        "These jobs cannot be ranked, since they are after different things: validation:auc (maximized), "
        "validation:auc (minimized)."
    )
    assert comparison([job(), job(None, name="none")]) == (
        "There is nothing to compare yet: only bank has a validation:auc, 0.8000."
    )
    assert comparison([job(None), job(None)]) == "There is nothing to compare yet: none has any."
