"""What is known of Ray Tune's schedulers from their private attributes: it fails where ray changes them."""

from __future__ import annotations

from typing import Any

import pytest
from ray.tune.experiment import Trial
from ray.tune.schedulers import (
    AsyncHyperBandScheduler,
    FIFOScheduler,
    HyperBandForBOHB,
    HyperBandScheduler,
    MedianStoppingRule,
    ResourceChangingScheduler,
)

from hpo.strategies.ray_tune import known
from hpo.strategies.ray_tune.strategy import RayTuneStrategy
from hpo.strategies.scheduler import RESOURCE
from tests.support.refusals import refuses
from tests.support.simulated import METRIC
from trainers.errors import ConfigurationError

COUNTED: dict[str, Any] = {"time_attr": RESOURCE, "metric": METRIC, "mode": "max"}


@pytest.mark.parametrize("kind", [HyperBandScheduler, HyperBandForBOHB])
def test_a_bracket_says_how_far_its_trials_go(kind: type[HyperBandScheduler]) -> None:
    scheduler = kind(max_t=27, **COUNTED)
    trial = Trial("warmband", stub=True)
    scheduler.on_trial_add(None, trial)
    first = 27 if kind is HyperBandScheduler else 1
    assert known.milestones(scheduler, 27)(trial, 0) == first
    assert known.pauses(scheduler)
    assert (known.holds(scheduler, 26), known.holds(scheduler, 27)) == (False, True)


@pytest.mark.parametrize("kind", [AsyncHyperBandScheduler, HyperBandScheduler, HyperBandForBOHB, MedianStoppingRule])
def test_it_is_known_what_they_count_and_which_end_is_the_better_one(kind: Any) -> None:
    scheduler = kind(time_attr="epoch", metric="loss", mode="min")
    assert (known.counts(scheduler), known.mode(scheduler), scheduler.metric) == ("epoch", "min", "loss")
    assert known.mode(kind()) is None


def test_one_of_a_users_own_decides_at_every_unit_and_counts_as_it_likes() -> None:
    own = type("Own", (FIFOScheduler,), {})()
    assert known.milestones(own, 27)(Trial("warmband", stub=True), 4) == 5
    assert (known.counts(own), known.mode(own), known.pauses(own)) == (None, None, False)


@pytest.mark.parametrize(
    ("scheduler", "stops_only"),
    [
        (AsyncHyperBandScheduler, True),
        ("ray.tune.schedulers:ASHAScheduler", True),
        (AsyncHyperBandScheduler(), True),
        (FIFOScheduler(), True),
        ((MedianStoppingRule, {"grace_period": 2}), True),
        ((MedianStoppingRule, {"hard_stop": False}), False),
        (MedianStoppingRule(), True),
        (MedianStoppingRule(hard_stop=False), False),
        (HyperBandScheduler, False),
        ("mine:ASHAScheduler", False),
        (type("ASHAScheduler", (AsyncHyperBandScheduler,), {})(), False),
    ],
)
def test_it_is_known_which_of_them_only_stop(scheduler: Any, stops_only: bool) -> None:
    assert RayTuneStrategy(scheduler=scheduler).stops_only == stops_only
    assert not RayTuneStrategy(searcher="optuna.samplers:RandomSampler").stops_only


def test_a_scheduler_that_does_more_is_refused() -> None:
    scheduler = ResourceChangingScheduler()
    with refuses(ConfigurationError, field=("scheduler", "ResourceChangingScheduler"), value="workers", remedy="gang"):
        known.check_served(scheduler)
