"""Checks of what is trained in external memory, before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ray.train import ScalingConfig

from trainers.channels import QID, WEIGHT, Channel
from trainers.errors import ConfigurationError
from trainers.xgboost.booster import CPU, device_of


def check_external(external_memory: Any, backend: str, scaling: ScalingConfig | None) -> None:
    """Refuses external memory where nothing reads rows from it.

    Args:
        external_memory: whether features are on disk.
        backend: of the trainer.
        scaling: of its workers.

    Raises:
        ConfigurationError: naming what does not go with it.
    """
    if not isinstance(external_memory, bool):
        raise ConfigurationError(f"external_memory={external_memory!r}: give True or False")
    if external_memory and backend != "native":
        raise ConfigurationError(
            f"external_memory is for backend 'native', and {backend!r} holds all rows in memory; leave one of them out"
        )
    if external_memory and scaling is not None and scaling.use_gpu:
        raise ConfigurationError(
            "external_memory is for CPUs, and ScalingConfig(use_gpu=True) holds GPUs; leave one of them out"
        )


def check_on_disk(hyperparameters: Mapping[str, Any]) -> None:
    """Refuses hyperparameters that take all rows in memory.

    Raises:
        ConfigurationError: naming the hyperparameter.
    """
    method, booster = hyperparameters.get("tree_method"), hyperparameters.get("booster")
    if method == "exact":
        raise ConfigurationError(
            "tree_method 'exact' sorts all rows in memory, and external_memory holds none there; use 'hist'"
        )
    if booster == "gblinear":
        raise ConfigurationError(
            "booster 'gblinear' goes through all rows in memory by column, and external_memory holds none there; use "
            "'gbtree', or leave external_memory out"
        )
    if (device := device_of(hyperparameters, use_gpu=False)) != CPU:
        raise ConfigurationError(
            f"hyperparameter 'device' is {device!r}, and external_memory is for CPUs; leave one of them out"
        )


def check_channel(name: str, channel: Channel) -> None:
    """Refuses rows of which XGBoost 3.2 makes other bins a block at a time.

    Raises:
        ConfigurationError: naming the channel.
    """
    if QID in channel.said and WEIGHT in channel.said:
        raise ConfigurationError(
            f"channel {name!r} has weights of queries, with which XGBoost makes other bins of blocks than of all rows; "
            "leave weight out, or external_memory"
        )
