"""Autotune: ranges, length and budget of a job, chosen for its user, and said."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter, ParameterRange
from hpo.strategies import Strategy, StrategyConfig, TuningJobCompletionCriteriaConfig
from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError
from trainers.trainer import Trainer
from trainers.tunable import Tunable, Tunes

ROUND, PER_ROUND = 45, 4
"""Trials of one round of Hyperband's brackets with a model, and hyperparameters for each round."""

PER_HYPERPARAMETER = 10
"""Trials that run to the end, for each hyperparameter."""

SHORT = 9
"""Units of a trial with fewer of which there is nothing to stop it at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One thing that was chosen.

    Args:
        name: of a hyperparameter or a setting.
        chosen: its range or value, in words.
        why: these.
    """

    name: str
    chosen: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Autotuned:
    """Everything that was chosen for a job; its other settings are as its user gave them."""

    choices: tuple[Choice, ...] = ()

    def to_json(self) -> list[dict[str, str]]:
        """For the record."""
        return [{"name": each.name, "chosen": each.chosen, "why": each.why} for each in self.choices]

    @classmethod
    def from_json(cls, state: Sequence[Mapping[str, str]]) -> Self:
        """As `to_json` recorded it."""
        return cls(choices=tuple(Choice(**each) for each in state))

    def __str__(self) -> str:
        return "\n".join(f"{each.name}: {each.chosen} ({each.why})" for each in self.choices)


@dataclass(kw_only=True)
class _Asked:
    """Settings of a job as they are chosen, one after another."""

    estimator: Trainer
    ranges: dict[str, ParameterRange]
    strategy: str | Strategy
    strategy_config: StrategyConfig | None
    early_stopping_type: str
    max_jobs: int | None
    completion_criteria_config: TuningJobCompletionCriteriaConfig | None
    repeats: int
    choices: list[Choice] = field(default_factory=list)

    def say(self, name: str, chosen: object, why: str) -> None:
        self.choices.append(Choice(name=name, chosen=str(chosen), why=why))

    @property
    def units(self) -> int | None:
        """Units of a trial that runs to the end, as far as they are known."""
        config = self.strategy_config
        return config.hyperband_strategy_config.max_resource if config else self.estimator.units


def check_static(keep: object, *, autotune: bool, static: Mapping[str, Any], ranges: Mapping[str, Any]) -> None:
    """Refuses names of hyperparameters to keep static that are none of the trainer's, or have ranges.

    Args:
        keep: them, or None.
        autotune: whether others are chosen.
        static: the trainer's own hyperparameters.
        ranges: those that the user gave ranges.

    Raises:
        ConfigurationError: naming the name and what to give.
    """
    about = "hyperparameters_to_keep_static"
    if keep is None:
        return
    if isinstance(keep, str) or not isinstance(keep, Sequence) or not all(isinstance(name, str) for name in keep):
        raise ConfigurationError(f"{about} is {keep!r}; give a list of names, such as ['eta']")
    if keep and not autotune:
        raise ConfigurationError(f"{about} is {list(keep)}, and autotune is off; give autotune=True, or leave it out")
    for place, name in enumerate(keep):
        if name in keep[:place]:
            raise ConfigurationError(f"{about} has {name!r} twice; give it once")
        if name in ranges:
            raise ConfigurationError(f"{about} has {name!r}, which has a range; leave it out of one of the two")
        if name not in static:
            raise ConfigurationError(
                f"{about} has {name!r}, and the trainer's hyperparameters have no such value; give some of "
                f"{', '.join(static) or 'them'}{did_you_mean(name, static)}"
            )


