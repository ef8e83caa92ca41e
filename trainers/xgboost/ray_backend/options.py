"""Checks of `backend` and `ray_params` of `XGBoostTrainer`, before anything starts."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

from ray.train import ScalingConfig

from trainers.checking import check_whole, did_you_mean
from trainers.errors import ConfigurationError
from trainers.gangs import resources_per_worker

BACKENDS = ("native", "xgboost_ray")

FIELDS: dict[str, int | None] = {
    "elastic_training": None,
    "max_failed_actors": 0,
    "max_actor_restarts": -1,
    "checkpoint_frequency": 1,
}
"""Fields of xgboost_ray's `RayParams` that `ray_params` may set: True or False, or a whole number from this on."""


def check_backend(backend: str, ray_params: Mapping[str, Any], scaling: ScalingConfig | None) -> None:
    """Refuses a backend that is unknown or not installed, and options that do not fit it.

    Raises:
        ConfigurationError: names the value and what would be right.
    """
    if backend not in BACKENDS:
        raise ConfigurationError(
            f"backend is {backend!r}; give one of {', '.join(BACKENDS)}{did_you_mean(backend, BACKENDS, cutoff=0.3)}"
        )
    if backend == "native":
        if ray_params:
            raise ConfigurationError(
                f"ray_params {dict(ray_params)} are for backend='xgboost_ray'; leave them out: native gangs always "
                "replace the workers they lose"
            )
        return
    if importlib.util.find_spec("xgboost_ray") is None:
        raise ConfigurationError(
            "backend 'xgboost_ray' needs the package xgboost_ray; pip install 'xgboost_ray==0.1.19', or use 'native'"
        )
    if isinstance(scaling, ScalingConfig):
        _check_scaling(scaling)
    _check_fields(ray_params)
    _check_elastic(ray_params, scaling.num_workers if isinstance(scaling, ScalingConfig) else 1)


def _check_scaling(scaling: ScalingConfig) -> None:
    if scaling.num_workers == 0:
        raise ConfigurationError(
            "ScalingConfig(num_workers=0) trains in this process, and xgboost_ray trains in Ray actors only; "
            "use num_workers=1 or more, or backend='native'"
        )
    cpus = resources_per_worker(scaling).get("CPU", 0.0)
    if cpus < 1 or cpus != int(cpus):
        raise ConfigurationError(
            f"ScalingConfig gives a worker {cpus:g} CPUs, and xgboost_ray needs a whole number, 1 or more; "
            'give resources_per_worker={"CPU": 1} and what else a worker needs'
        )


def _check_fields(ray_params: Mapping[str, Any]) -> None:
    for name, value in ray_params.items():
        if name not in FIELDS:
            raise ConfigurationError(
                f"ray_params has no {name!r}; give {', '.join(FIELDS)}{did_you_mean(name, FIELDS, cutoff=0.3)}"
            )
        least = FIELDS[name]
        if least is None:
            if not isinstance(value, bool):
                raise ConfigurationError(f"ray_params: {name} is {value!r}; give True or False")
        else:
            check_whole(f"ray_params: {name}", value, least, required=True)


def _check_elastic(ray_params: Mapping[str, Any], workers: Any) -> None:
    failed, restarts = ray_params.get("max_failed_actors", 0), ray_params.get("max_actor_restarts", 0)
    if not ray_params.get("elastic_training"):
        if failed:
            raise ConfigurationError(
                f"ray_params: max_failed_actors is {failed}, which elastic_training=True alone heeds; "
                "give both or neither"
            )
        return
    if not failed or not restarts:
        raise ConfigurationError(
            f"ray_params: elastic_training with max_failed_actors {failed} and max_actor_restarts {restarts} ends "
            "with the first actor that dies; give 1 or more of each"
        )
    if isinstance(workers, int) and failed >= workers:
        raise ConfigurationError(
            f"ray_params: max_failed_actors is {failed} of {workers} workers, which leaves none; "
            "give fewer, or more num_workers"
        )
