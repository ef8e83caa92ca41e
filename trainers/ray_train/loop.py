"""Parts of a Ray Train trainer that a gang needs: its function, configuration, workers and datasets."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ray.train import ScalingConfig

from trainers.errors import ConfigurationError
from trainers.gangs import WORKERS
from trainers.plain import plain
from trainers.process import load, name_of

HOME = "ray.train.v2.api.data_parallel_trainer"
"""The module of Ray's that has the class which its trainers are derived from; not imported to look at other things."""

TIMEOUT_SECONDS = 1800.0
"""How long workers wait for each other where nothing else is said, as in Ray's `TorchConfig`."""

TrainLoop = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A Ray Train trainer's parts.

    Args:
        function: its `train_loop_per_worker`.
        place: "module:name" of the whole trainer, where it is known by that.
        hyperparameters: of its `train_loop_config`, what a record takes and a tuner's values override.
        config: the rest of it, which goes to the function as it is; `num_workers` too, since that is not the gang's.
        scaling: its `scaling_config`.
        datasets: its `datasets`.
        split: names of those that each worker gets a part of.
        timeout_s: how long workers wait for each other.
        lost: what of it a record did not keep, so that nobody can train with it.
    """

    function: TrainLoop
    place: str = ""
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    scaling: ScalingConfig
    datasets: Mapping[str, Any] = field(default_factory=dict)
    split: frozenset[str] = frozenset()
    timeout_s: float = TIMEOUT_SECONDS
    lost: tuple[str, ...] = ()

    @property
    def takes_config(self) -> bool:
        """Whether the function takes a configuration, as Ray tells it: by an argument without a default."""
        empty, several = inspect.Parameter.empty, (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        parameters = inspect.signature(self.function).parameters.values()
        return any(each.default is empty and each.kind not in several for each in parameters)

    @property
    def unrecorded(self) -> list[str]:
        """What a record cannot keep of it; nothing where its trainer can be imported."""
        if self.place:
            return []
        config = [f"train_loop_config[{name!r}]" for name, value in self.config.items() if not is_json(value)]
        return [*config, *(f"datasets[{name!r}]" for name in self.datasets)]

    def call(self, hyperparameters: Mapping[str, Any]) -> Any:
        """Calls the function, as Ray Train does."""
        return self.function({**self.config, **hyperparameters}) if self.takes_config else self.function()


def is_ray_trainer(thing: object) -> bool:
    """Whether something is a trainer of Ray Train's; nothing is imported to tell."""
    base = getattr(sys.modules.get(HOME), "DataParallelTrainer", None)
    return base is not None and isinstance(thing, base)


def loop_of(given: Any) -> Loop:
    """The parts of a Ray Train trainer, or of one by its name, "module:name", which is imported.

    Raises:
        ConfigurationError: it is none, or asks for what a gang does not give.
    """
    place = given if isinstance(given, str) else ""
    if place and not all(place.partition(":")):
        raise ConfigurationError(f"ray_trainer is {given!r}; give a ray.train.torch.TorchTrainer, or 'module:name'")
    trainer = load(place, "ray_trainer", "trainer") if place else given
    if not is_ray_trainer(trainer):
        raise ConfigurationError(
            f"ray_trainer is {given!r}, a {type(trainer).__name__}; give a ray.train.torch.TorchTrainer"
        )
    timeout_s = _timeout(trainer.backend_config)
    config = {name: _plain(value) for name, value in (trainer.train_loop_config or {}).items()}
    tunable = {name for name, value in config.items() if isinstance(name, str) and is_json(value) and name != WORKERS}
    return Loop(
        function=trainer.train_loop_per_worker,
        place=place,
        hyperparameters={name: config[name] for name in config if name in tunable},
        config={name: value for name, value in config.items() if name not in tunable},
        scaling=trainer.scaling_config,
        datasets=_datasets(trainer),
        split=_split(trainer) if trainer.datasets else frozenset(),
        timeout_s=timeout_s,
    )


def named(function: TrainLoop) -> str:
    """Where a function is, as "module:name"."""
    return name_of(function)


def _plain(value: Any) -> Any:
    """Return a value of a configuration as the record keeps it; as it is where the record cannot keep it."""
    try:
        return plain(value, "train_loop_config")
    except ConfigurationError:
        return value


def is_json(value: Any) -> bool:
    """Whether a record keeps a value as it is."""
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError):
        return False


def _timeout(backend: Any) -> float:
    """How long workers wait for each other; refuses what sets up anything else than PyTorch's usual process group."""
    from ray.train import BackendConfig
    from ray.train.torch import TorchConfig

    if type(backend) is BackendConfig:
        return TIMEOUT_SECONDS
    if type(backend) is not TorchConfig:
        kind = type(backend).__name__
        other = "; trainers.XGBoostTrainer trains XGBoost" if "XGBoost" in kind else ""
        raise ConfigurationError(
            f"ray_trainer sets up a {kind}, and gangs have PyTorch's process group; give a "
            f"ray.train.torch.TorchTrainer, or a DataParallelTrainer without a backend_config{other}"
        )
    if backend.backend not in (None, "gloo", "nccl"):
        raise ConfigurationError(
            f"TorchConfig(backend={backend.backend!r}): gangs have gloo on CPUs and nccl on GPUs; leave it out"
        )
    return float(backend.timeout_s)


def _datasets(trainer: Any) -> dict[str, Any]:
    import ray.data

    for name, dataset in trainer.datasets.items():
        if not isinstance(dataset, ray.data.Dataset):
            raise ConfigurationError(f"datasets[{name!r}] is a {type(dataset).__name__}; give a ray.data.Dataset")
    return dict(trainer.datasets)


def _split(trainer: Any) -> frozenset[str]:
    from ray.train import DataConfig

    from trainers.ray_train.answers import split_names

    if type(trainer.data_config) is not DataConfig:
        raise ConfigurationError(
            f"dataset_config is a {type(trainer.data_config).__name__}, which deals datasets out in a way of its own; "
            "give a ray.train.DataConfig"
        )
    return frozenset(split_names(trainer.data_config, trainer.datasets))