def chosen(keep: Sequence[str] | None, repeats: int, **asked: Any) -> dict[str, Any]:
    """The settings of a job with what is chosen for it, by name, and `autotune`, which says what and why.

    Args:
        keep: static hyperparameters that are not tuned.
        repeats: trials of each configuration.
        **asked: as the user gave them: `estimator`, `ranges`, `strategy`, `strategy_config`, `early_stopping_type`,
            `max_jobs` and `completion_criteria_config`.

    Raises:
        ConfigurationError: the trainer says nothing of its hyperparameters, or has none left to tune.
    """
    job = _Asked(repeats=repeats, **asked)
    _choose_length(job)
    _choose_ranges(job, keep or ())
    _choose_strategy(job)
    _choose_end(job)
    return {name: getattr(job, name) for name in asked} | {"autotune": Autotuned(choices=tuple(job.choices))}


def _choose_length(job: _Asked) -> None:
    trainer = job.estimator
    usual = trainer.usual_units if isinstance(trainer, Tunes) else None
    names = trainer.resource_names
    if job.units is None and usual is not None and not any(name in job.ranges for name in names):
        job.estimator = trainer.with_hyperparameters({names[0]: usual})
        job.say(names[0], usual, "nothing says how long a trial trains")


def _choose_ranges(job: _Asked, keep: Sequence[str]) -> None:
    trainer = job.estimator
    if not isinstance(trainer, Tunes):
        raise ConfigurationError(
            f"autotune is True, and {type(trainer).__name__} does not say which hyperparameters are worth tuning; give "
            "hyperparameter_ranges and leave autotune out"
        )
    for name, bounds in trainer.tunable([*job.ranges]).items():
        if name in keep:
            continue
        job.ranges[name] = _range(bounds)
        job.say(name, _words(bounds), bounds.why)
    if not job.ranges:
        raise ConfigurationError(
            "autotune is True, and nothing is left to tune: the trainer knows none of "
            f"{', '.join(trainer.hyperparameters) or 'its hyperparameters'} that is not kept static; give "
            "hyperparameter_ranges"
        )


def _choose_strategy(job: _Asked) -> None:
    """Hyperband in place of the constructor's default, where trials are long enough to be stopped on their way."""
    lengths = [name for name in job.estimator.resource_names if name in job.ranges]
    default = job.strategy == "Bayesian" and job.strategy_config is None and job.early_stopping_type == "Off"
    if default and not lengths and job.units is not None and job.units >= SHORT:
        job.strategy = "Hyperband"
        job.say("strategy", "Hyperband", "it stops trials that fall behind; hpo.strategies.BayesianStrategy() does not")


def _choose_end(job: _Asked) -> None:
    if job.max_jobs is None and job.strategy != "Grid":
        tuned = len(job.ranges)
        if job.strategy == "Hyperband":
            rounds = math.ceil(tuned / PER_ROUND)
            configurations, why = ROUND * rounds, f"{ROUND} for every {PER_ROUND} of {tuned} hyperparameters"
        else:
            configurations = PER_HYPERPARAMETER * tuned
            why = f"{PER_HYPERPARAMETER} for each of {tuned} hyperparameters"
        job.max_jobs = configurations * job.repeats
        why += f", each trained {job.repeats} times" if job.repeats > 1 else ""
        job.say("max_jobs", job.max_jobs, why)
    if job.completion_criteria_config is None:
        job.completion_criteria_config = TuningJobCompletionCriteriaConfig(complete_on_convergence=True)
        job.say("complete_on_convergence", "True", "fewer trials may do")


def _range(bounds: Tunable) -> ParameterRange:
    if bounds.values:
        return CategoricalParameter(list(bounds.values))
    if bounds.whole:
        return IntegerParameter(round(bounds.least), round(bounds.most), bounds.scale)
    return ContinuousParameter(bounds.least, bounds.most, bounds.scale)


def _words(bounds: Tunable) -> str:
    if bounds.values:
        return f"one of {', '.join(map(str, bounds.values))}"
    scale = "" if bounds.scale == "Linear" else f", {bounds.scale.lower()}"
    return f"{bounds.least:g} to {bounds.most:g}{scale}"
