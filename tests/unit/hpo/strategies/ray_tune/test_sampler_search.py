"""A sampler of Optuna's is told what came of its trials in Optuna's own words."""

from __future__ import annotations

import pytest
from optuna.trial import TrialState

from hpo.strategies.ray_tune.sampler_search import SamplerSearch
from tests.support.hpo.strategies.ray_tune.sampler_search import (
    SPACE,
    result,
    search,  # noqa: F401  # A fixture.
)


def test_ends_are_complete_pruned_or_failed(search: SamplerSearch) -> None:
    for name in ("end", "stopped", "short", "failed", "lost"):
        assert search.suggest(name).keys() == SPACE.keys()
    for step in (1, 2, 1, 2, 3):
        search.on_trial_result("stopped", result(step, 0.1 * step))
    search.on_trial_complete("end", result(9, 0.9))
    search.on_trial_complete("stopped", result(3, 0.3))
    search.on_trial_complete("short", result(4, 0.4, num_round=4))
    search.on_trial_complete("failed", None, error=True)
    search.on_trial_complete("lost", None)
    told = [(trial.state, trial.value) for trial in search._study.trials]
    assert told == [
        (TrialState.COMPLETE, 0.9),
        (TrialState.PRUNED, pytest.approx(0.3)),
        (TrialState.COMPLETE, 0.4),
        (TrialState.FAIL, None),
        (TrialState.FAIL, None),
    ]
    assert search._study.trials[1].intermediate_values == pytest.approx({1: 0.1, 2: 0.2, 3: 0.3})
    assert search._study.direction.name == "MAXIMIZE"


def test_a_point_of_somebody_else_counts(search: SamplerSearch) -> None:
    search.add_evaluated_point({"eta": 0.5, "num_round": 3}, 0.7)
    assert search._study.best_params == {"eta": 0.5, "num_round": 3}
