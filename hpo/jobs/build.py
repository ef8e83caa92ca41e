"""What a tuner's job is put together from: its name, channels, plan, search and goal."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hpo.cost import Limits
from hpo.forecasts import Outlook, probes
from hpo.jobs.checks import check_objective, gang_sizes, inert_lengths, longest
from hpo.observers import Goal
from hpo.search import Search
from hpo.strategies import Plan, plan_for, stops_nothing
from trainers import storage
from trainers.channels import Channel
from trainers.home import home
from trainers.trainer import open_channels

if TYPE_CHECKING:
    from hpo.tuner import HyperparameterTuner


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningJob:
    """A job by its name, as SageMaker's SDK gives it."""

    name: str

    @property
    def job_name(self) -> str:
        """The same name, as SDK version 2 spells it."""
        return self.name


NAME_LENGTH = 32
"""The most characters of a job's name."""


def new_name(tuner: HyperparameterTuner) -> str:
    """A name that no job has, of the tuner's base name or its trainer's, and the time."""
    return name_from(tuner.base_tuning_job_name or type(tuner.estimator).__name__.removesuffix("Trainer").lower())


def name_from(base: str) -> str:
    """A name that no job has, of what it begins with and the time."""
    stamp = datetime.now(UTC).strftime("%y%m%d-%H%M") + f"-{secrets.token_hex(2)}"
    return f"{base[: NAME_LENGTH - len(stamp) - 1]}-{stamp}"


def opened(tuner: HyperparameterTuner, inputs: Mapping[str, Any] | None) -> dict[str, Channel]:
    """The channels, checked for the tuner's trainer, its objective and its largest gang."""
    channels = open_channels({} if inputs is None else inputs)
    check_objective(tuner.objective_metric_name, tuner.estimator.metrics(channels))
    _, largest = gang_sizes(tuner.estimator, tuner.ranges)
    return tuner.estimator.checked(channels, tuner.objective_metric_name, workers=largest)


def plan_of(tuner: HyperparameterTuner) -> Plan:
    """The brackets of its jobs: of one that was made again out of the record, those that stand there."""
    if tuner.planned is not None:
        return tuner.planned
    trainer = tuner.estimator
    units = longest(trainer.resource_names, tuner.ranges, trainer.hyperparameters)
    return plan_for(tuner.strategy, tuner.strategy_config, tuner.max_jobs, units)


def warnings(tuner: HyperparameterTuner) -> list[str]:
    """What of its ranges and its strategy changes nothing."""
    names, static, plan = tuner.estimator.resource_names, tuner.estimator.hyperparameters, tuner.plan()
    inert = inert_lengths(names, tuner.ranges, static, tuner.strategy, plan.max_resource)
    return [*inert, *stops_nothing(tuner.strategy, tuner.strategy_config, plan)]


def search_for(tuner: HyperparameterTuner, name: str, seed: int) -> Search:
    """What a controller is to carry out.

    Args:
        tuner: whose job it is.
        name: the job's.
        seed: the job's.
    """
    trainer = tuner.estimator
    return Search(
        name=name,
        metric=tuner.objective_metric_name,
        mode="max" if tuner.objective_type == "Maximize" else "min",
        max_jobs=tuner.max_jobs,
        max_parallel_jobs=tuner.max_parallel_jobs,
        max_resource=tuner.plan().max_resource,
        seed=seed,
        storage_path=storage.join(tuner.storage_path or f"{home()}/jobs", name),
        suffix=trainer.suffix,
        static=trainer.hyperparameters,
        workers=trainer.workers_for,
        exact_from=trainer.exact_from,
        length_names=trainer.resource_names if tuner.strategy == "Random" else (),
        best_value=tuner.objective_value == "best",
        probes=probes(trainer),
        limits=Limits(
            max_seconds=tuner.max_runtime_in_seconds or math.inf,
            max_wait=tuner.max_wait or math.inf,
            max_cost=math.inf if tuner.max_cost is None else tuner.max_cost,
            tariff=tuner.tariff,
        ),
        patience=trainer.patience,
        completion=tuner.completion_criteria_config,
    )


def outlook_for(tuner: HyperparameterTuner, search: Search) -> Outlook:
    """What is known of the search before it starts."""
    return Outlook.of(search, tuner.plan(), in_hand=tuner.estimator.in_hand)


def goal_for(tuner: HyperparameterTuner, name: str) -> Goal:
    """What the views of the running job are told of it."""
    return Goal(
        job=name,
        metric=tuner.objective_metric_name,
        objective_type=tuner.objective_type,
        objective_value=tuner.objective_value,
        plan=tuner.plan(),
    )
