"""Parts of a job, built from a tuner's settings: name, channels, plan, search and goal."""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from hpo.cost import Limits
from hpo.forecasts import Outlook, probes
from hpo.forks import Effects
from hpo.jobs.checks import check_objective, direction_warnings, gang_sizes, inert_lengths, pause_warnings
from hpo.notices import unset
from hpo.observers import Goal
from hpo.ranges import nearest
from hpo.search import Search
from hpo.strategies import Plan, median_rule_warnings, unsaid
from trainers import storage
from trainers.channels import Channel, open_channels
from trainers.home import home

if TYPE_CHECKING:
    from hpo.jobs.settings import JobSettings
    from trainers.trainer import Trainer


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningJob:
    """A job by its name, as SageMaker's SDK gives it."""

    name: str

    @property
    def job_name(self) -> str:
        """The same name, as SDK version 2 spells it."""
        return self.name


SEEDS = ("seed", "random_state")
"""Hyperparameters that take the place of a trial's own seed."""

_SECRET = re.compile(
    r"(?i)(^|[^a-z])(token|password|passwd|secret|secret_?key|access_?key|api_?key|private_?key|credentials?)$"
)
"""Ends of names that secrets have."""

NAME_LENGTH = 32
"""The most characters of a job's name."""


def new_name(settings: JobSettings) -> str:
    """A name that no job has, of its base name or its trainer's, and the time."""
    return name_from(settings.base_tuning_job_name or type(settings.estimator).__name__.removesuffix("Trainer").lower())


def name_from(base: str) -> str:
    """A name that no job has, of what it begins with and the time."""
    stamp = datetime.now(UTC).strftime("%y%m%d-%H%M") + f"-{secrets.token_hex(2)}"
    return f"{base[: NAME_LENGTH - len(stamp) - 1]}-{stamp}"


def opened(settings: JobSettings, inputs: Mapping[str, Any] | None) -> dict[str, Channel]:
    """The channels, checked for the tuner's trainer, its objective and its largest gang."""
    channels = open_channels(inputs, train=settings.estimator.needs_train)
    objective = settings.objective_metric_name or None
    if objective is not None:
        check_objective(objective, settings.estimator.metrics(channels))
    _, largest = gang_sizes(settings.estimator, settings.ranges)
    return settings.estimator.checked(channels, objective, workers=largest)


def warnings(settings: JobSettings) -> list[str]:
    """Warnings of ranges and settings that change nothing, cost more than one would think, or find the worst trial."""
    trainer, plan = settings.estimator, settings.plan()
    rationed_by = settings.strategy_name if settings.search_strategy.rations else ""
    inert = [
        warning
        for length in trainer.lengths
        for warning in inert_lengths(length, settings.ranges, trainer.hyperparameters, rationed_by, plan.max_resource)
    ]
    fixed = [name for name in SEEDS if name in {**trainer.hyperparameters, **settings.ranges} and plan.repeats > 1]
    alike = [f"{name} is given, so that repeats of a configuration may be alike; leave it out" for name in fixed]
    again = _pause_warnings(settings, plan)
    apart = [text] if (text := trainer.copies_obstacle()) else []
    objective = settings.objective_metric_name or ""
    direction = direction_warnings(
        objective, settings.objective_type, smaller=trainer.smaller_is_better(objective) if objective else None
    )
    unset_here = [
        f"the environment variable {name}, which notices name, is not set here: the driver needs it"
        for name in unset(settings.notices or {})
    ]
    return [
        *direction,
        *unset_here,
        *_secret_warnings(trainer),
        *inert,
        *alike,
        *apart,
        *settings.search_strategy.warnings(plan),
        *median_rule_warnings(plan),
        *again,
    ]


