"""Problems of a well-formed job file: hyperparameters and metrics that its trainer does not have."""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from hpo.job_file.channels import Data
from hpo.job_file.models import TRAINS_ONCE, JobSpec, Training, Tuning
from hpo.job_file.trainer_models import (
    CustomSpec,
    ParameterServerSpec,
    RayTrainSpec,
    ScriptSpec,
    SeveralSpec,
    TorchSpec,
    TrainerSpec,
    XGBoostSpec,
)
from hpo.job_file.wording import HYPERPARAMETERS, RANGES, in_its_words
from hpo.job_file.yaml_file import MOST_PROBLEMS, Keys, Problem, dotted
from hpo.jobs import TakesValues, check_objective, check_objective_name, check_trainer_ranges, longest
from hpo.ranges import check_conditions
from hpo.strategies import UnknownLengthError, strategy_of
from trainers.errors import ConfigurationError
from trainers.length import Length, no_length
from trainers.parts import of_one
from trainers.script import Arguments, StepCounter, check_names, check_placeholders, program_length

Model = TypeVar("Model")
Spec = XGBoostSpec | TorchSpec | ParameterServerSpec | ScriptSpec | RayTrainSpec | CustomSpec | SeveralSpec

PARTS = ("train", "validation", "test")
"""The channels of a dataset that has a name."""

LENGTHS = (HYPERPARAMETERS, RANGES, ("tuning", "hyperband"), ("tuning", "strategy"))
"""Where it may stand how long a trial trains."""


def problems_beside(values: Mapping[str, Any], form: Iterable[Problem], *, once: bool = False) -> list[Problem]:
    """The problems of a job file's groups beside their form; groups of a wrong form are left out.

    It runs nothing, and does without Ray: what only the trainer and the tuner find is said when they are made.

    Args:
        values: of the file.
        form: what is wrong with its form.
        once: it is read for a single training.
    """
    form = list(form)
    left = copy.deepcopy(dict(values))
    for problem in form:
        _drop(left, problem.keys)
    trainer = _valid(TypeAdapter[Spec](TrainerSpec), left.get("trainer"))
    tuning = _valid(TypeAdapter(Tuning), left.get("tuning"), {TRAINS_ONCE: once})
    data = _valid(TypeAdapter(Data), left.get("data"))
    given = values.get("trainer")
    program = isinstance(given, dict) and given.get("type") in ("script", "ray_train")
    problems: list[Problem] = [] if tuning is None else list(_of_conditions(tuning))
    if (once or tuning is not None) and not any(_related(problem.keys, keys) for problem in form for keys in LENGTHS):
        problems += _of_lengths(trainer, None if once else tuning)
    if isinstance(trainer, ScriptSpec) and tuning is not None:
        problems += _of_names(trainer, {**trainer.hyperparameters, **tuning.ranges})
    if not program and values.get("data") is None:
        what = JobSpec.model_fields["data"].description
        problems.append(Problem(keys=("data",), text=f"data is missing; give a group of keys: {what}"))
    if data is not None and isinstance(trainer, XGBoostSpec | TorchSpec | ParameterServerSpec | RayTrainSpec):
        problems += _of_folders(data, trainer.type)
    if data is not None and isinstance(trainer, XGBoostSpec | ScriptSpec | RayTrainSpec):
        problems += _of_examples(data, trainer.type)
    takes: _Takes | None = None
    if isinstance(trainer, XGBoostSpec):
        takes = _Takes(hyperparameters=dict(trainer.hyperparameters), own_metrics=bool(trainer.metric_functions))
        problems += _of_hyperparameters(takes)
        if not problems and not any(_related(problem.keys, keys) for problem in form for keys in LENGTHS):
            problems += _without_length(takes) if once else _left_out(takes, tuning)
    if tuning is not None and takes is not None and not once:
        problems += _of_ranges(tuning, takes, [problem.keys[-1] for problem in problems])
    training = _valid(TypeAdapter(Training), left.get("training")) if once else None
    group, objective = (
        ("training", training.objective_metric_name)
        if training
        else ("tuning", tuning and tuning.objective_metric_name)
    )
    if objective:
        own = getattr(trainer, "metrics", None)  # Of several trainers, what each calls the objective.
        reported = takes.metrics() if takes else own if isinstance(own, list) else None
        channels = None if data is None else PARTS if data.channels is None else tuple(data.channels)
        problems += _of_objective(
            (group, "objective_metric_name"),
            objective,
            reported,
            channels,
            scored=takes is not None,
            of_channel=not program,
        )
    return [each for each in problems if not any(_related(each.keys, problem.keys) for problem in form)]


