"""The trainer of jobs that search over several trainers at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Self

from ray.train import ScalingConfig

from trainers.channels import ROLES, SHARDED, WHOLE, Channel, LabelRule, PlacedChannel
from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError
from trainers.gangs import WORKERS, Program, recorded_scaling
from trainers.length import Length
from trainers.parts import ESTIMATOR, PARTS, of_one, prefixed
from trainers.registry import trainer_from_json
from trainers.several.program import SeveralPrograms
from trainers.trainer import Trainer
from trainers.tunable import Tunable, Tunes, late_obstacle


class SeveralTrainers(Trainer):
    """One of several trainers for each configuration, on gangs that serve all of them.

    The hyperparameter `ESTIMATOR` names the trainer; those of a trainer have its name in front, "boosted.eta". All
    read the same channels, and hold the same resources for a worker; how many workers a configuration takes is its
    trainer's to say.

    Args:
        trainers: by name, two or more; without a choice, the first trains.
        metrics: what each of them calls the objective, where they do not all call it as the job does.
        hyperparameters: which trainer trains, and values over those of the trainers.
        scaling: as the trainers have it; None takes that of the one with the most workers.

    Raises:
        ConfigurationError: naming what does not go together.
    """

    def __init__(
        self,
        trainers: Mapping[str, Trainer],
        *,
        metrics: Mapping[str, str] | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
        scaling: ScalingConfig | None = None,
    ) -> None:
        self.trainers = _checked(trainers)
        self._metrics = dict(metrics or {})
        each = list(self.trainers.values())
        self.resource_names = tuple(
            whole
            for name, trainer in self.trainers.items()
            for whole in prefixed(name, dict.fromkeys(trainer.resource_names))
        )
        self.fixed_names = (
            ESTIMATOR,
            *(whole for name, one in self.trainers.items() for whole in prefixed(name, dict.fromkeys(one.fixed_names))),
        )
        self.takes_folders = all(trainer.takes_folders for trainer in each)
        self.takes_examples = all(trainer.takes_examples for trainer in each)
        self.takes_categories = all(trainer.takes_categories for trainer in each)
        self.takes_sparse = all(trainer.takes_sparse for trainer in each)
        self.takes_distributions = tuple(
            way for way in (WHOLE, SHARDED) if all(way in trainer.takes_distributions for trainer in each)
        )
        self.deals = next((trainer.deals for trainer in each if trainer.deals), "")
        self.takes_roles = tuple(role for role in ROLES if all(role in trainer.takes_roles for trainer in each))
        units = {trainer.unit for trainer in each}
        self.unit = units.pop() if len(units) == 1 else Trainer.unit
        static = {ESTIMATOR: next(iter(self.trainers))}
        for name, trainer in self.trainers.items():
            static |= prefixed(name, trainer.hyperparameters)
        largest = max(each, key=lambda trainer: trainer.workers)
        super().__init__(scaling=scaling or largest.scaling, hyperparameters={**static, **(hyperparameters or {})})

    def chosen(self, hyperparameters: Mapping[str, Any]) -> tuple[Trainer, dict[str, Any]]:
        """See `Trainer.chosen`.

        Raises:
            ConfigurationError: there is no trainer of that name.
        """
        name = hyperparameters.get(ESTIMATOR)
        if name not in self.trainers:
            raise ConfigurationError(
                f"hyperparameter {ESTIMATOR!r} is {name!r}; give {' or '.join(self.trainers)}"
                f"{did_you_mean(name, self.trainers)}"
            )
        return self.trainers[name], of_one(name, hyperparameters)

    def check(self, hyperparameters: Mapping[str, Any]) -> None:
        """See `Trainer.check`; each trainer checks its own, also where another one is chosen."""
        self.chosen(hyperparameters)
        known = {f"{name}." for name in self.trainers}
        for whole in hyperparameters:
            if whole != ESTIMATOR and not any(whole.startswith(start) for start in known):
                raise ConfigurationError(
                    f"hyperparameter {whole!r} is of no trainer; put its trainer's name in front, as in "
                    f"{next(iter(self.trainers)) + '.' + whole!r}"
                )
        for name, trainer in self.trainers.items():
            try:
                trainer.check(of_one(name, hyperparameters))
            except ConfigurationError as error:
                raise ConfigurationError(f"trainer {name!r}: {error}") from error

    def program(self, channels: dict[str, PlacedChannel]) -> Program:
        """See `Trainer.program`."""
        return SeveralPrograms(
            {name: trainer.program(channels) for name, trainer in self.trainers.items()},
            {name: trainer.suffix for name, trainer in self.trainers.items()},
            self._metrics,
        )

    def metrics(self, channels: Iterable[str]) -> list[str] | None:
        """See `Trainer.metrics`: what all of them report, and the first one's word for the objective."""
        names = list(channels)
        told = {name: trainer.metrics(names) for name, trainer in self.trainers.items()}
        for name, reported in told.items():
            own = self._metrics.get(name)
            if own is not None and reported is not None and own not in reported:
                raise ConfigurationError(
                    f"objective_metric_name of {name!r} is {own!r}, which it does not report; it reports "
                    f"{', '.join(reported)}{did_you_mean(own, reported)}"
                )
        known = [reported for reported in told.values() if reported is not None]
        if self._metrics or len(known) < len(told):
            return None
        return [metric for metric in known[0] if all(metric in reported for reported in known)]

    def pause_obstacle(self, *, stops_only: bool = False) -> str:
        """See `Trainer.pause_obstacle`: of the first trainer that has one."""
        return _first((name, trainer.pause_obstacle()) for name, trainer in self.trainers.items())

    def smaller_is_better(self, metric: str) -> bool | None:
        """See `Trainer.smaller_is_better`: where all trainers say the same."""
        said = {trainer.smaller_is_better(metric) for trainer in self.trainers.values()}
        return said.pop() if len(said) == 1 else None

    def copies_obstacle(self) -> str:
        """See `Trainer.copies_obstacle`: of the first trainer that has one."""
        return _first((name, trainer.copies_obstacle()) for name, trainer in self.trainers.items())

    def workers_for(self, hyperparameters: Mapping[str, Any]) -> int:
        """See `Trainer.workers_for`."""
        trainer, own = self.chosen(hyperparameters)
        return trainer.workers_for(own)

    def length_of(self, hyperparameters: Mapping[str, Any]) -> int | None:
        """See `Trainer.length_of`."""
        trainer, own = self.chosen(hyperparameters)
        return trainer.length_of(own)

    @property
    def lengths(self) -> tuple[Length, ...]:
        """See `Trainer.lengths`."""
        return tuple(length.of_part(name) for name, trainer in self.trainers.items() for length in trainer.lengths)

    @property
    def usual_units(self) -> int | None:
        """See `Tunes.usual_units`: each trains as long as its own hyperparameters say."""
        return None

    def tunable(self, ranged: Collection[str]) -> dict[str, Tunable]:
        """See `Tunes.tunable`: of each trainer that says so."""
        ranged_values = dict.fromkeys(ranged)
        found: dict[str, Tunable] = {}
        for name, trainer in self.trainers.items():
            if isinstance(trainer, Tunes):
                found |= prefixed(name, trainer.tunable(of_one(name, ranged_values)))
        return found

    def late_obstacle(self, name: str) -> str:
        """See `TakesEffect.late_obstacle`: what its trainer says."""
        trainer, _, own = name.partition(".")
        return late_obstacle(self.trainers[trainer], own)

    def label_rules(self, channel: str, metric: str | None) -> tuple[LabelRule, ...]:
        """See `Trainer.label_rules`: those of all."""
        rules: dict[LabelRule, None] = {}
        for name, trainer in self.trainers.items():
            rules |= dict.fromkeys(trainer.label_rules(channel, metric and self._metrics.get(name, metric)))
        return tuple(rules)

    def checked(
        self, channels: Mapping[str, Channel], metric: str | None = None, *, workers: int | None = None
    ) -> dict[str, Channel]:
        """See `Trainer.checked`: each of them looks."""
        for name, trainer in self.trainers.items():
            trainer.checked(channels, metric and self._metrics.get(name, metric), workers=workers)
        return super().checked(channels, metric, workers=workers)

    @property
    def patience(self) -> float:
        """See `Trainer.patience`: that of the one that takes longest."""
        return max(trainer.patience for trainer in self.trainers.values())

    def exact_from(self, hyperparameters: Mapping[str, Any]) -> bool:
        """See `Trainer.exact_from`."""
        trainer, own = self.chosen(hyperparameters)
        return trainer.exact_from(own)

    def probe_obstacle(self) -> str:
        """See `Trainer.probe_obstacle`."""
        return "it is one of several trainers, which differ"

    def load_model(self, checkpoint: str) -> Any:
        """The model as its trainer loads it."""
        trainer, _ = self.chosen(self.hyperparameters)
        return trainer.trained(checkpoint, manifest=self._manifest).model()

    def load_code(self, checkpoint: str) -> str:
        """See `Trainer.load_code`."""
        trainer, _ = self.chosen(self.hyperparameters)
        return trainer.load_code(checkpoint)

    def code(self) -> dict[str, str]:
        """See `Trainer.code`: that of each, under its name."""
        return {
            whole: place
            for name, trainer in self.trainers.items()
            for whole, place in prefixed(name, trainer.code()).items()
        }

    @property
    def options(self) -> dict[str, Any]:
        """See `Trainer.options`."""
        trainers = {name: trainer.to_json() for name, trainer in self.trainers.items()}
        return {PARTS: trainers, **({"metrics": self._metrics} if self._metrics else {})}

    @property
    def arguments(self) -> dict[str, Any]:
        """See `Trainer.arguments`."""
        return {"trainers": self.trainers, "metrics": self._metrics}

    @classmethod
    def restored(
        cls,
        scaling: ScalingConfig,
        hyperparameters: Mapping[str, Any],
        options: Mapping[str, Any],
        *,
        allow_code: bool,
    ) -> Self:
        """See `Trainer.restored`."""
        trainers = {name: trainer_from_json(state, allow_code=allow_code) for name, state in options[PARTS].items()}
        return cls(trainers, metrics=options.get("metrics"), hyperparameters=hyperparameters, scaling=scaling)


