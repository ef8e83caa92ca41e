"""Predictions: each trial from all others, as if its model had been fitted without it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hpo.report import JobData
from hpo.report.model.belief import Belief
from hpo.report.model.predictions import Prediction, agreement, predictions
from hpo.suggestions.process import Process
from tests.support.records import by_function, made_up


def believed(data: JobData) -> Belief:
    belief = Belief.of(data)
    assert belief is not None
    return belief


def function(noise: float, count: int = 40) -> JobData:
    random = np.random.default_rng(5)
    points = [dict(zip("abc", row, strict=True)) for row in random.random((count, 3))]
    return by_function(lambda x: -((x["a"] - 0.4) ** 2) + noise * float(random.standard_normal()), points)


def test_what_is_left_out_teaches_nothing() -> None:
    """Of each group, the prediction is that of a process with the same scales and without it."""
    random = np.random.default_rng(1)
    features = random.random((12, 2))
    targets = np.sin(4 * features[:, 0]) + 0.1 * random.standard_normal(12)
    groups = np.repeat(np.arange(6), 2)
    process = Process(features, targets)
    means, deviations = process.left_out(groups)
    kernel = process._regressor.kernel_
    for group in range(6):
        out, rest = groups == group, groups != group
        inverse = np.linalg.inv(kernel(features[rest]) + 1e-8 * np.eye(rest.sum()))
        cross = kernel(features[out], features[rest])
        variance = np.diag(kernel(features[out])) - np.einsum("ij,jk,ik->i", cross, inverse, cross)
        assert means[out] == pytest.approx(cross @ inverse @ targets[rest], abs=1e-5)
        assert deviations[out] == pytest.approx(np.sqrt(variance), abs=1e-4)


def test_an_order_is_foretold_where_there_is_one() -> None:
    told, chance = (predictions(believed(function(noise))) for noise in (0.0, 10.0))
    assert (agreement(told) or 0) > 0.9
    assert abs(agreement(chance) or 0) < 0.6
    assert np.mean([each.held for each in told]) > 0.6
    assert np.mean([each.held for each in chance]) > 0.6


def test_each_trial_is_foretold_at_its_last_rung() -> None:
    data = made_up(trials=30)
    told = {each.trial.trial_id: each for each in predictions(believed(data))}
    for trial in data.trials:
        if trial.status in ("Failed", "Diverged"):
            assert trial.trial_id not in told
        else:
            assert told[trial.trial_id].measured == data.objective(trial)
            assert told[trial.trial_id].ended == (trial.resource == data.max_resource)


def test_without_an_order_there_is_no_correlation() -> None:
    trial = made_up(trials=1).trials[0]
    same = [Prediction(trial=trial, measured=float(n), middle=0.5, low=0.0, high=1.0, ended=True) for n in range(5)]
    assert agreement(same) is None
    assert agreement(same[:2]) is None
    assert not math.isnan(agreement([*same, Prediction(**{**_fields(same[0]), "middle": 0.7})]) or 0)


def _fields(each: Prediction) -> dict[str, object]:
    return {name: getattr(each, name) for name in Prediction.__slots__}