@dataclass(slots=True, kw_only=True)
class _Takes:
    """XGBoost's parameters, without a trainer."""

    hyperparameters: dict[str, Any]
    own_metrics: bool = False
    """Whether functions of the user's own are metrics, of which only training tells the names."""

    @property
    def resource_names(self) -> tuple[str, ...]:
        """See `Trainer.resource_names`."""
        return self.length.names

    @property
    def length(self) -> Length:
        """See `Trainer.lengths`."""
        from trainers.xgboost import ROUNDS

        return Length(names=ROUNDS)

    def check(self, hyperparameters: Mapping[str, Any]) -> None:
        """See `Trainer.check`; what depends on workers is left to the trainer."""
        from trainers.xgboost import check_parameters

        check_parameters({name: value for name, value in hyperparameters.items() if name != "num_workers"})

    def metrics(self) -> list[str] | None:
        """The metrics that it reports of a channel; None where the trainer will say what is wrong."""
        from trainers.xgboost import metric_names

        names = self.hyperparameters.get("eval_metric")
        return None if names is None or self.own_metrics else metric_names(names)


def _of_hyperparameters(takes: _Takes) -> Iterator[Problem]:
    """The first problems of static hyperparameters; each wrong one is then left out of them."""
    gone: set[str] = set()
    while len(gone) < MOST_PROBLEMS:
        try:
            takes.check(takes.hyperparameters)
            return
        except ConfigurationError as error:
            quoted = re.findall(r"(?<!\w)'([^']+)'", str(error))  # The apostrophe of "XGBoost's" opens no quotation.
            named = [name for name in quoted if name in {*takes.hyperparameters, *gone}]
            if not named or named[0] in gone:
                return  # That it is missing is not the file's fault.
            yield _said((*HYPERPARAMETERS, named[0]), error)
            gone.add(named[0])
            del takes.hyperparameters[named[0]]


def _without_length(takes: _Takes) -> Iterator[Problem]:
    """Hyperparameters that a single training is without."""
    yield from _left_out(takes, None)
    if longest((takes.length,), {}, takes.hyperparameters) is None:
        yield Problem(keys=HYPERPARAMETERS, text=f"trainer: {no_length([takes.length], takes.hyperparameters)}")


def _left_out(takes: _Takes, tuning: Tuning | None) -> Iterator[Problem]:
    """Hyperparameters that are missing among the static ones."""
    if takes.hyperparameters.get("eval_metric") is None and not takes.own_metrics:
        text = "trainer: hyperparameters have no 'eval_metric', so nothing would be reported; give one, such as auc"
        yield Problem(keys=(*HYPERPARAMETERS, "eval_metric"), text=text)
    if tuning is None or tuning.code() or tuning.autotune:
        return
    try:
        made = tuning.arguments()
        ranges = made["hyperparameter_ranges"]
        units = longest((takes.length,), ranges, takes.hyperparameters)
        strategy = strategy_of(made["strategy"], made["strategy_config"])
        strategy.plan(ranges, strategy.trials(ranges, tuning.max_jobs), units)
    except UnknownLengthError as error:
        given = {**takes.hyperparameters, **ranges}
        said = ConfigurationError(no_length([takes.length], given, error.settings))
        yield _said(RANGES if tuning.strategy == "Grid" else ("tuning", "hyperband"), said)
    except ConfigurationError as error:
        yield _said(RANGES if tuning.strategy == "Grid" else ("tuning", "hyperband"), error)


def _of_lengths(trainer: Spec | None, tuning: Tuning | None) -> Iterator[Problem]:
    """Problems of programs' lengths: names of no hyperparameter, and values that are no length.

    Args:
        trainer: of the job.
        tuning: its search; None for a single training.
    """
    parts = trainer.trainers if isinstance(trainer, SeveralSpec) else {"": trainer}
    for name, part in parts.items():
        if not isinstance(part, ScriptSpec):
            continue
        keys: Keys = ("trainer", "trainers", name, "length") if name else ("trainer", "length")
        tuned = of_one(name, tuning.ranges) if name and tuning else tuning.ranges if tuning else {}
        try:
            length = program_length(part.length, StepCounter.of(part.step and part.step.model_dump(exclude_unset=True)))
            length.check_given({**part.hyperparameters, **tuned})
            length.check(part.hyperparameters)
        except ConfigurationError as error:
            yield Problem(keys=keys, text=f"{dotted(keys[:-1])}: {in_its_words(str(error))}")


