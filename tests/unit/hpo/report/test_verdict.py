"""What is said of a job: true of every state that it may be in, and no more than its figures bear out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from hpo.record.store import JobRow, LedgerRow, TrialRow
from hpo.report import JobData
from hpo.report.page.conclusion import comparison, subtitle, verdict
from tests.support.refusals import mentions, missing_names

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


USED = (40, "60 rounds", "12.3 worker-seconds")
OWN = ("validation:auc", "0.8000 ± 0.0100")
UNTUNED = ("validation:auc", "0.7500", "0.8000")


def faults(cases: Sequence[tuple[JobData, tuple[object, ...], tuple[object, ...]]]) -> list[str]:
    """The verdicts that lack a name of the first ones, or have one of the second."""
    told = [(verdict(data), names, others) for data, names, others in cases]
    return [
        f"case {number}: {wrong} in: {text}"
        for number, (text, names, others) in enumerate(told, 1)
        if (wrong := [*missing_names(text, *names), *(each for each in others if not missing_names(text, each))])
    ]


def frame(text: str) -> str:
    """A text without its figures."""
    return re.sub(r"\d[\d.,]*", "", text)


def test_the_verdict_on_a_job_that_has_ended() -> None:
    """It says what was found, what that is worth, and what it took; a gain only where there is one."""
    gain, error = "0.0500", "standard errors"
    diverged = {"untuned": {"diverged": "nan", "resource": 1}}
    paid = {"cost": {"currency": "EUR", "total": 1.5, "by_kind": {}}}
    cases: list[tuple[JobData, tuple[object, ...], tuple[object, ...]]] = [
        (job(), (*UNTUNED, gain, 5.0, error, *USED), ()),
        (job(0.2, 0.25, maximize=False), ("validation:auc", "0.2500", "0.2000", gain, 5.0, error, *USED), ()),
        (job(error=0.04), (*UNTUNED, gain, 1.3, error, *USED), ()),
        (job(error=0.06), (*UNTUNED, "0.0600", "standard error", "2 trials", *USED), (gain,)),
        (job(error=None), (*UNTUNED, gain, *USED), (error,)),
        (job(0.7), ("validation:auc", "0.7000", "0.7500", "2 trials", gain, 5.0, error, "un-tuned run", *USED), ()),
        (job(0.745), ("validation:auc", "0.7450", "0.7500", "2 trials", "0.0100", "un-tuned run", *USED), ("0.0050",)),
        (job(untuned=None), ("2 trials", *OWN, *USED), ("0.7500", "un-tuned")),
        (job(untuned=None, summary=diverged), ("2 trials", *OWN, "un-tuned", "diverged", "1 round", *USED), ()),
        (
            job(untuned=None, summary={"untuned": {"failure": "boom"}}),
            ("2 trials", *OWN, "un-tuned", "failed", *USED),
            (),
        ),
        (job(untuned=None, summary=paid), ("2 trials", *OWN, *USED, "1.50 EUR"), ()),
        (job(None), ("validation:auc", "1 stopped", "1 failed", "ValueError: no luck"), ()),
        (
            job(untuned=None, error=None, reason="the target was reached."),
            ("2 trials", "validation:auc", "0.8000", *USED, "the target was reached"),
            ("±",),
        ),
        (
            job(status="Stopped", reason="someone asked for it"),
            (*UNTUNED, gain, 5.0, error, *USED, "stopped", "someone asked for it", 2),
            (),
        ),
        (job(None, status="Stopped"), ("validation:auc", "1 stopped", "1 failed", "ValueError: no luck"), ()),
        (
            job(None, status="Failed", reason="no gang came up\nat all"),
            ("failed", "no gang came up", "validation:auc"),
            ("at all",),
        ),
        (job(status="Failed", reason=""), ("failed", "2 trials", *OWN, "0.7500", "un-tuned"), ()),
    ]
    assert not faults(cases)
    sure = frame(verdict(job()))
    assert frame(verdict(job(error=0.04))) != sure, "a gain that may be chance is called that"
    assert frame(verdict(job(0.2, 0.25, maximize=False))) != sure, "less is not called more"
    assert frame(verdict(job(None, status="Stopped"))) != frame(verdict(job(None))), "that it was stopped is said"


def repeated(*values: float, untuned: float | None = 0.75, **changes: Any) -> JobData:
    """A job of two trials a configuration; the summary's error, of the rows of one trial, is none of a mean."""
    made = job(untuned=untuned, **changes)
    rows = tuple(trial(f"bank-{number}", number, value, 10, "Completed") for number, value in enumerate(values))
    return replace(made, job=replace(made.job, spec={**made.job.spec, "repeats": 2, "max_jobs": 4}), trials=rows)


