"""A tuning job as a YAML file: typed, checked, and turned into a tuner and its channels."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from ray.train import ScalingConfig

from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter, ParameterRange
from hpo.strategies import HyperbandStrategyConfig, StrategyConfig
from hpo.tuner import HyperparameterTuner
from trainers import Channel, XGBoostTrainer
from trainers.datasets import load
from trainers.errors import ConfigurationError


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NumberRange(_Strict):
    """A range of numbers."""

    type: Literal["continuous", "integer"]
    min: float
    max: float
    scaling: str = "Auto"

    def parameter(self) -> ParameterRange:
        """In the Python API's form."""
        kind = ContinuousParameter if self.type == "continuous" else IntegerParameter
        return kind(self.min, self.max, self.scaling)


class Choice(_Strict):
    """A choice among values, whose types are kept."""

    type: Literal["categorical"]
    values: list[Any]

    def parameter(self) -> ParameterRange:
        """In the Python API's form."""
        return CategoricalParameter(self.values)


class Files(_Strict):
    """Where a channel's rows are."""

    path: str | list[str]
    target: str | int | None = None
    header: bool | None = None
    delimiter: str = ","


class Data(_Strict):
    """Either a named dataset, or files by channel."""

    dataset: str | None = None
    repeat: int = 1
    channels: dict[str, Files] | None = None

    def open(self, data_dir: str | None) -> dict[str, Any]:
        """The channels, as `HyperparameterTuner.fit` takes them."""
        if (self.dataset is None) == (self.channels is None):
            raise ConfigurationError("data: give either dataset or channels")
        if self.channels is not None:
            return {
                name: Channel.of(f.path, target=f.target, header=f.header, delimiter=f.delimiter, name=name)
                for name, f in self.channels.items()
            }
        found = load(str(self.dataset), data_dir=data_dir, repeat=self.repeat)
        return {"train": found.train, "validation": found.validation, "test": found.test}


class TrainerSpec(_Strict):
    """The trainer and its workers."""

    type: Literal["xgboost"]
    num_workers: int = 1
    use_gpu: bool = False
    resources_per_worker: dict[str, float] | None = None
    hyperparameters: dict[str, Any] = Field(default_factory=dict)
    backend: Literal["native", "xgboost_ray"] = "native"
    ray_params: dict[str, Any] = Field(default_factory=dict)

    def trainer(self) -> XGBoostTrainer:
        """In the Python API's form."""
        try:
            scaling = ScalingConfig(
                num_workers=self.num_workers, use_gpu=self.use_gpu, resources_per_worker=self.resources_per_worker
            )
        except ValueError as error:
            raise ConfigurationError(f"trainer: {error}") from error
        return XGBoostTrainer(
            scaling=scaling,
            hyperparameters=self.hyperparameters,
            backend=self.backend,
            ray_params=self.ray_params,
        )


class Hyperband(_Strict):
    """Hyperband's own configuration."""

    max_resource: int
    min_resource: int = 1
    reduction_factor: int = 3


class Tuning(_Strict):
    """The search; names as in `HyperparameterTuner`."""

    objective_metric_name: str
    objective_type: Literal["Maximize", "Minimize"] = "Maximize"
    objective_value: Literal["last", "best"] = "last"
    strategy: str = "Hyperband"
    hyperband: Hyperband | None = None
    max_jobs: int = 1
    max_parallel_jobs: int = 1
    max_runtime_in_seconds: int | None = None
    random_seed: int | None = None
    ranges: dict[str, Annotated[NumberRange | Choice, Field(discriminator="type")]]


class JobSpec(_Strict):
    """A tuning job."""

    name: str | None = None
    data: Data
    trainer: TrainerSpec
    tuning: Tuning
    storage_path: str | None = None
    store: str | None = None

    def tuner(self) -> HyperparameterTuner:
        """In the Python API's form."""
        tuning = self.tuning
        config = StrategyConfig(HyperbandStrategyConfig(**tuning.hyperband.model_dump())) if tuning.hyperband else None
        return HyperparameterTuner(
            self.trainer.trainer(),
            tuning.objective_metric_name,
            {name: bounds.parameter() for name, bounds in tuning.ranges.items()},
            strategy=tuning.strategy,
            objective_type=tuning.objective_type,
            max_jobs=tuning.max_jobs,
            max_parallel_jobs=tuning.max_parallel_jobs,
            max_runtime_in_seconds=tuning.max_runtime_in_seconds,
            strategy_config=config,
            random_seed=tuning.random_seed,
            objective_value=tuning.objective_value,
            storage_path=self.storage_path,
            store=self.store,
        )


def read_job(path: str | Path, overrides: Iterable[str] = ()) -> JobSpec:
    """Reads a job file.

    Args:
        path: the YAML file.
        overrides: "dotted.key=value", the value as YAML, over what the file says.

    Raises:
        ConfigurationError: it is not there, not YAML, or a key or value is wrong; the message names each.
    """
    try:
        state = yaml.safe_load(Path(path).read_text())
    except OSError as error:
        raise ConfigurationError(f"job file {str(path)!r} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"job file {str(path)!r} is not YAML: {error}") from error
    if not isinstance(state, dict):
        raise ConfigurationError(f"job file {str(path)!r} holds no keys; see experiments/bank-marketing.yaml for one")
    for override in overrides:
        _override(state, override)
    try:
        return JobSpec.model_validate(state)
    except ValidationError as error:
        problems = "\n".join(f"  {_problem(dict(detail))}" for detail in error.errors())
        raise ConfigurationError(f"job file {str(path)!r}:\n{problems}") from error


def _override(state: dict[str, Any], override: str) -> None:
    key, equals, value = override.partition("=")
    if not equals:
        raise ConfigurationError(f"--set {override!r} has no value; give key=value, such as tuning.max_jobs=10")
    *parents, last = key.split(".")
    for parent in parents:
        state = state.setdefault(parent, {})
        if not isinstance(state, dict):
            raise ConfigurationError(f"--set {override!r}: {parent!r} is not a group of keys")
    try:
        state[last] = yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"--set {override!r}: the value is not YAML: {error}") from error


def _problem(detail: dict[str, Any]) -> str:
    where = ".".join(str(part) for part in detail["loc"])
    if detail["type"] != "extra_forbidden":
        return (
            f"{where}: {detail['msg']}, got {detail['input']!r}" if "input" in detail else f"{where}: {detail['msg']}"
        )
    model: Any = JobSpec
    for part in detail["loc"][:-1]:
        annotation = model.model_fields[part].annotation if part in getattr(model, "model_fields", {}) else None
        options = (annotation, *get_args(annotation))
        model = next((option for option in options if isinstance(option, type)), None)
    known = list(getattr(model, "model_fields", {}))
    near = difflib.get_close_matches(str(detail["loc"][-1]), known, n=1)
    return f"{where}: unknown key" + (f"; did you mean {near[0]!r}?" if near else "")
