"""What a ScalingConfig has to be, and `num_workers` among the hyperparameters, which goes before it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ray.train import ScalingConfig

from trainers.errors import ConfigurationError

WORKERS = "num_workers"
"""The hyperparameter that gives a configuration a gang of its own size, where the trainer has gangs of several."""

_PLACEMENTS = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")


def check_workers(hyperparameters: Mapping[str, Any]) -> None:
    """Refuses a `num_workers` among the hyperparameters that is no number of workers.

    Raises:
        ConfigurationError: naming it.
    """
    workers = hyperparameters.get(WORKERS)
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise ConfigurationError(f"hyperparameter {WORKERS!r} is {workers!r}; give a whole number, 1 or more")


def check_alone(hyperparameters: Mapping[str, Any]) -> None:
    """Refuses more than one worker for a configuration that is trained in hand.

    Raises:
        ConfigurationError: naming the number.
    """
    if hyperparameters.get(WORKERS) not in (None, 1):
        raise ConfigurationError(
            f"hyperparameter {WORKERS!r} is {hyperparameters[WORKERS]!r}, and ScalingConfig(num_workers=0) trains "
            "in this process, on one worker; leave it out, or give a num_workers of 1 or more to scaling"
        )


def check_scaling(scaling: ScalingConfig, *, elastic: bool) -> None:
    """Refuses what is no ScalingConfig, or has no number of workers.

    Args:
        scaling: what was given.
        elastic: whether a range of them will do.

    Raises:
        ConfigurationError: naming it.
    """
    if not isinstance(scaling, ScalingConfig):
        raise ConfigurationError(f"scaling is {scaling!r}; give a ray.train.ScalingConfig")
    given: Any = scaling.num_workers
    match given:
        case bool():
            pass
        case int():
            return
        case (int(least), int(most)) if 1 <= least <= most:
            if elastic:
                return
            raise ConfigurationError(
                f"ScalingConfig(num_workers={given!r}): only TorchTrainer, and XGBoostTrainer with backend='native', "
                "train on as many workers as there is room for; give one number"
            )
    raise ConfigurationError(
        f"ScalingConfig(num_workers={given!r}) does not make a gang; give a whole number, 1 or more, or 0 to train in "
        "this process, or (least, most) for a gang that goes on with fewer"
    )


def range_of(scaling: ScalingConfig) -> tuple[int, int]:
    """The fewest and the most workers that a gang may have; the same number twice where it is one."""
    given: Any = scaling.num_workers
    return (given, given) if isinstance(given, int) else (int(given[0]), int(given[1]))


def check_resources(scaling: ScalingConfig) -> None:
    """Refuses resources and a placement that Ray would refuse later, or take for something else.

    Raises:
        ConfigurationError: naming the field and its value.
    """
    given: Any = scaling.resources_per_worker
    if not isinstance(given, Mapping | None):
        raise ConfigurationError(f"ScalingConfig(resources_per_worker={given!r}): give a dict, such as {{'CPU': 2}}")
    for name, amount in (given or {}).items():
        number = isinstance(amount, int | float) and not isinstance(amount, bool)
        if not isinstance(name, str) or not number or not 0 <= amount < math.inf:
            raise ConfigurationError(
                f"ScalingConfig(resources_per_worker={given!r}): {name!r} is {amount!r}; give a number, 0 or more"
            )
    if not isinstance(scaling.use_gpu, bool):
        raise ConfigurationError(f"ScalingConfig(use_gpu={scaling.use_gpu!r}): give True or False")
    if scaling.placement_strategy not in _PLACEMENTS:
        raise ConfigurationError(
            f"ScalingConfig(placement_strategy={scaling.placement_strategy!r}): give one of {', '.join(_PLACEMENTS)}"
        )
