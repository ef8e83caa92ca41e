"""The best score against its cost, and its baseline."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hpo.record.store import JobRow, LedgerRow, ReportRow, TrialRow
from hpo.report.data import JobData
from hpo.report.pictures.baseline import LIKELY, baseline, full_scores
from hpo.report.pictures.progress import best_by_cost, best_compared, progress
from tests.support.records import made_up
from tests.support.refusals import mentions, missing_names


def by_hand(
    scores: list[list[float | None]], *, statuses: str = "", maximize: bool = True, value: str = "last"
) -> JobData:
    """Trials of one worker served one after the other, a second a unit, after one second of starting."""
    words = {"c": "Completed", "s": "Stopped", "f": "Failed", "d": "Diverged"}
    better = max if maximize else min
    trials, reports, ledger, now = [], {}, [entry("", "starting", 1.0, 1.0)], 1.0
    longest = max(len(curve) for curve in scores)
    for number, curve in enumerate(scores):
        now += len(curve)
        trial = f"t{number}"
        ledger.append(entry(trial, "training", float(len(curve)), now))
        finite = [score for score in curve if score is not None]
        status = words[(statuses or "c" * len(scores))[number]]
        lost = status in ("Failed", "Diverged")
        trials.append(
            TrialRow(
                job="job",
                trial_id=trial,
                number=number,
                status=status,
                resource=len(curve),
                objective=None if lost else curve[-1],
                best_objective=None if lost or not finite else better(finite),
                ended_at=now,
            )
        )
        reports[trial] = tuple(
            ReportRow(job="job", trial_id=trial, step=step, objective=score, at=now)
            for step, score in enumerate(curve, start=1)
        )
    spec = {
        "objective_metric_name": "score",
        "objective_type": "Maximize" if maximize else "Minimize",
        "objective_value": value,
    }
    job = JobRow(name="job", created_at=0.0, spec=spec, plan={"max_resource": longest, "brackets": []})
    return JobData(job=job, trials=tuple(trials), reports=reports, ledger=tuple(ledger))


def entry(trial: str, kind: str, seconds: float, at: float) -> LedgerRow:
    return LedgerRow(job="job", trial_id=trial, gang="g", kind=kind, worker_seconds=seconds, workers=1, at=at)


def points(data: JobData) -> list[tuple[float, float]]:
    found = progress(data)
    return [*zip(found.billed.tolist(), found.best.tolist(), strict=True)]


def test_the_best_is_followed_assignment_by_assignment():
    assert points(by_hand([[0.1, 0.5], [0.3, 0.2], [0.6, 0.7], [0.4, 0.1]])) == [(3, 0.5), (7, 0.7), (9, 0.7)]
    assert points(by_hand([[0.5], [0.3], [0.4]], maximize=False)) == [(2, 0.5), (3, 0.3), (4, 0.3)]


def test_what_the_job_compares_is_followed():
    assert points(by_hand([[0.9, 0.5], [0.6, 0.6]], value="last")) == [(3, 0.5), (5, 0.6)]
    assert points(by_hand([[0.9, 0.5], [0.6, 0.6]], value="best")) == [(3, 0.9), (5, 0.9)]


def test_a_trial_that_gets_worse_takes_the_best_down():
    data = by_hand([[0.9], [0.5]])
    later = ReportRow(job="job", trial_id="t0", step=2, objective=0.6, at=4.0)
    data = replace(
        data,
        reports={**data.reports, "t0": (*data.reports["t0"], later)},
        ledger=(*data.ledger, entry("t0", "training", 1.0, 4.0)),
        trials=(replace(data.trials[0], objective=0.6, resource=2), data.trials[1]),
    )
    assert points(data) == [(2, 0.9), (4, 0.6)]


def test_what_failed_or_diverged_is_no_best():
    assert points(by_hand([[0.5], [0.9], [0.7, None]], statuses="cfd"))[-1] == (5, 0.5)
    assert progress(by_hand([[None]], statuses="d")) is None


@given(st.integers(0, 30), st.booleans(), st.booleans())
def test_it_ends_at_all_that_was_billed_and_at_the_best(seed, maximize, halving):
    data = made_up(trials=12, resource=9, seed=seed, maximize=maximize, halving=halving)
    found = progress(data)
    assert found.billed[-1] == pytest.approx(sum(data.billed.values()))
    assert found.best[-1] == data.objective(data.best)
    assert found.best[-2] == found.best[-1]
    assert (np.diff(found.billed) >= 0).all()


@given(st.lists(st.integers(0, 6), min_size=2, max_size=6), st.booleans())
def test_the_baseline_is_the_mean_over_all_orders(scores, maximize):
    data = by_hand([[score / 10] for score in scores], maximize=maximize)
    better, random = (max if maximize else min), baseline(data)
    best = np.array([[better(order[:k]) for k in range(1, len(order) + 1)] for order in itertools.permutations(scores)])
    assert random.expected == pytest.approx(best.mean(axis=0) / 10)
    for drawn, part in zip(best.T, [random.low, random.high], strict=False):
        assert set(np.round(10 * part).astype(int)) <= set(scores), drawn
    low, high = (np.quantile(best, part, axis=0, method="inverted_cdf") / 10 for part in LIKELY)
    assert np.all(random.low <= random.high)
    if maximize:
        assert (random.low, random.high) == (pytest.approx(low), pytest.approx(high))
    # Starting, and a second a trial
    assert random.billed.tolist() == [1.0 + k for k in range(1, len(scores) + 1)]


def test_a_stopped_trial_gains_what_those_that_went_on_did():
    curves = [[0.1, 0.2, 0.5], [0.2, 0.3, 0.5], [0.3, 0.5, 0.8], [0.0], [0.25, 0.3], [0.7], [0.9]]
    scores = full_scores(by_hand(curves, statuses="cccsssf"))
    assert scores == pytest.approx(
        {
            "t0": 0.5,
            "t1": 0.5,
            "t2": 0.8,
            "t3": 0.4,  # 0.0 and the median of 0.4, 0.3, 0.5
            "t4": 0.6,  # 0.3 and the median of 0.3, 0.2, 0.3
            "t5": 0.8,  # 1.1, but no better than the best
            "t6": 0.4,  # failed: the worst
        }
    )


def test_the_gain_is_of_what_is_compared():
    curves = [[0.4, 0.1, 0.5], [0.3, 0.2]]
    assert full_scores(by_hand(curves, statuses="cs", value="last"))["t1"] == pytest.approx(0.5)  # capped
    assert full_scores(by_hand(curves, statuses="cs", value="best"))["t1"] == pytest.approx(0.3 + 0.5 - 0.4)


def test_the_baseline_ends_at_the_best_score():
    data = made_up(trials=200, resource=81)
    random, scores = baseline(data), full_scores(data)
    assert random.expected[-1] == pytest.approx(data.objective(data.best))
    assert random.low[-1] == random.high[-1] == data.objective(data.best)
    assert (np.diff(random.expected) >= -1e-12).all()
    assert len(scores) == 200
    assert random.expected[0] == pytest.approx(np.mean([*scores.values()]))


def test_both_forms_show_job_and_baseline():
    data = made_up()
    figure = best_by_cost(data)
    names = [trace.name for trace in figure.interactive.data if trace.showlegend is not False]
    simulated, own = names
    mentions(simulated, "random", "simulated")
    mentions(own, "job")
    assert figure.interactive.data[-1].x[-1] == pytest.approx(sum(data.billed.values()), rel=1e-6)
    untuned = mentions(figure.interactive.layout.shapes[0].label.text, "un-tuned", "0.7706")
    (axes,) = figure.still().axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [*names[::-1], untuned]
    mentions(figure.title, "validation:auc", "0.7842", "394 worker-seconds", 204)
    mentions(figure.note, "simulated", 9)


def test_jobs_are_compared_by_one_objective():
    jobs = [made_up(), made_up(name="other", seed=2)]
    figure = best_compared(jobs)
    assert [trace.name for trace in figure.interactive.data] == ["made-up", "other"]
    mentions(figure.title, "made-up", "validation:auc", "0.7842", "394 worker-seconds")
    assert missing_names(figure.title, "other")
    dear = replace(
        jobs[0],
        job=replace(jobs[0].job, name="dear"),
        ledger=tuple(replace(entry, worker_seconds=2 * entry.worker_seconds, workers=6) for entry in jobs[0].ledger),
    )
    told = best_compared([dear, jobs[0]]).title
    mentions(told, "made-up", "validation:auc", "0.7842", "394 worker-seconds", "dear")
    assert best_compared([jobs[0], made_up(maximize=False)]) is None
    assert best_compared([]) is None
    figure.still()
