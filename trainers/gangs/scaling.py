"""Checks of a ScalingConfig, and of `num_workers` among the hyperparameters, which overrides it."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ray.train import ScalingConfig

from trainers.checking import check_whole, is_number, is_whole, shown
from trainers.errors import ConfigurationError
from trainers.gangs.messages import AUTO, WORKERS
from trainers.plain import plain_scalar


def _is_ours(record: logging.LogRecord) -> bool:
    """Ray Train announces for num_workers=0 that it will run in this process: here it does not run at all."""
    return not record.getMessage().startswith("Running in local mode.")


# The logger of the module that says it, which is not the one that the class is imported from.
logging.getLogger(ScalingConfig.__post_init__.__module__).addFilter(_is_ours)

_ALWAYS = ("num_workers", "use_gpu", "resources_per_worker", "placement_strategy")
_IF_GIVEN = ("accelerator_type", "label_selector", "elastic_resize_monitor_interval_s")
# As Ray has labels, their names and their values, from Kubernetes.
_LABEL = r"[a-zA-Z0-9]([a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?"
_DOMAIN = r"[a-zA-Z0-9]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9])?"
_KEY = re.compile(rf"((?=[^/]{{1,253}}/){_DOMAIN}(\.{_DOMAIN})*/)?{_LABEL}")
_CONDITION = re.compile(rf"!?({_LABEL}|in\({_LABEL}(, ?{_LABEL})*\))")
_PLACEMENTS = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")


def check_workers(hyperparameters: Mapping[str, Any]) -> None:
    """Refuses a `num_workers` among the hyperparameters that is no number of workers.

    Raises:
        ConfigurationError: naming it.
    """
    if hyperparameters.get(WORKERS) != AUTO:
        check_whole(f"hyperparameter {WORKERS!r}", hyperparameters.get(WORKERS), 1)


def workers_of(hyperparameters: Mapping[str, Any]) -> int | None:
    """The number of workers that a configuration says itself; None where it says none, or a probe is to choose."""
    value = hyperparameters.get(WORKERS)
    return None if value in (None, AUTO) else int(value)


def check_chosen(hyperparameters: Mapping[str, Any]) -> None:
    """Refuses a training whose workers are still to be chosen.

    Raises:
        ConfigurationError: they are.
    """
    if hyperparameters.get(WORKERS) == AUTO:
        raise ConfigurationError(
            f"hyperparameter {WORKERS!r} is {AUTO!r}, which a tuner's probe chooses; give fit() a number"
        )


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
    workers: Any = scaling.num_workers
    match workers:
        case bool():
            pass
        case int() if is_whole(workers):
            return
        case (int(least), int(most)) if is_whole(most, least) and least >= 1:
            if elastic:
                return
            raise ConfigurationError(
                f"ScalingConfig(num_workers={workers!r}): only TorchTrainer, and XGBoostTrainer with backend='native', "
                "train on as many workers as there is room for; give one number"
            )
    raise ConfigurationError(
        f"ScalingConfig(num_workers={shown(workers)}) does not make a gang; give a whole number, 1 or more, or 0 to "
        "train in this process, or (least, most) for a gang that goes on with fewer"
    )


def plain_scaling(scaling: ScalingConfig) -> ScalingConfig:
    """Return a ScalingConfig whose numbers are Python's own; the same one where they are."""
    workers: Any = scaling.num_workers
    resources: Any = scaling.resources_per_worker
    several, named = isinstance(workers, tuple), isinstance(resources, Mapping)
    numbers = [*(workers if several else [workers]), *(resources.values() if named else ()), scaling.use_gpu]
    if all(plain_scalar(number) is number for number in numbers):
        return scaling
    changes: dict[str, Any] = {
        "num_workers": tuple(map(plain_scalar, workers)) if several else plain_scalar(workers),
        "use_gpu": plain_scalar(scaling.use_gpu),
        "resources_per_worker": {name: plain_scalar(amount) for name, amount in resources.items()}
        if named
        else resources,
    }
    return replace(scaling, **changes)


def recorded_scaling(scaling: ScalingConfig) -> dict[str, Any]:
    """All that a ScalingConfig says, for the record."""
    names = [name for name in _IF_GIVEN if getattr(scaling, name) != getattr(ScalingConfig, name)]
    return {name: getattr(scaling, name) for name in (*_ALWAYS, *names)}


def scaling_from(state: Mapping[str, Any]) -> ScalingConfig:
    """The ScalingConfig that `recorded_scaling` gave.

    Raises:
        TypeError, ValueError: it is no such record.
    """
    workers = state.get("num_workers")
    # JSON's form of a range is a list.
    return ScalingConfig(**{**state, "num_workers": tuple(workers)} if isinstance(workers, list) else state)