def _secret_warnings(trainer: Trainer) -> list[str]:
    """Return warnings of static hyperparameters and variables that are secrets by their names."""
    shown = [name for name, value in trainer.hyperparameters.items() if isinstance(value, str) and _SECRET.search(name)]
    kept = [name for name in getattr(trainer, "environment", {}) if _SECRET.search(name)]
    return [
        *[
            f"hyperparameter {name!r} may be a secret, and the record keeps and shows its value; let the program read "
            "it from a file, or from a variable that its workers have anyway"
            for name in shown
        ],
        *[
            f"environment has {name}, which may be a secret, and the record keeps its value; let the program read it "
            "from a file, or from a variable that its workers have anyway"
            for name in kept
        ],
    ]


def _pause_warnings(settings: JobSettings, plan: Plan) -> list[str]:
    strategy = settings.search_strategy
    beyond_plan = strategy.stops and not strategy.rations
    named = settings.strategy_name if strategy.stops else "early_stopping_type 'Auto'"
    pausing = "the scheduler" if "scheduler" in strategy.options else named
    obstacle = settings.estimator.pause_obstacle(stops_only=strategy.stops_only)
    stands = not settings.estimator.pause_obstacle(stops_only=True)
    return pause_warnings(obstacle, plan, pausing, beyond_plan=beyond_plan, stands=stands)


def search_for(settings: JobSettings, name: str, seed: int) -> Search:
    """The search for a controller.

    Args:
        settings: the job's.
        name: the job's.
        seed: the job's.
    """
    trainer = settings.estimator
    return Search(
        name=name,
        metric=settings.objective_metric_name,
        mode="max" if settings.objective_type == "Maximize" else "min",
        max_jobs=settings.max_jobs or 1,
        max_parallel_jobs=settings.max_parallel_jobs,
        max_resource=settings.plan().max_resource,
        seed=seed,
        ranges=settings.ranges,
        # The record keeps the places of checkpoints, for readers with other working directories.
        storage_path=storage.join(storage.absolute(settings.options["storage_path"] or f"{home()}/jobs"), name),
        suffix=trainer.suffix,
        static=trainer.hyperparameters,
        workers=trainer.workers_for,
        exact_from=trainer.exact_from,
        length=unsaid if settings.search_strategy.rations else trainer.length_of,
        fixed_names=(*trainer.resource_names, *trainer.fixed_names),
        effects=(
            Effects.of(settings.takes_effect, settings.ranges, trainer.hyperparameters)
            if settings.takes_effect
            else None
        ),
        within_ranges=partial(nearest, settings.ranges),
        best_value=settings.options["objective_value"] == "best",
        untuned=not settings.is_training,
        probes=() if settings.is_training else probes(trainer),
        limits=Limits(
            max_seconds=settings.max_runtime_in_seconds or math.inf,
            max_wait=settings.options["max_wait"] or math.inf,
            max_cost=math.inf if settings.max_cost is None else settings.max_cost,
            tariff=settings.tariff,
        ),
        max_trial_runtime=settings.options["max_trial_runtime"] or math.inf,
        max_trial_wait=settings.options["max_trial_wait"] or math.inf,
        patience=settings.options["max_silence"] or trainer.patience,
        completion=settings.completion_criteria_config,
        repeats=settings.options["repeats"],
        points=tuple(settings.points_to_evaluate or ()),
        # The median rule lets those trials wait alone that came to a rung before earlier ones.
        stops_only=settings.search_strategy.stops_only or settings.plan().apart,
        in_order=settings.search_strategy.depends_on_timing,
    )


def outlook_for(settings: JobSettings, search: Search) -> Outlook:
    """The outlook on the search before it starts."""
    return Outlook.of(search, settings.plan(), in_hand=settings.estimator.in_hand)


def goal_for(settings: JobSettings, name: str, resume: str) -> Goal:
    """Return the goal that views of the running job show.

    Args:
        settings: the job's.
        name: the job.
        resume: how to resume the job once it is stopped; empty where that is not possible.
    """
    return Goal(
        job=name,
        metric=settings.objective_metric_name,
        objective_type=settings.objective_type,
        objective_value=settings.options["objective_value"],
        plan=settings.plan(),
        training=settings.is_training,
        unit=settings.estimator.unit,
        resume=resume,
    )
