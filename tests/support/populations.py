"""Populations whose trials take others' checkpoints on their way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ray import tune
from ray.tune.schedulers import PopulationBasedTraining

from hpo.strategies.random_strategy import at_random
from hpo.strategies.strategy import Prepared, Task

INTERVAL = 3


def pbt(**options: Any) -> PopulationBasedTraining:
    """Ray Tune's, synchronous, and of eta alone."""
    return PopulationBasedTraining(
        **{
            "time_attr": "training_iteration",
            "perturbation_interval": INTERVAL,
            "hyperparam_mutations": {"eta": tune.uniform(0, 1)},
            "synch": True,
            **options,
        }
    )


def populated(task: Task) -> Prepared:
    """Random configurations, of which a population begins; it looks at its members twice as often."""
    return replace(at_random(task), scheduler=pbt(perturbation_interval=2))
