"""The picture of learning curves, from a job laid out by hand and from made-up ones."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hpo.record.store import JobRow, ReportRow, TrialRow
from hpo.report.data import JobData
from hpo.report.pictures.curves import curves, headline, learning_curves, thinned
from hpo.strategies.hyperband import lay_out
from tests.support.records import made_up
from tests.support.refusals import mentions, missing_names

LENGTHS = {"untuned": 9, "t0": 9, "t1": 1, "t2": 1, "t3": 3}
TRIALS = [
    TrialRow(
        job="by-hand",
        trial_id=trial,
        number=number,
        status="Completed" if length == 9 else "Stopped",
        bracket=0 if number >= 0 else None,
        resource=length,
        objective=0.5 + 0.01 * length,
    )
    for number, (trial, length) in enumerate(LENGTHS.items(), start=-1)
]
DATA = JobData(
    job=JobRow(
        name="by-hand",
        created_at=1.0,
        spec={
            "objective_metric_name": "validation:auc",
            "objective_type": "Maximize",
            "objective_value": "last",
            "estimator": {"trainer": "XGBoostTrainer"},
        },
        plan=lay_out(4, 1, 9).to_json(),
    ),
    trials=tuple(TRIALS[1:]),
    untuned=TRIALS[0],
    reports={
        trial: tuple(
            ReportRow(job="by-hand", trial_id=trial, step=step, objective=0.5 + 0.01 * step, at=1.0)
            for step in range(1, length + 1)
        )
        for trial, length in LENGTHS.items()
    },
)


def legend(still) -> list[str]:
    return [text.get_text() for text in still.legends[0].get_texts()]


def test_every_trial_is_a_line_that_ends_where_it_was_stopped():
    still = learning_curves(DATA).still()
    (axes,) = still.axes
    assert sorted(line.get_xdata()[-1] for line in axes.lines) == sorted(LENGTHS.values())
    assert axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "3", "9"]
    best, untuned, one, three, nine, stopped, _ = legend(still)
    mentions(best, "trial 0", "0.5900")
    mentions(untuned, "un-tuned", "0.5900")
    mentions(one, 2, "1 round")
    mentions(three, 1, "3 rounds")
    mentions(nine, 1, "9 rounds")
    mentions(stopped, "stopped")
    mentions(headline(DATA), 4, 14, 36, "39%")


def test_the_interactive_form_holds_the_same_points():
    data = made_up()
    figure = learning_curves(data).interactive
    lines = [trace for trace in figure.data if trace.mode == "lines" and not trace.name.startswith("un-tuned")]
    drawn = {
        (int(trial), int(step)): value
        for trace in lines
        for trial, step, value in zip(trace.customdata, trace.x, trace.y, strict=True)
        if math.isfinite(value)
    }
    reported = {
        (trial.number, report.step): report.objective
        for trial in data.trials
        for report in data.reports.get(trial.trial_id, ())
        if report.objective is not None
    }
    assert drawn.keys() == reported.keys()
    assert np.allclose([drawn[key] for key in reported], [*reported.values()], atol=1e-6)
    assert figure.data[-2].name == figure.data[-1].name
    mentions(figure.data[-1].name, f"trial {data.best.number}", "0.7842")
    # A trace a rung and one for its ends, however many trials there are.
    assert len(figure.data) == 2 * 4 + 1 + 2


@given(st.integers(1, 400), st.integers(12, 60), st.booleans())
def test_a_long_curve_keeps_its_ends_and_rungs(number, most, logarithmic):
    (line, *_) = curves(DATA)
    steps = np.arange(1, number + 1)
    long, rungs = replace(line, steps=steps, values=steps / number), [1, 3, 9, 27, 81, 243] if logarithmic else []
    thin = thinned(long, rungs, most)
    assert len(thin.steps) <= min(number, most + len(rungs))
    assert {1, number, *(rung for rung in rungs if rung <= number)} <= set(thin.steps)
    assert np.array_equal(thin.values, thin.steps / number)
    assert number > most or thin is long


def test_lines_of_two_trials_are_not_joined():
    figure = learning_curves(DATA).interactive
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    (pair,) = [trace for trace in lines if not missing_names(trace.name or "", 2, "1 round")]
    assert np.isnan(pair.y).tolist() == [False, True, False, True]
    assert not pair.connectgaps


def test_ends_say_how_a_trial_ended():
    data = made_up()
    symbols = [symbol for trace in learning_curves(data).interactive.data for symbol in trace.marker.symbol or ()]
    statuses = [trial.status for trial in data.trials if trial.trial_id in data.reports]
    assert symbols.count("circle") == statuses.count("Completed")
    assert symbols.count("circle-open") == statuses.count("Stopped")
    assert symbols.count("x") == statuses.count("Diverged") + statuses.count("Failed")
    assert {line.end for line in curves(made_up(ended=False))} == {"went", "stopped", "lost"}


def test_a_job_that_has_just_begun_has_no_curves():
    assert learning_curves(replace(DATA, reports={})) is None
    only = learning_curves(replace(DATA, reports={"untuned": DATA.reports["untuned"]}))
    (untuned,) = only.interactive.data
    mentions(untuned.name, "un-tuned", "0.5900")


def test_one_rung_needs_no_logarithmic_axis():
    plan = {"max_resource": 9, "brackets": [{"rungs": [9], "sizes": [4]}]}
    (axes,) = learning_curves(replace(DATA, job=replace(DATA.job, plan=plan))).still().axes
    assert axes.get_xscale() == "linear"


@pytest.mark.parametrize("far", [1e6, -1e9])
def test_a_score_far_off_does_not_flatten_all_others(far):
    data = made_up()
    trial = data.trials[1].trial_id
    bad = (replace(data.reports[trial][0], objective=far), *data.reports[trial][1:])
    figure = learning_curves(replace(data, reports={**data.reports, trial: bad}))
    low, high = figure.interactive.layout.yaxis.range
    assert 0.3 < low < high < 1
    mentions(figure.note, "1 report")
    assert learning_curves(data).interactive.layout.yaxis.range is None