REPEATED = (40, "120 rounds", "12.3 worker-seconds")
MEAN = ("validation:auc", "0.8000", "mean of 2 trials")


def test_the_verdict_on_a_job_with_repeats_has_the_error_of_the_mean() -> None:
    gain, error = "0.0500", "standard errors"
    cases: list[tuple[JobData, tuple[object, ...], tuple[object, ...]]] = [
        (repeated(0.71, 0.72, 0.79, 0.81), (*MEAN, "0.7500", gain, 5.0, error, *REPEATED), ()),
        (
            repeated(0.75, 0.85, 0.72, 0.90, untuned=None),
            ("2 configurations", "validation:auc", "0.8100 ± 0.0900", "mean of 2 trials", *REPEATED),
            (),
        ),
        (
            repeated(0.70, 0.90, 0.71, 0.72),
            (*MEAN, "2 configurations", "0.7500", "un-tuned", "standard error", "0.1000", *REPEATED),
            (gain,),
        ),
        (repeated(0.80, 0.80, 0.71, 0.72), (*MEAN, "0.7500", gain, *REPEATED), (error,)),  # Seeds that change nothing.
        (
            repeated(0.79, 0.81, 0.71, 0.72, status="InProgress", ended_at=None),
            (*MEAN, "4 trials", "0.8000 ± 0.0100", "0.7500", "un-tuned"),
            (),
        ),
        (
            repeated(0.79, 0.81, 0.71, 0.72, status="Failed", reason="no gang came up"),
            (*MEAN, "failed", "no gang came up", "2 configurations", "0.8000 ± 0.0100", "0.7500", "un-tuned"),
            (),
        ),
    ]
    assert not faults(cases)


def test_a_mean_is_compared_by_its_own_error() -> None:
    one, other = repeated(0.78, 0.82, 0.7, 0.7, name="one"), job(0.75, name="other")
    mentions(comparison([other, one]), "one", *MEAN, "other", "0.0500", 2.5, "standard errors")
    near = repeated(0.7, 0.9, 0.7, 0.7, name="near")
    said = mentions(comparison([near, other]), "near", "other", *MEAN, "0.7500", "standard error", "0.1000")
    assert missing_names(said, "0.0500")


@pytest.mark.parametrize(("status", "word"), [("InProgress", "running"), ("Stopping", "stop")])
def test_a_job_under_way_says_so_and_how_far_it_is(status: Any, word: str) -> None:
    data = job(status=status, ended_at=None)
    mentions(verdict(data), word, "2 trials", *OWN, "0.7500", "un-tuned")
    mentions(subtitle(data), status, "2023-11-14 22:14:20 UTC")
    mentions(subtitle(job()), "Completed", "2023-11-14 22:14:20 UTC")


def test_a_job_whose_driver_is_gone_has_failed() -> None:
    mentions(verdict(job(status="InProgress", ended_at=None, silent=61.0)), "failed", "driver", "61 s")


def test_a_job_without_a_trial_says_so() -> None:
    said = mentions(verdict(replace(job(), trials=())), "validation:auc")
    assert not re.search(r"\d", said), "no number of trials"
    assert said != verdict(job(None))


def test_the_better_of_two_jobs_is_named_with_what_both_took() -> None:
    one, other = job(0.8, name="one"), job(0.75, name="other")
    for jobs in ([one, other], [other, one]):
        said = mentions(comparison(jobs), "one", "validation:auc", "0.8000", "other", "0.0500", 5.0, *USED)
        assert said.count("12.3 worker-seconds") == 2
    assert comparison([one, other]) == comparison([other, one])


def test_jobs_that_noise_could_part_are_not_ranked() -> None:
    said = comparison([job(0.8, name="one"), job(0.795, name="other")])
    mentions(said, "one", "other", "validation:auc", "0.8000", "0.7950", "0.0100", *USED)
    assert missing_names(said, "0.0050"), "it tells no lead"


def test_jobs_that_cannot_be_ranked_are_not() -> None:
    said = mentions(comparison([job(), job(maximize=False)]), "validation:auc", "maximized", "minimized")
    assert missing_names(said, "0.8000")
    mentions(comparison([job(), job(None, name="other")]), "bank", "validation:auc", "0.8000")
    assert missing_names(comparison([job(None), job(None)]), "bank", "0.8000") == ["bank", "0.8000"]