def _of_folders(data: Data, kind: str) -> Iterator[Problem]:
    """Folders of files, where the trainer reads rows."""
    for name, files in (data.channels or {}).items():
        if files.folder is not None:
            keys = ("data", "channels", name, "folder")
            remedy = "give path instead, to .csv or .parquet files, or a trainer of type script"
            yield Problem(
                keys=keys, text=f"{dotted(keys)} is {files.folder!r}, and a trainer of type {kind} reads rows; {remedy}"
            )


def _of_examples(data: Data, kind: str) -> Iterator[Problem]:
    """Datasets of PyTorch, where the trainer reads tables or files."""
    for name, files in (data.channels or {}).items():
        if files.kind:
            keys = ("data", "channels", name, files.kind)
            text = f"{dotted(keys)} is for a trainer of type torch or parameter_server, and this one is {kind}"
            yield Problem(keys=keys, text=f"{text}; give path or folder instead")


def _of_names(trainer: ScriptSpec, names: Collection[str]) -> Iterator[Problem]:
    """Names of hyperparameters, in arguments and in placeholders, that no trial has."""
    try:
        if trainer.arguments is not None:
            check_names(names, Arguments.of(trainer.arguments.given()))
    except ConfigurationError as error:
        yield _said(("trainer", "arguments"), error)
    for name, value in trainer.hyperparameters.items():
        try:
            check_placeholders(f"hyperparameter {name!r}", value, names=names)
        except ConfigurationError as error:
            yield _said((*HYPERPARAMETERS, name), error)


def _of_conditions(tuning: Tuning) -> Iterator[Problem]:
    """The first problem of what ranges say of one another."""
    try:
        check_conditions({name: bounds.parameter() for name, bounds in tuning.ranges.items()})
    except ConfigurationError as error:
        named = re.findall(r"'([^']+)'", str(error))
        yield _said((*RANGES, named[0], "when"), error)


def _of_ranges(tuning: Tuning, takes: TakesValues, gone: Sequence[str | int]) -> Iterator[Problem]:
    """The first problems of single ranges, and once what is wrong of the hyperparameters without any."""
    said: set[str] = set()
    for name, bounds in tuning.ranges.items():
        if len(said) == MOST_PROBLEMS:
            return
        try:
            check_trainer_ranges(
                takes, {name: replace(bounds.parameter(), when={})}
            )  # By itself: others are not there.
        except ConfigurationError as error:
            if str(error) in said or any(f"'{other}'" in str(error) for other in gone if other != name):
                continue
            said.add(str(error))
            yield _said((*RANGES, name) if repr(name) in str(error) else HYPERPARAMETERS, error)


def _of_objective(
    keys: Keys,
    name: str,
    reported: Sequence[str] | None,
    channels: tuple[str, ...] | None,
    *,
    scored: bool,
    of_channel: bool,
) -> Iterator[Problem]:
    """Problems of the objective.

    Args:
        keys: where it stands.
        name: it.
        reported: metrics; None where they are not known.
        channels: the job's; None where they are not known: then its own is taken to be there.
        scored: whether every metric is reported of every channel.
        of_channel: whether it has to be a channel's.
    """
    try:
        check_objective_name(name, of_channel=of_channel)
        if scored and reported is not None:
            every = sorted(channels or (name.partition(":")[0],), key=lambda channel: channel == "train")
            reported = [f"{channel}:{metric}" for channel in every for metric in reported]
        check_objective(name, reported)
    except ConfigurationError as error:
        yield _said(keys, error)


def _said(keys: Keys, error: ConfigurationError) -> Problem:
    return Problem(keys=keys, text=f"{keys[0]}: {in_its_words(str(error))}")


def _valid(form: TypeAdapter[Model], values: Any, context: dict[str, Any] | None = None) -> Model | None:
    try:
        return form.validate_python(values, context=context)
    except ValidationError:
        return None


def _related(keys: Keys, wrong: Keys) -> bool:
    """Whether what is wrong at some keys may be all that is wrong at others: one of them is within the other."""
    return all(one == other for one, other in zip(keys, wrong, strict=False))


def _drop(values: dict[str, Any], keys: Keys) -> None:
    """Leaves out what stands at keys, or the innermost of the groups around it that there is."""
    group, inner = values, values
    for key in keys:
        if not isinstance(inner, dict) or key not in inner:
            break
        group, last, inner = inner, key, inner[key]
    if inner is not values:
        del group[last]
