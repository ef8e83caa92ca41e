"""What the model of a job learns, and how its scores come back to values."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from hpo.report import JobData
from hpo.report.model import model_figures
from hpo.report.model.belief import FEWEST, Belief
from hpo.strategies import EARLIER
from tests.support.hpo.report.model.belief import MIXED, drawn, mixed
from tests.support.records import by_function, made_up


def believed(data: JobData) -> Belief:
    belief = Belief.of(data)
    assert belief is not None
    return belief


def test_it_reads_rungs_and_ends_and_the_worst_of_those_that_were_lost() -> None:
    data = made_up()
    belief = believed(data)
    rungs = set(data.rungs)
    for trial in data.trials:
        seen = {
            each.resource: each.value
            for mine, each in zip(belief.trials, belief.observations, strict=True)
            if mine == trial
        }
        if trial.status in ("Failed", "Diverged"):
            assert math.isnan(seen[max(1, trial.resource)])
        else:
            assert seen[trial.resource] == data.objective(trial)
            assert set(seen) == {rung for rung in rungs if rung <= trial.resource}


def test_where_the_best_value_counts_it_is_what_is_learned() -> None:
    data = made_up()
    by_best = replace(data, job=replace(data.job, spec={**data.job.spec, "objective_value": "best"}))
    belief = believed(by_best)
    for trial, seen in zip(belief.trials, belief.observations, strict=True):
        if math.isfinite(seen.value):
            values = [row.objective for row in data.reports[trial.trial_id] if row.step <= seen.resource]
            assert seen.value == max(value for value in values if value is not None)


@pytest.mark.parametrize("maximize", [True, False])
def test_values_lie_within_their_intervals_and_within_what_was_seen(maximize: bool) -> None:
    data = mixed(30, maximize=maximize)
    belief = believed(data)
    expected = belief.expected(drawn(200))
    assert (expected.low <= expected.middle).all()
    assert (expected.middle <= expected.high).all()
    seen = [each.value for each in belief.observations]
    assert expected.low.min() >= min(seen)
    assert expected.high.max() <= max(seen)
    at_trials = belief.expected([trial.hyperparameters for trial in data.trials])
    assert np.corrcoef(at_trials.middle, seen)[0, 1] > 0.9


def test_earlier_jobs_teach_it_the_order_and_not_their_level() -> None:
    data = mixed(12)
    earlier = [{"hyperparameters": h, "resource": 1, "value": 1e6 * h["rate"], "job": "before"} for h in drawn(20)]
    belief = believed(replace(data, job=replace(data.job, spec={**data.job.spec, EARLIER: earlier})))
    assert len(belief.observations) == 12 + 20
    assert belief.expected(drawn(50)).high.max() < 10


def test_too_little_has_no_model() -> None:
    assert Belief.of(mixed(FEWEST - 1)) is None
    assert Belief.of(by_function(lambda _: 0.5, drawn(20), MIXED)) is None
    assert Belief.of(by_function(lambda _: math.nan, drawn(20), MIXED)) is None
    assert Belief.of(by_function(lambda _: math.nan, drawn(1) * 20, MIXED)) is None
    assert Belief.of(by_function(lambda x: x["same"], drawn(20), {"same": MIXED["same"]})) is None
    assert model_figures(mixed(FEWEST - 1)) == []


def test_trials_that_do_not_belong_to_the_ranges_are_left_out() -> None:
    data = mixed(12)
    odd = replace(data.trials[0], hyperparameters={**data.trials[0].hyperparameters, "kind": "of another job"})
    less = replace(data.trials[1], hyperparameters={"rate": 0.1})
    belief = believed(replace(data, trials=(odd, less, *data.trials[2:])))
    assert len(belief.observations) == 10


def test_repeats_of_a_configuration_are_left_out_together() -> None:
    points = [*drawn(10), *drawn(10)]
    belief = believed(by_function(lambda x: x["rate"], points, MIXED))
    assert belief.groups[:10].tolist() == belief.groups[10:].tolist() == list(range(10))