def labels_of(scaling: ScalingConfig) -> Mapping[str, str] | None:
    """The labels of the nodes that its workers may be on, as Ray's label selector; None is all."""
    settings: Any = scaling  # Its annotations are those of Train's first version.
    selector: Mapping[str, str] | None = settings.label_selector
    return selector


def range_of(scaling: ScalingConfig) -> tuple[int, int]:
    """The fewest and the most workers that a gang may have; the same number twice where it is one."""
    workers: Any = scaling.num_workers
    return (workers, workers) if isinstance(workers, int) else (int(workers[0]), int(workers[1]))


def resources_per_worker(scaling: ScalingConfig) -> dict[str, float]:
    """The resources of one worker, as Ray Train fills them in: by default one CPU, or one GPU with `use_gpu`."""
    resources: Any = scaling.resources_per_worker
    if resources is None:
        resources = {"GPU": 1.0} if scaling.use_gpu else {"CPU": 1.0}
    # By a little of a resource that nodes with such an accelerator have, Ray puts a worker on one of them.
    kind = {f"accelerator_type:{scaling.accelerator_type}": 0.001} if scaling.accelerator_type else {}
    named = {name: float(amount) for name, amount in resources.items() if amount}
    return {**({"GPU": 1.0} if scaling.use_gpu else {}), **kind, **named}


def check_resources(scaling: ScalingConfig) -> None:
    """Refuses resources and a placement that Ray would refuse later, or take for something else.

    Raises:
        ConfigurationError: naming the field and its value.
    """
    resources: Any = scaling.resources_per_worker
    if not isinstance(resources, Mapping | None):
        raise ConfigurationError(
            f"ScalingConfig(resources_per_worker={resources!r}): give a dict, such as {{'CPU': 2}}"
        )
    for name, amount in (resources or {}).items():
        if not isinstance(name, str) or not is_number(amount) or amount < 0:
            raise ConfigurationError(
                f"ScalingConfig(resources_per_worker={shown(resources)}): {name!r} is {shown(amount)}; give a number, "
                "0 or more"
            )
    if not isinstance(scaling.use_gpu, bool):
        raise ConfigurationError(f"ScalingConfig(use_gpu={scaling.use_gpu!r}): give True or False")
    _check_nodes(scaling)
    if scaling.placement_strategy not in _PLACEMENTS:
        raise ConfigurationError(
            f"ScalingConfig(placement_strategy={scaling.placement_strategy!r}): give one of {', '.join(_PLACEMENTS)}"
        )


def check_gpu_parts(scaling: ScalingConfig, workers: int) -> None:
    """Refuses several workers that would share a GPU: NCCL, which joins them, takes one process on each.

    Args:
        scaling: what a worker needs.
        workers: of a gang.

    Raises:
        ConfigurationError: naming what a worker holds.
    """
    gpus = resources_per_worker(scaling).get("GPU", 0.0)
    if not gpus % 1 or (workers < 2 and gpus < 1):
        return
    remedy = "give each a whole GPU, or train on one worker, of which several gangs share a GPU"
    if gpus > 1:
        remedy = "give a whole number of GPUs, or a part of one"
    raise ConfigurationError(
        f"ScalingConfig(resources_per_worker={scaling.resources_per_worker!r}) holds {gpus:g} GPUs for each worker of "
        f"a gang of {workers}, and NCCL refuses two workers on one GPU; {remedy}"
    )


def _check_nodes(scaling: ScalingConfig) -> None:
    """Refuses kinds of nodes that Ray would refuse later, or that no trainer here uses."""
    settings: Any = scaling  # Its annotations are those of Train's first version.
    if settings.use_tpu or settings.topology is not None:
        raise ConfigurationError(
            f"ScalingConfig(use_tpu={settings.use_tpu!r}, topology={settings.topology!r}): trainers train on CPUs and "
            "GPUs; leave both out"
        )
    kind, selector = settings.accelerator_type, settings.label_selector
    if kind is not None and (not isinstance(kind, str) or not kind):
        raise ConfigurationError(f"ScalingConfig(accelerator_type={kind!r}): give Ray's word for it, such as 'A100'")
    plain = isinstance(selector, Mapping | None)
    for key in (selector or {}) if plain else ():
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise ConfigurationError(
                f"ScalingConfig(label_selector={selector!r}): {key!r} cannot be the name of a label; give at most 63 "
                "letters, digits, '-', '_' and '.', the first and the last a letter or digit, behind a domain and '/' "
                "where Ray has one, such as 'zone' or 'ray.io/market-type'"
            )
    if not plain or not all(map(_is_condition, (selector or {}).values())):
        raise ConfigurationError(
            f"ScalingConfig(label_selector={selector!r}): give one dict for all workers, which are alike, such as "
            "{'market-type': 'spot'}, {'market-type': '!spot'} or {'zone': 'in(a, b)'}"
        )


def _is_condition(wanted: object) -> bool:
    return isinstance(wanted, str) and _CONDITION.fullmatch(wanted) is not None