def _checked(trainers: Mapping[str, Trainer]) -> dict[str, Trainer]:
    """The trainers, if gangs of one kind can serve them all."""
    if not isinstance(trainers, Mapping) or len(trainers) < 2:
        raise ConfigurationError(f"trainers are {trainers!r}; give a dict of two or more trainers by name")
    for name, trainer in trainers.items():
        if not isinstance(name, str) or not name.replace("-", "_").isidentifier():
            raise ConfigurationError(f"trainers have the name {name!r}; give letters, digits, hyphens and underscores")
        if not isinstance(trainer, Trainer) or isinstance(trainer, SeveralTrainers):
            raise ConfigurationError(f"trainers[{name!r}] is {trainer!r}; give a trainer, such as XGBoostTrainer(...)")
        if not trainer.warm:
            raise ConfigurationError(
                f"trainers[{name!r}] is {trainer!r}, whose gangs serve nothing else; give it a job of its own"
            )
    first, *others = trainers.items()
    for name, trainer in others:
        if (given := _alike(trainer)) != (expected := _alike(first[1])):
            raise ConfigurationError(
                f"the gangs of trainers[{name!r}] have {given}, those of {first[0]!r} {expected}; give both the same "
                "in ScalingConfig, num_workers apart"
            )
    return dict(trainers)


def _alike(trainer: Trainer) -> dict[str, Any]:
    """What of a trainer's scaling has to be the same for all: gangs are told apart by their size alone."""
    said = {name: value for name, value in recorded_scaling(trainer.scaling).items() if name != WORKERS}
    return {**said, "in this process": trainer.in_hand, "elastic": trainer.least_workers < trainer.workers}


def _first(obstacles: Iterable[tuple[str, str]]) -> str:
    """Return the first obstacle that there is, with the name of its trainer; empty for none."""
    return next((f"trainer {name!r}: {obstacle}" for name, obstacle in obstacles if obstacle), "")
