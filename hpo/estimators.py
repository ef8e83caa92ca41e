"""Several estimators in one job: their ranges, objectives and channels put together for one search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hpo.ranges import CategoricalParameter, ParameterRange, check_ranges
from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError
from trainers.parts import ESTIMATOR, prefixed
from trainers.ray_train import RayTrainTrainer, is_ray_trainer
from trainers.script import ScriptTrainer
from trainers.several import SeveralTrainers
from trainers.trainer import Trainer


def as_trainer(estimator: Any) -> Any:
    """An estimator as a job has it: Ray Train's own trainers are taken as they are, anything else is left alone."""
    return RayTrainTrainer(estimator) if is_ray_trainer(estimator) else estimator


def with_definitions(estimator: Any, definitions: Sequence[Mapping[str, str]] | None) -> Any:
    """An estimator whose program's metrics are found by these expressions, where there are any.

    Args:
        estimator: the trainer; what is none is refused elsewhere.
        definitions: as SageMaker's tuner takes them.

    Raises:
        ConfigurationError: the trainer runs no program, or a definition is wrong.
    """
    if not definitions or not isinstance(estimator, Trainer):
        return estimator
    if not isinstance(estimator, ScriptTrainer):
        raise ConfigurationError(
            f"metric_definitions are {definitions!r}, and {type(estimator).__name__} reports its metrics; leave them "
            "out, or give a ScriptTrainer, whose program prints them"
        )
    return estimator.with_definitions(definitions)


def put_together(
    estimators: Mapping[str, Trainer],
    objectives: Mapping[str, str],
    ranges: Mapping[str, Mapping[str, ParameterRange]],
) -> tuple[SeveralTrainers, str, dict[str, ParameterRange]]:
    """Estimators by name as one, the objective of the job, and the ranges of its search.

    Args:
        estimators: trainers by name, two or more.
        objectives: what each calls the objective; values are compared with one another, and a job has the first's name.
        ranges: of each one's hyperparameters, under its own names for them.

    Raises:
        ConfigurationError: naming what does not go together.
    """
    if not isinstance(estimators, Mapping) or not estimators:
        raise ConfigurationError(f"estimator_dict is {estimators!r}; give a dict of two or more trainers by name")
    for field, given in (("objective_metric_name_dict", objectives), ("hyperparameter_ranges_dict", ranges)):
        if not isinstance(given, Mapping) or set(given) != set(estimators):
            raise ConfigurationError(f"{field} is {given!r}; give an entry for each of {', '.join(estimators)}")
    estimators = {name: as_trainer(estimator) for name, estimator in estimators.items()}
    objective = objectives[next(iter(estimators))]
    own = {name: metric for name, metric in objectives.items() if metric != objective}
    together: dict[str, ParameterRange] = {}
    for name in estimators:
        if not isinstance(ranges[name], Mapping):
            raise ConfigurationError(
                f"hyperparameter_ranges_dict[{name!r}] is {ranges[name]!r}; give a dict with a range for each "
                "hyperparameter to tune, or an empty one"
            )
        check_ranges(prefixed(name, ranges[name]))
        # An estimator's own conditions are about hyperparameters of its own.
        own_ranges = {own: replace(bounds, when=prefixed(name, bounds.when)) for own, bounds in ranges[name].items()}
        together |= prefixed(name, own_ranges)
    made = SeveralTrainers(estimators, metrics=own)
    return made, objective, ranges_of(made, together)


def kept_static(estimator: SeveralTrainers, names: Mapping[str, Sequence[str]]) -> list[str]:
    """Hyperparameters that autotune leaves as they are, given for each estimator under its own names.

    Raises:
        ConfigurationError: one is given for an estimator that there is not, or is no list of names.
    """
    about = "hyperparameters_to_keep_static_dict"
    if not isinstance(names, Mapping):
        raise ConfigurationError(f"{about} is {names!r}; give a dict with a list of names for some of the estimators")
    for name, own in names.items():
        if name not in estimator.trainers:
            raise ConfigurationError(
                f"{about} has {name!r}; give {' or '.join(estimator.trainers)}{did_you_mean(name, estimator.trainers)}"
            )
        if isinstance(own, str) or not isinstance(own, Sequence) or not all(isinstance(each, str) for each in own):
            raise ConfigurationError(f"{about}[{name!r}] is {own!r}; give a list of names, such as ['eta']")
    return [whole for name, own in names.items() for whole in prefixed(name, dict.fromkeys(own))]


def ranges_of(estimator: Trainer, ranges: Mapping[str, ParameterRange]) -> dict[str, ParameterRange]:
    """The ranges of a job: where it has several estimators, which one is tuned too, and ranges are searched for theirs.

    Args:
        estimator: the job's.
        ranges: as they were given.
    """
    if not isinstance(estimator, SeveralTrainers):
        return dict(ranges)
    choice = {} if ESTIMATOR in ranges else {ESTIMATOR: CategoricalParameter(list(estimator.trainers))}
    own = {whole: _of_its_own(whole, bounds, estimator) for whole, bounds in ranges.items()}
    return {**choice, **own}


def _of_its_own(whole: str, bounds: ParameterRange, estimator: SeveralTrainers) -> ParameterRange:
    """The range of an estimator's hyperparameter, which is there where that estimator is chosen."""
    name = whole.partition(".")[0]
    return replace(bounds, when={**bounds.when, ESTIMATOR: [name]}) if name in estimator.trainers else bounds


def inputs_of(estimator: Trainer, inputs: Any) -> Any:
    """The channels of a job, also where they are given for each of several estimators, as SageMaker's users do.

    Args:
        estimator: the job's.
        inputs: channels by name, or dicts of them by the estimators' names, each the same.

    Raises:
        ConfigurationError: two of them read other channels.
    """
    if not isinstance(estimator, SeveralTrainers) or not isinstance(inputs, Mapping) or "train" in inputs:
        return inputs
    for name in inputs:
        if name not in estimator.trainers:
            raise ConfigurationError(
                f"inputs have {name!r}, which is neither a channel nor an estimator; give {{'train': ...}}, which all "
                f"of {', '.join(estimator.trainers)} read{did_you_mean(name, estimator.trainers)}"
            )
    first, *others = inputs.items()
    for name, channels in others:
        if not _same(channels, first[1]):
            raise ConfigurationError(
                f"inputs[{name!r}] are other channels than inputs[{first[0]!r}]; the estimators of a job read the "
                "same: give one dict for all"
            )
    return first[1]


def _same(one: Any, other: Any) -> bool:
    """Whether two dicts of channels are the same objects or paths."""
    if not isinstance(one, Mapping) or not isinstance(other, Mapping) or one.keys() != other.keys():
        return False
    return all(
        mine is theirs or (isinstance(mine, str) and mine == theirs)
        for mine, theirs in ((one[name], other[name]) for name in one)
    )
