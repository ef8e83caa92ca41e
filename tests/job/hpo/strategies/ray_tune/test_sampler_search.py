"""A sampler of Optuna's is told what came of its trials in Optuna's own words."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from optuna.distributions import IntDistribution
from optuna.samplers import BaseSampler, BruteForceSampler, GridSampler
from ray.tune.search import Searcher

from hpo.strategies.ray_tune.sampler_search import SamplerSearch
from tests.support.hpo.strategies.ray_tune.sampler_search import result


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("made", [partial(GridSampler, {"num_round": [1, 2, 3]}), BruteForceSampler])
def test_a_sampler_that_has_tried_all_is_finished(made: Callable[..., BaseSampler]) -> None:
    """Such a sampler asks the study to stop, which Optuna refuses outside of its own loop."""
    search = SamplerSearch(
        made(seed=1),
        {"num_round": IntDistribution(1, 3)},
        metric="auc",
        mode="max",
        longest=9,
        length=lambda config: None,
    )
    tried: list[int] = []
    while (suggested := search.suggest(name := f"trial {len(tried)}")) != Searcher.FINISHED:
        tried.append(suggested["num_round"])
        search.on_trial_complete(name, result(9, 0.1))
    assert sorted(tried) == [1, 2, 3]
